/* save_point.h - the safetensors files of a run.
 *
 * A model file has the parameters under timm's names and the configuration in the metadata; it
 * loads like any other model. checkpoint.safetensors has all that a run needs to continue bit for
 * bit: the weights under the same names (so it loads as a model too), moments and running mean as
 * training.m.NAME, training.v.NAME and training.ema.NAME, parameters that no model file has as
 * training.param.NAME; counters and settings are in the metadata (run_state.h). A checkpoint is
 * untrusted when read: every tensor and setting is checked.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SAVE_POINT_H
#define RY_SAVE_POINT_H

#include "formats/checkpoint.h"
#include "model/vit/vit.h"
#include "renyi/train.h"
#include "train/files/run_state.h"
#include "train/net/params.h"
#include "train/run/optim.h"

/* ---- model file ------------------------------------------------------------------------------ */

typedef struct ry_model_file {
    const ry_vit_config *config;
    const char *const *labels; /* [n_classes] or NULL */
    const ry_params *params;
    const float *values; /* [params->total] the weights, or their running mean */
    renyi_save_dtype dtype;
} ry_model_file;

/* The file appears only when complete. A value too large for F16 is an error. */
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

/* ---- checkpoint ------------------------------------------------------------------------------ */

typedef struct ry_save_point {
    const ry_vit_config *config;
    const char *const *labels; /* [n_classes] or NULL */
    const ry_optim *optim;     /* and the parameters that it borrows */
    const ry_run_state *state;
    const renyi_train_options *settings;
} ry_save_point;

/* The file appears only when complete and on disk; on failure an older one stays. */
renyi_status ry_save_point_write(const char *path, const ry_save_point *s,
                                 const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* Counters and settings of an open checkpoint. */
renyi_status ry_save_point_state(ry_run_state *state, ry_settings_owned *settings,
                                 const ry_checkpoint *ckpt, const renyi_allocator *al,
                                 renyi_error *err) RENYI_CHECK;

/* Weights, moments and running mean: F32, of the right shape, finite, none missing, none extra. */
renyi_status ry_save_point_load(ry_optim *optim, uint64_t step, const ry_checkpoint *ckpt,
                                renyi_error *err) RENYI_CHECK;

#endif
