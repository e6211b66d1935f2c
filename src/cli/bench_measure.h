/* bench_measure.h - one measurement in a process of its own, so that memory figures are honest.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_CLI_BENCH_MEASURE_H
#define RENYI_CLI_BENCH_MEASURE_H

#include "cli.h"

#include <renyi/renyi.h>

typedef struct bench_config {
    const char *path; /* of the model, resolved */
    renyi_options model_options;
    uint32_t batch, threads, repetitions;
} bench_config;

typedef struct bench_numbers {
    double ms_median, ms_p10, ms_p90; /* per image, that a run really does */
    double macs;                      /* per image, that a run really does */
    double peak_rss_mb;               /* of the whole process that ran it */
    char architecture[64];
    char cpu_level[16];
} bench_numbers;

/* Both run in a child process. 0, or -1 after reporting the error. */
int bench_measure(const bench_config *config, bench_numbers *out);
int bench_measure_peak(uint32_t threads, double *gflops);

/* The q-quantile (0..1) of sorted values, linear between neighbours. */
double bench_quantile(const double *sorted, size_t count, double q);

#endif
