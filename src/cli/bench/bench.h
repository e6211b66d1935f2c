/* bench.h - the parts of renyi bench: measurements of models and training steps, and printing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_BENCH_H
#define RENYI_BENCH_H

#include "cli/kit/cli.h"

/* ---- one measurement: a model, a batch size, a number of threads --------------------------- */

typedef struct bench_config {
    const char *path;            /* of the model, resolved */
    renyi_options model_options; /* without the dtype */
    uint32_t batch, threads, repetitions;
    uint32_t streams;            /* batches in flight */
    const char *const *policies; /* [n_policies]; the others are compared with the first */
    size_t n_policies;
    const renyi_dtype *dtypes; /* [n_dtypes]; the same */
    size_t n_dtypes;
    const cli_strings *photos; /* NULL = random input. Each round takes the next ones */
} bench_config;

/* Of one dtype and policy. */
typedef struct bench_numbers {
    double ms_median, ms_p10, ms_p90; /* per image */
    double ms_mean, ms_p95;           /* the same */
    double time_ratio;                /* to the first policy: median of the ratios in each round, or
                                         with photos the ratio of the means */
    double speedup;                   /* over the first dtype, the same way */
    double macs;                      /* per image, as executed; mean over all rounds */
    double second_share;              /* of the images that a cascade ran twice; NaN: no cascade */
    double macs_plain;                /* per image, by the token counts alone */
    double peak_rss_mb;               /* of the whole process: all dtypes and policies */
    char policy[RENYI_POLICY_MAX];    /* in full */
    char architecture[64];
    char cpu_level[16];
    char dtype[16];
} bench_numbers;

/* Loads the model once per dtype, makes a session for each policy and runs all of them in turn,
 * once in each of `repetitions` rounds, so that a machine that slows down slows them all. out:
 * [n_dtypes, n_policies]. CLI_USAGE: a policy does not fit the model.
 * Runs, as all measurements below, in a child process and returns an exit code (enum cli_exit)
 * after reporting the error. */
int bench_measure(const bench_config *config, bench_numbers *out);
int bench_measure_peak(uint32_t threads, double *gflops);

/* Fills `result` and returns an exit code; reports its own errors. */
typedef int bench_work(const void *argument, void *result);

/* Runs work(argument, result) in a child process, so that memory figures are those of the work
 * alone and no thread pool is copied by fork. Copies `size` bytes of the result back. Returns the
 * exit code of the child; CLI_FAILED, reported, if there was no child or it died. */
int bench_in_child(bench_work *work, const void *argument, void *result, size_t size);

/* The q-quantile (0..1), linear between neighbours; sorts the values. */
double bench_quantile(double *values, size_t count, double q);

/* ---- results ------------------------------------------------------------------------------- */

typedef struct bench_row {
    char *model;        /* owned */
    const char *policy; /* as given; numbers.policy has it in full */
    uint32_t batch, threads, streams;
    double peak_gflops;      /* at this number of threads; 0 = not measured */
    const char *faster_than; /* dtype that numbers.speedup compares with; NULL: this is it */
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
    size_t n_photos; /* 0 = random input */
} bench_report;

double bench_row_gflops(const bench_row *row); /* two operations per multiply-accumulate */
int bench_row_is_f32(const bench_row *row);

/* format: "md", "csv" or "json". */
void bench_report_print(const bench_report *report, const char *format);

/* ---- training steps ------------------------------------------------------------------------ */

/* Of one policy; ms per image, medians of the rounds. */
typedef struct bench_train_numbers {
    double forward_ms;   /* forward pass of a session */
    double pass_ms;      /* forward pass of the trainer, which saves its activations */
    double step_ms;      /* forward, backward, update */
    double step_forward; /* step / forward: median of the ratios in each round */
    double time_ratio;   /* step / step of the first policy: the same way */
    double macs;         /* per image, of the forward pass of the trainer */
    double activations_mb, parameters_mb, peak_rss_mb;
    uint32_t micro_batch;
    char policy[RENYI_POLICY_MAX];
    char cpu_level[16], dtype[16];
} bench_train_numbers;

/* As bench_measure, with the first dtype of the config. out: [n_policies] */
int bench_train_measure(const bench_config *config, bench_train_numbers *out);

typedef struct bench_train_row {
    char *model;        /* owned */
    const char *policy; /* as given */
    uint32_t batch, threads;
    double mac_ratio; /* to the dense row measured with it; NaN: this is the dense row */
    bench_train_numbers numbers;
} bench_train_row;

/* format: "md", "csv" or "json". */
void bench_train_print(const bench_train_row *rows, size_t count, uint32_t repetitions,
                       const char *format);

#endif
