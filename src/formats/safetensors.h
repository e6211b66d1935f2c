/* safetensors.h - the safetensors format, read and written.
 *
 * File: u64 little-endian header length n | n bytes of JSON | tensor bytes. The JSON is
 *   { "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
 *     "__metadata__": {"key": "string", ...} }
 * with offsets counted from the end of the header. The reader accepts what Hugging Face's
 * reader accepts: offsets that cover the bytes exactly, without gap or overlap, and no duplicate
 * names. It also requires that a tensor starts at a multiple of its element size.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SAFETENSORS_H
#define RY_SAFETENSORS_H

#include "formats/tensor.h"

/* Maps the file; the set keeps it mapped. On success *out is owned by the caller (ry_tensors_free),
 * on failure it is NULL. Every message names the file, the tensor and the numbers. */
renyi_status ry_safetensors_open(ry_tensors **out, const char *path, const renyi_limits *limits,
                                 const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* The same over bytes that the caller keeps alive as long as the set; `what` names it in
 * messages. */
renyi_status ry_safetensors_parse(ry_tensors **out, const void *bytes, size_t size,
                                  const char *what, const renyi_limits *limits,
                                  const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* Put bytes [at, at + n) of tensor t into `out`. Called once per piece, front to back; a piece
 * never splits an element. A status other than RENYI_OK stops the writing. */
typedef renyi_status (*ry_safetensors_fill)(void *user, const ry_tensor *t, uint64_t at, void *out,
                                            size_t n, renyi_error *err);

typedef struct ry_safetensors_content {
    const ry_tensor *tensors; /* [n_tensors]; `bytes` and, with `fill`, `data` are not used */
    size_t n_tensors;
    const char *const *meta;  /* key, value, key, value, ..., NULL; or NULL */
    ry_safetensors_fill fill; /* NULL: tensors[i].data holds the bytes */
    void *fill_user;
} ry_safetensors_content;

/* Write a file that appears under `path` only when it is complete and on disk; a failure (a full
 * disk too) leaves no new file and keeps an older one. Tensors are stored in the order
 * given, so wider element types should come first: one that would start misaligned is
 * RENYI_ERR_ARG. */
renyi_status ry_safetensors_write(const char *path, const ry_safetensors_content *content,
                                  const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

#endif
