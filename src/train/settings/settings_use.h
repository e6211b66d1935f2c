/* settings_use.h - checks settings and turns them into the options of the trainer's parts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SETTINGS_USE_H
#define RY_SETTINGS_USE_H

#include "renyi/train.h"
#include "train/data/augment.h"
#include "train/net/params.h"
#include "train/settings/schedule.h"

/* Errors that show without model and data: settings that exclude or need each other. */
renyi_status ry_settings_check(const renyi_train_options *opt, renyi_error *err) RENYI_CHECK;

/* The transforms; parses randaugment, "[rand-]m9-mstd0.5-inc1-n2-p0.5". */
renyi_status ry_settings_augment(ry_augment *out, const renyi_train_options *o,
                                 renyi_error *err) RENYI_CHECK;

ry_lr_schedule ry_settings_lr(const renyi_train_options *o);

/* chosen[i] = 1 for every block i in a list such as "0-5,7"; NULL or "" is none. `setting` is for
 * messages; chosen: [n_blocks] */
renyi_status ry_settings_blocks(const char *setting, const char *list, uint32_t n_blocks,
                                uint8_t *chosen, renyi_error *err) RENYI_CHECK;

/* Sets `frozen` of the parameters that `freeze` and `freeze-layers` name. A pattern without a match
 * is an error. */
renyi_status ry_settings_freeze(ry_params *params, uint32_t n_blocks, const renyi_train_options *o,
                                renyi_error *err) RENYI_CHECK;

#endif
