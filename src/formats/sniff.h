/* sniff.h - the kind of a model file, by its bytes; the name decides only when they do not.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SNIFF_H
#define RY_SNIFF_H

#include "renyi/renyi.h"

typedef enum ry_file_kind {
    RY_FILE_SAFETENSORS,
    RY_FILE_TORCH_ZIP,
    RY_FILE_GGUF,
    RY_FILE_SHARD_INDEX /* model.safetensors.index.json */
} ry_file_kind;

/* Anything else is an error that says what the file is and what to use instead. */
renyi_status ry_sniff(ry_file_kind *kind, const char *path, const unsigned char *bytes, size_t size,
                      renyi_error *err) RENYI_CHECK;

#endif
