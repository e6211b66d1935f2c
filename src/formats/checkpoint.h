/* checkpoint.h - opens a checkpoint of any format: from a path to tensors and configs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CHECKPOINT_H
#define RY_CHECKPOINT_H

#include "formats/tensor.h"

#include <jansson.h>

typedef struct ry_checkpoint {
    ry_tensors *tensors;
    json_t *config;              /* config.json beside the weights, or in their metadata;
                                    NULL if there is none; of a GGUF its values (gguf.h) */
    json_t *open_clip_config;    /* open_clip_config.json (OpenCLIP), in the same way */
    json_t *preprocessor_config; /* preprocessor_config.json, in the same way, or the
                                    image_processor of processor_config.json */
    int is_gguf;                 /* config.json and the others were not looked for */
    char *tensors_path;          /* the file (or index) the tensors came from, for messages */
} ry_checkpoint;

/* `path`: a .safetensors file, a GGUF, a PyTorch zip, or a directory (config.json +
 * model.safetensors, or model.safetensors.index.json + shards, or pytorch_model.bin / *.pth when
 * it is the only one). The bytes decide the format of a file, not its name. RENYI_MODEL_BUILTIN is
 * the built-in model. */
renyi_status ry_checkpoint_open(ry_checkpoint *out, const char *path, const renyi_limits *limits,
                                const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* A safetensors file in memory, which must stay alive as long as the checkpoint; `what` names it in
 * messages. Configs come only from its metadata. */
renyi_status ry_checkpoint_parse(ry_checkpoint *out, const void *bytes, size_t size,
                                 const char *what, const renyi_limits *limits,
                                 const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_checkpoint_close(ry_checkpoint *c, const renyi_allocator *al); /* a zeroed one is allowed */

#endif
