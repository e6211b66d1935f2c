/* run_state.h - progress of a run besides its parameters, as the metadata of a checkpoint has it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RUN_STATE_H
#define RY_RUN_STATE_H

#include "train/settings/settings.h"

#define RY_RUN_STATE_KEY "renyi.train" /* of the metadata */
enum { RY_RUN_STATE_VERSION = 1 };

typedef struct ry_run_state {
    uint64_t epoch;         /* current epoch, from 0 */
    uint64_t step_in_epoch; /* updates done in it; all of them = not evaluated yet */
    uint64_t step, samples; /* in all */
    double loss_sum;        /* of the losses of this epoch's updates */
    double seconds;
    uint64_t log_bytes;   /* of the log when this was written */
    uint64_t fingerprint; /* of the images */
    double train_loss;    /* of the last whole epoch; NaN = none yet, also below */
    renyi_train_score val, ema;
    double best_top1;
    uint64_t best_epoch;
} ry_run_state;

void ry_run_state_begin(ry_run_state *s, uint64_t fingerprint);

/* {"version", "settings", "epoch", ...}; NULL = out of memory. */
json_t *ry_run_state_json(const ry_run_state *s, const renyi_train_options *opt);

/* From untrusted text: every member must be present, of its type and in range. `where` names the
 * file in messages. Fills settings that were made by ry_settings_copy. */
renyi_status ry_run_state_parse(ry_run_state *s, ry_settings_owned *settings, const char *text,
                                size_t size, const char *where, const renyi_allocator *al,
                                renyi_error *err) RENYI_CHECK;

#endif
