/* cmd_bench.c - renyi bench: speed and memory of models on this machine.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench_report.h"
#include "model_path.h"
#include "options.h"
#include "temporary_model.h"

#include <math.h>
#include <stdlib.h>

typedef struct bench_arguments {
    cli_strings models, archs;
    option_counts batches, threads;
    uint64_t repetitions, image_size;
    const char *format, *cpu;
    int no_peak;
} bench_arguments;

/* Every batch size on every number of threads, appended to the report. */
static int measure_model(const bench_arguments *a, const char *path, const char *title,
                         bench_report *report)
{
    bench_config config = {.path = path, .repetitions = (uint32_t)a->repetitions};

    config.model_options = (renyi_options){.struct_size = sizeof(renyi_options),
                                           .cpu = cpu_from_name(a->cpu),
                                           .image_size = (uint32_t)a->image_size};
    for (size_t t = 0; t < a->threads.count; t++)
        for (size_t b = 0; b < a->batches.count; b++) {
            bench_row row = {0};
            row.batch = config.batch = (uint32_t)a->batches.values[b];
            row.threads = config.threads = (uint32_t)a->threads.values[t];
            cli_detail("measuring %s, batch %u, %u threads", title, row.batch, row.threads);
            if (bench_measure(&config, &row.numbers)) return -1;
            row.model = cli_copy(title);
            report->rows = cli_grow(report->rows, report->count + 1, sizeof row);
            report->rows[report->count++] = row;
        }
    return 0;
}

/* Returns how many models failed. */
static size_t measure_all(const bench_arguments *a, bench_report *report)
{
    size_t n_failed = 0;

    for (size_t i = 0; i < a->models.count; i++) {
        char *path = model_path_resolve(a->models.items[i]);
        char *title = model_path_title(a->models.items[i]);
        n_failed += !path || measure_model(a, path, title, report);
        free(title);
        free(path);
    }
    for (size_t i = 0; i < a->archs.count; i++) {
        const char *path = temporary_model_make(a->archs.items[i]);
        n_failed += !path || measure_model(a, path, a->archs.items[i], report);
        temporary_model_remove();
    }
    return n_failed;
}

enum { MAX_PEAK_TRIES = 3 };

/* The peak of each number of threads, into the rows. Measured again where a model was faster: on a
 * machine with neighbours one moment may be a slow one. */
static int measure_peaks(const bench_arguments *a, bench_report *report, double *peaks)
{
    for (size_t t = 0; report->count && !a->no_peak && t < a->threads.count; t++) {
        const uint32_t threads = (uint32_t)a->threads.values[t];
        double fastest = 0.0;
        for (size_t i = 0; i < report->count; i++)
            if (report->rows[i].threads == threads)
                fastest = fmax(fastest, bench_row_gflops(&report->rows[i]));
        for (int i = 0; i < MAX_PEAK_TRIES && peaks[t] <= fastest; i++) {
            double gflops = 0.0;
            cli_detail("measuring the peak on %u threads", threads);
            if (bench_measure_peak(threads, &gflops)) return -1;
            peaks[t] = fmax(peaks[t], gflops);
        }
        for (size_t i = 0; i < report->count; i++)
            if (report->rows[i].threads == threads) report->rows[i].peak_gflops = peaks[t];
    }
    return 0;
}

static int run(const bench_arguments *a)
{
    double peaks[OPTION_MAX_COUNTS] = {0};
    bench_report report = {.threads = a->threads.values,
                           .peaks = peaks,
                           .n_threads = a->no_peak ? 0 : a->threads.count,
                           .repetitions = (uint32_t)a->repetitions};
    const size_t n_failed = measure_all(a, &report);
    int code = !report.count ? CLI_FAILED : n_failed ? CLI_PARTIAL : CLI_OK;

    if (measure_peaks(a, &report, peaks)) code = CLI_FAILED;
    if (code != CLI_FAILED) bench_report_print(&report, a->format);
    for (size_t i = 0; i < report.count; i++) free(report.rows[i].model);
    free(report.rows);
    return code;
}

static option_outcome parse(bench_arguments *a, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        {"model", 'm', OPTION_STRINGS, &a->models, "MODEL", "model to measure; may be given again",
         0, 0},
        {"arch", 'a', OPTION_STRINGS, &a->archs, "NAME",
         "the same with random weights (renyi init --help)", 0, 0},
        {"batch-size", 'b', OPTION_COUNTS, &a->batches, "N,...", "batch sizes (1,8)", 1, 1024},
        {"threads", 't', OPTION_COUNTS, &a->threads, "N,...", "numbers of threads (1,2)", 1, 1024},
        {"repetitions", 'r', OPTION_COUNT, &a->repetitions, "N", "measured runs of each (20)", 1,
         100000},
        {"output", 'o', OPTION_CHOICE, &a->format, "md|csv|json", "form of the results (md)", 0, 0},
        {"no-peak", 0, OPTION_FLAG, &a->no_peak, "", "leave out the peak: quicker, no share of it",
         0, 0},
        {"image-size", 0, OPTION_COUNT, &a->image_size, "N", "input side in pixels (the model's)",
         1, 16384},
        {"cpu", 0, OPTION_CHOICE, &a->cpu, CPU_CHOICES, "CPU level of the kernels", 0, 0},
    };
    const verb_syntax syntax = {
        "bench", "-m MODEL [-m MODEL...] [options]",
        "Measures models on random input: median, p10 and p90 in ms per image, images/s, GFLOP/s, the share\n"
        "of this machine's own matrix-product peak (measured too), and peak memory. Every configuration\n"
        "runs in a process of its own, after a warm-up.",
        "  renyi bench -m model.safetensors -b 1,8 -t 1,2 -r 20\n"
        "  renyi bench --arch vit_small_patch16_224 --arch vit_base_patch16_224 -o json > bench.json\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

int cmd_bench(int argc, char **argv)
{
    bench_arguments a = {
        .batches = {{1, 8}, 2}, .threads = {{1, 2}, 2}, .repetitions = 20, .format = "md"};
    cli_strings words = {0};
    const option_outcome outcome = parse(&a, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO) {
        if (words.count)
            options_usage_error("bench", "unexpected '%s' (models are given with -m)",
                                words.items[0]);
        else if (!a.models.count && !a.archs.count)
            options_usage_error("bench", "-m MODEL or --arch NAME is missing");
        else
            code = run(&a);
    }
    cli_strings_free(&a.models);
    cli_strings_free(&a.archs);
    cli_strings_free(&words);
    return code;
}
