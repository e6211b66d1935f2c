/* bench_measure.h - one measurement: a model, a batch size, a number of threads, and number formats
 * and policies that take turns.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_BENCH_MEASURE_H
#define RENYI_BENCH_MEASURE_H

#include "cli/kit/cli.h"

#include "renyi/renyi.h"

typedef struct bench_config {
    const char *path;            /* of the model, resolved */
    renyi_options model_options; /* but for the dtype */
    uint32_t batch, threads, repetitions;
    const char *const *policies; /* [n_policies] the first is what the others are compared with */
    size_t n_policies;
    const renyi_dtype *dtypes; /* [n_dtypes] likewise */
    size_t n_dtypes;
} bench_config;

/* Of one format and policy. */
typedef struct bench_numbers {
    double ms_median, ms_p10, ms_p90; /* per image */
    double time_ratio;                /* to the first policy: median of the rounds' own ratios */
    double speedup;                   /* over the first format, likewise */
    double macs;                      /* per image, that a run really does */
    double macs_plain;                /* per image, by the token counts alone */
    double peak_rss_mb;               /* of the whole process: all formats and policies */
    char policy[RENYI_POLICY_MAX];    /* in full */
    char architecture[64];
    char cpu_level[16];
    char dtype[16];
} bench_numbers;

/* Both run in a child process and return an exit code (enum cli_exit) after reporting the error.
 * bench_measure loads the model once a format, makes a session for every policy, and lets them run
 * in turn, once in each of `repetitions` rounds, so that a machine that slows down slows them all.
 * out: [n_dtypes, n_policies]. CLI_USAGE: a policy does not fit the model. */
int bench_measure(const bench_config *config, bench_numbers *out);
int bench_measure_peak(uint32_t threads, double *gflops);

/* The q-quantile (0..1), linear between neighbours; sorts the values. */
double bench_quantile(double *values, size_t count, double q);

#endif
