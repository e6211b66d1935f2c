/* progress.h - how far an evaluation is: a bar on a terminal, lines elsewhere; and Ctrl-C.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_PROGRESS_H
#define RENYI_PROGRESS_H

#include "cli/kit/terminal.h"

#include "renyi/eval.h"

typedef struct eval_progress {
    progress_bar bar;
    const char *verb;             /* names the bar; borrowed */
    uint64_t log_freq, next_line; /* photos */
    uint64_t started_at;          /* photos that were done before */
    double start_ms;
    uint32_t n_policies;
    uint64_t n_images, *n_top1, *n_top5; /* [n_policies] right so far, of n_images */
    double *loss;                        /* [n_policies] sums */
    int is_started;
} eval_progress;

void eval_progress_init(eval_progress *p, const char *verb, uint32_t n_policies, uint64_t log_freq);
/* Start the clock; what a log brought counts as done. */
void eval_progress_resume(eval_progress *p, const renyi_eval *e);
void eval_progress_free(eval_progress *p);

/* For renyi_eval_options; `user` is the eval_progress. */
void eval_on_sample(void *user, const renyi_eval_sample *sample);
void eval_on_failure(void *user, const char *file, const char *message);
int eval_on_progress(void *user, uint64_t done, uint64_t total);

/* From now on the first Ctrl-C stops an evaluation after its batch; the second ends the program. */
void eval_catch_interrupt(void);
int eval_is_interrupted(void);

#endif
