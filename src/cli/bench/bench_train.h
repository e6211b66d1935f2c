/* bench_train.h - what a training step costs: forward pass, step and their ratio, policies in turn.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_BENCH_TRAIN_H
#define RENYI_BENCH_TRAIN_H

#include "cli/bench/bench_measure.h"

/* Of one policy; ms per image, medians of the rounds. */
typedef struct bench_train_numbers {
    double forward_ms;   /* an answer, as a session gives it */
    double pass_ms;      /* the trainer's pass forward, which saves its activations */
    double step_ms;      /* forward, backward, update */
    double step_forward; /* step / forward: median of the rounds' own ratios, as are the others */
    double time_ratio;   /* step / the first policy's */
    double macs;         /* per image, of the trainer's pass forward */
    double activations_mb, parameters_mb, peak_rss_mb;
    uint32_t micro_batch;
    char policy[RENYI_POLICY_MAX];
    char cpu_level[16], dtype[16];
} bench_train_numbers;

/* As bench_measure, with the first format of the config. out: [n_policies] */
int bench_train_measure(const bench_config *config, bench_train_numbers *out);

typedef struct bench_train_row {
    char *model;        /* owned */
    const char *policy; /* as it was asked for */
    uint32_t batch, threads;
    double mac_ratio; /* to the dense row measured with it; NaN: this is the dense row */
    bench_train_numbers numbers;
} bench_train_row;

/* format: "md", "csv" or "json". */
void bench_train_print(const bench_train_row *rows, size_t count, uint32_t repetitions,
                       const char *format);

#endif
