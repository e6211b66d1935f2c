/* runs.h - what training runs wrote into their logs: numbers and curves.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A run is a folder of renyi_train with its log.jsonl. The log of a run that was interrupted, or is
 * still going on, can be read too. For charts see renyi_report_curves in report.h.
 * The rest is as in renyi.h.
 */
#ifndef RENYI_RUNS_H
#define RENYI_RUNS_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct renyi_run_log renyi_run_log; /* a log that was read; immutable */

typedef struct renyi_run_options {
    uint32_t struct_size;
    uint64_t max_bytes; /* of one log; 0 = 1 GiB */
    uint64_t max_lines; /* steps and epochs of all its stages; 0 = 4,194,304 */
    renyi_allocator allocator;
} renyi_run_options;

/* `path` is a folder with log.jsonl or a log; "a+b" (each as before) is one run in two stages, the
 * second after the first, unless "a+b" itself exists. Lines of steps that were done again after a
 * resume replace the older ones. A line that was cut short at the end, lines that are no JSON and
 * lines of other kinds are passed over and counted; no step and no epoch at all is an error.
 * opt may be NULL. On success *out is owned by the caller (renyi_run_log_free). */
RENYI_API RENYI_CHECK renyi_status renyi_run_log_open(renyi_run_log **out, const char *path,
                                                      const renyi_run_options *opt,
                                                      renyi_error *err);
RENYI_API void renyi_run_log_free(renyi_run_log *r);

/* What is not known is NaN, for every number here and below. Lines without a number of steps or
 * seconds have those of the line before. */
typedef struct renyi_run_info {
    const char *path;   /* as given */
    const char *policy; /* that it was trained with, "none" for dense; NULL = unknown */
    const char *model;  /* weights or architecture that it began with; NULL = unknown */
    uint32_t n_stages;
    uint64_t n_steps, n_epochs;    /* lines of each */
    uint64_t n_other, n_bad;       /* lines of other kinds; lines that are no JSON */
    uint64_t first_bad;            /* number of the first of them in its log; 0 = none */
    int is_cut;                    /* the last line is not whole: interrupted, or being written */
    double epochs, steps, seconds; /* done; of all stages */
    double loss;                   /* of training: mean of the last epoch, or of its last steps */
    double val_loss, top1, top5;   /* last that were measured; per cent */
    double best_top1, best_epoch;  /* highest, and the epochs that were done then */
    double images_per_second;      /* mean of the steps */
} renyi_run_info;                  /* pointers are borrowed until renyi_run_log_free */
RENYI_API void renyi_run_log_get_info(const renyi_run_log *r, renyi_run_info *out);

typedef enum renyi_run_quantity {
    RENYI_RUN_LOSS = 0,       /* of every step */
    RENYI_RUN_EPOCH_LOSS = 1, /* of training, mean of every epoch */
    RENYI_RUN_VAL_LOSS = 2,
    RENYI_RUN_TOP1 = 3,
    RENYI_RUN_TOP5 = 4,
    RENYI_RUN_LR = 5,
    RENYI_RUN_KEEP = 6,  /* share of tokens that a cut keeps */
    RENYI_RUN_SPEED = 7, /* images per second */
    RENYI_RUN_EMA_TOP1 = 8
} renyi_run_quantity;

typedef enum renyi_run_axis {
    RENYI_RUN_BY_EPOCH = 0, /* epochs done: 0.5 is in the middle of the first */
    RENYI_RUN_BY_STEP = 1,
    RENYI_RUN_BY_SECONDS = 2
} renyi_run_axis;

typedef struct renyi_run_curve {
    double *x, *y; /* [n] x never falls; only finite numbers */
    size_t n;
    renyi_allocator allocator; /* that made it; for renyi_run_curve_free */
} renyi_run_curve;

/* A quantity over time; n is 0 where nothing is known of it. With smooth > 1 every value of a step
 * is the mean of the `smooth` values around it, fewer at both ends. Then, if there are more than
 * `most` (0 = 1000), neighbours are averaged. Values of epochs are not smoothed. On success *out is
 * owned by the caller (renyi_run_curve_free). */
RENYI_API RENYI_CHECK renyi_status renyi_run_log_get_curve(renyi_run_curve *out,
                                                           const renyi_run_log *r,
                                                           renyi_run_quantity what,
                                                           renyi_run_axis axis, uint64_t smooth,
                                                           size_t most, renyi_error *err);
RENYI_API void renyi_run_curve_free(renyi_run_curve *c); /* an empty one is fine */

#ifdef __cplusplus
}
#endif
#endif
