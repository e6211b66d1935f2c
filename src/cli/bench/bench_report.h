/* bench_report.h - bench results as a table, CSV or JSON.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_BENCH_REPORT_H
#define RENYI_BENCH_REPORT_H

#include "cli/bench/bench_measure.h"

typedef struct bench_row {
    char *model;        /* owned */
    const char *policy; /* as it was asked for; numbers.policy has it in full */
    uint32_t batch, threads;
    double peak_gflops;      /* at this number of threads; 0 = not measured */
    const char *faster_than; /* the format that numbers.speedup is over; NULL: this is it */
    double mac_ratio;        /* to the dense row measured with it; NaN: this is the dense row */
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

/* Figures that follow from the measured ones. */
double bench_row_gflops(const bench_row *row); /* two operations a multiply-accumulate */
double bench_row_images_per_second(const bench_row *row);
double bench_row_peak_share(const bench_row *row);
int bench_row_is_pruned(const bench_row *row); /* compared with a dense row */
int bench_row_is_f32(const bench_row *row);

/* format: "md", "csv" or "json". */
void bench_report_print(const bench_report *report, const char *format);
void bench_table_print(const bench_report *report); /* "md" */
/* Model name of the CPU as the system gives it. Owned. */
char *bench_cpu_name(void);

#endif
