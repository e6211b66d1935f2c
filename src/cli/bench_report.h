/* bench_report.h - bench results as a table, CSV or JSON.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_CLI_BENCH_REPORT_H
#define RENYI_CLI_BENCH_REPORT_H

#include "bench_measure.h"

typedef struct bench_row {
    char *model; /* owned */
    uint32_t batch, threads;
    double peak_gflops; /* at this number of threads; 0 = not measured */
    bench_numbers numbers;
} bench_row;

typedef struct bench_report {
    bench_row *rows;
    size_t count;
    const uint64_t *threads; /* [n_threads] measured thread counts */
    const double *peaks;     /* [n_threads] GFLOP/s */
    size_t n_threads;
    uint32_t repetitions;
} bench_report;

double bench_row_gflops(const bench_row *row); /* two operations a multiply-accumulate */
/* format: "md", "csv" or "json". */
void bench_report_print(const bench_report *report, const char *format);
/* Model name of the CPU as the system gives it. Owned. */
char *bench_cpu_name(void);

#endif
