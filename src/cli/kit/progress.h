/* progress.h - progress on stderr: bars on a terminal, lines elsewhere; and signals.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_PROGRESS_H
#define RENYI_PROGRESS_H

#include "cli/kit/cli.h"

#include "renyi/eval.h"

/* ---- signals ------------------------------------------------------------------------------- */

/* From now on the first Ctrl-C, SIGTERM or SIGHUP only sets a flag; the same signal again ends the
 * program. */
void catch_interrupt(void);
int was_interrupted(void);

/* ---- the bar ------------------------------------------------------------------------------- */

/* Drawn only if stderr is a terminal and --quiet was not given. */
typedef struct progress_bar {
    const char *title; /* borrowed */
    uint64_t total, started_at;
    double start_ms, shown_ms;
    int is_on, is_bytes;
    char text[120]; /* after the numbers */
} progress_bar;

/* `wanted` = 0 keeps it off. */
void progress_start(progress_bar *bar, const char *title, uint64_t total, int wanted);
/* The same for a transfer: shows sizes and speed; `done` bytes were there before. */
void progress_start_bytes(progress_bar *bar, const char *title, uint64_t total, uint64_t done);
void progress_update(progress_bar *bar, uint64_t done); /* draws at most ten times a second */
int progress_is_due(const progress_bar *bar);           /* 1: the next update draws */
/* Text after the bar, kept until the next call. */
void progress_text(progress_bar *bar, const char *fmt, ...) CLI_PRINTF(2, 3);
void progress_end(progress_bar *bar); /* clears the line */

/* ---- callbacks for work over many images or texts ------------------------------------------ */

/* Set the title and leave the rest zero. */
typedef struct work_progress {
    const char *title;
    progress_bar bar;
    int is_started;
    cli_strings failed, reasons; /* as reported; work_progress_free */
} work_progress;

/* `user` is the work_progress. The first returns 1 after Ctrl-C; the second reports an image that
 * failed and remembers it. */
int work_on_progress(void *user, uint64_t done, uint64_t total);
void work_on_failure(void *user, const char *file, const char *message);

void work_progress_end(work_progress *p); /* clears the bar; the next call begins a new one */
void work_progress_free(work_progress *p);

/* ---- callbacks for evaluations ------------------------------------------------------------- */

typedef struct eval_progress {
    progress_bar bar;
    const char *verb;             /* title of the bar; borrowed */
    uint64_t log_freq, next_line; /* images */
    uint64_t started_at;          /* images that were done before */
    double start_ms;
    uint32_t n_policies;
    uint64_t n_images, *n_top1, *n_top5; /* [n_policies] right so far, of n_images */
    double *loss;                        /* [n_policies] sums */
    int is_started;
} eval_progress;

void eval_progress_init(eval_progress *p, const char *verb, uint32_t n_policies, uint64_t log_freq);
/* Starts the clock; results that a log brought count as done. */
void eval_progress_resume(eval_progress *p, const renyi_eval *e);
void eval_progress_free(eval_progress *p);

/* For renyi_eval_options; `user` is the eval_progress. */
void eval_on_sample(void *user, const renyi_eval_sample *sample);
void eval_on_failure(void *user, const char *file, const char *message);
int eval_on_progress(void *user, uint64_t done, uint64_t total);

#endif
