/* save_point.h - checkpoint.safetensors: all that a run needs to go on bit for bit. The weights
 * have their names as in a model file, so it is one too; moments and running mean are called
 * training.m.NAME, training.v.NAME and training.ema.NAME; parameters that no model file has
 * training.param.NAME. Counters and settings are in the metadata (run_state.h). It is untrusted
 * when read: every tensor and setting is checked.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SAVE_POINT_H
#define RY_SAVE_POINT_H

#include "formats/checkpoint.h"
#include "model/vit/vit.h"
#include "train/files/run_state.h"
#include "train/run/optim.h"

typedef struct ry_save_point {
    const ry_vit_config *config;
    const char *const *labels; /* [n_classes] or NULL */
    const ry_optim *optim;     /* and the parameters that it borrows */
    const ry_run_state *state;
    const renyi_train_options *settings;
} ry_save_point;

/* Appears only when complete and on disk; on failure an older one is as it was. */
renyi_status ry_save_point_write(const char *path, const ry_save_point *s,
                                 const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* Counters and settings of an open checkpoint. */
renyi_status ry_save_point_state(ry_run_state *state, ry_settings_owned *settings,
                                 const ry_checkpoint *ckpt, const renyi_allocator *al,
                                 renyi_error *err) RENYI_CHECK;

/* Weights, moments and running mean: F32, of the right shape, finite, none missing, none too many.
 */
renyi_status ry_save_point_load(ry_optim *optim, uint64_t step, const ry_checkpoint *ckpt,
                                renyi_error *err) RENYI_CHECK;

#endif
