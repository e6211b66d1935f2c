/* run_log.h - the lines of a run's log in memory.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RUN_LOG_H
#define RY_RUN_LOG_H

#include "renyi/train.h"

/* The time of a line of either kind, counted over all stages. */
typedef struct ry_run_when {
    double epoch;   /* epochs done */
    double step;    /* updates done */
    double seconds; /* spent */
} ry_run_when;

typedef struct ry_run_step {
    ry_run_when when;
    int64_t epoch, step; /* as the log numbers them */
    double loss, lr, keep, speed;
} ry_run_step;

typedef struct ry_run_epoch {
    ry_run_when when;
    int64_t epoch;
    int is_stop; /* the run ended inside the epoch */
    double train_loss, val_loss, top1, top5, ema_top1;
} ry_run_epoch;

struct renyi_run_log {
    renyi_allocator al;
    char *path;
    uint64_t max_lines;
    ry_run_step *steps;   /* [n_steps] */
    ry_run_epoch *epochs; /* [n_epochs] */
    size_t n_steps, n_epochs, step_capacity, epoch_capacity;
    char *policy, *model, *architecture; /* of the last stage that has them; NULL = unknown */
    uint64_t n_val;                      /* images to evaluate on, the same; 0 = unknown */
    uint32_t n_stages;
    uint64_t n_other, n_bad, first_bad;
    int is_cut;
    /* of the stage that is being read */
    size_t first_step, first_epoch; /* its first lines */
    ry_run_when before;             /* where the stages before it ended */
    double per_epoch;               /* its updates an epoch; NaN = unknown */
};

/* Adds the log `bytes` as the next stage. `name` is for messages. */
renyi_status ry_run_log_read(renyi_run_log *r, const char *name, const char *bytes, size_t size,
                             renyi_error *err) RENYI_CHECK;

#endif
