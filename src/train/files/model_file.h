/* model_file.h - a model as training leaves it: parameters under timm's names, its configuration in
 * the metadata. Loads like any other file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MODEL_FILE_H
#define RY_MODEL_FILE_H

#include "model/vit/vit.h"
#include "renyi/train.h"
#include "train/net/params.h"

typedef struct ry_model_file {
    const ry_vit_config *config;
    const char *const *labels; /* [n_classes] or NULL */
    const ry_params *params;
    const float *values; /* a block of their layout: the weights, or their running mean */
    renyi_save_dtype dtype;
} ry_model_file;

/* Appears under `path` only when complete. A number that F16 cannot hold is an error. */
renyi_status ry_model_file_write(const char *path, const ry_model_file *m,
                                 const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* The metadata of such a file: key, value, ..., NULL; with `extra_key` (may be NULL) one more. */
typedef struct ry_model_meta {
    const char *pairs[16];
    char *config; /* text */
    char heads[16];
} ry_model_meta;
renyi_status ry_model_meta_make(ry_model_meta *out, const ry_vit_config *config,
                                const char *const *labels, const char *extra_key,
                                const char *extra_value, const renyi_allocator *al,
                                renyi_error *err) RENYI_CHECK;
void ry_model_meta_free(ry_model_meta *m, const renyi_allocator *al);

/* A parameter as a tensor of a file; `name` and `data` are borrowed. */
ry_tensor ry_param_tensor(const ry_param *p, const char *name, const float *block);

#endif
