/* checkpoint.h - a path as the user gives it -> tensors + configs, whatever the format.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CHECKPOINT_H
#define RY_CHECKPOINT_H

#include "formats/tensor.h"

#include <jansson.h>

typedef struct ry_checkpoint {
    ry_tensors *tensors;
    json_t *config;              /* config.json beside the weights, or their metadata of that name;
                                    NULL if there is none */
    json_t *preprocessor_config; /* preprocessor_config.json, likewise */
    char *tensors_path;          /* the file (or index) the tensors came from, for messages */
} ry_checkpoint;

/* `path`: a .safetensors file, a PyTorch zip, or a directory (config.json + model.safetensors, or
 * model.safetensors.index.json + shards, or pytorch_model.bin / *.pth when it is the only one). The
 * bytes decide the format of a file, not its name. RENYI_MODEL_BUILTIN is the checkpoint inside
 * the library. */
renyi_status ry_checkpoint_open(ry_checkpoint *out, const char *path, const renyi_limits *limits,
                                const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* A safetensors file in memory, which must stay alive as long as the checkpoint; `what` names it in
 * messages. Configs come from its metadata alone. */
renyi_status ry_checkpoint_parse(ry_checkpoint *out, const void *bytes, size_t size,
                                 const char *what, const renyi_limits *limits,
                                 const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_checkpoint_close(ry_checkpoint *c, const renyi_allocator *al); /* a zeroed one is fine */

#endif
