/* cmd_bench.c - renyi bench: measures speed and memory of models on this machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench/bench.h"
#include "cli/shared/images.h"
#include "cli/shared/models.h"
#include "cli/shared/prune_options.h"
#include "cli/verbs.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct bench_arguments {
    cli_strings models, archs;
    prune_options prune;
    option_counts batches, threads;
    uint64_t repetitions, image_size, streams;
    const char *format, *cpu, *dtype_list, *data_dir;
    image_inputs photos; /* of data_dir */
    dtype_list dtypes;
    int no_peak, train, json;
    cli_strings texts;     /* of the pruning options */
    const char **policies; /* [n_policies] "none", then those of them that prune */
    size_t n_policies;
} bench_arguments;

/* "none", which the others are compared with, comes first even if it was not given. CLI_OK, or
 * another exit code after reporting a policy that fits no model. */
static int list_policies(bench_arguments *a)
{
    char full[RENYI_POLICY_MAX];

    int code = prune_policies("bench", &a->prune, &a->texts);

    if (code != CLI_OK) return code;
    a->policies = cli_alloc(a->texts.count + 1, sizeof *a->policies);
    a->policies[a->n_policies++] = "none";
    for (size_t i = 0; i < a->texts.count; i++) {
        const char *text = a->texts.items[i];
        code = prune_check("bench", text, NULL, full);
        if (code != CLI_OK) return code;
        if (strcmp(full, "none") != 0) a->policies[a->n_policies++] = text;
    }
    return CLI_OK;
}

/* ---- the model of --arch ------------------------------------------------------------------- */

/* A random model on disk, removed after the measurement and also when a signal ends the program.
 * Hence the file-scope variables: a signal handler can use nothing else. */
static char directory[400], file[440];

static void remove_files(void)
{
    if (file[0]) unlink(file);
    if (directory[0]) rmdir(directory);
}

static void end_by_signal(int number)
{
    remove_files(); /* unlink and rmdir may be called here */
    signal(number, SIG_DFL);
    raise(number);
}

static void temporary_model_remove(void)
{
    remove_files();
    file[0] = directory[0] = 0;
}

/* Path of a model of this architecture in $TMPDIR (or /tmp); one at a time. NULL after reporting.
 */
static const char *temporary_model_make(const char *architecture)
{
    const renyi_init_options opt = {.struct_size = sizeof opt, .seed = 1};
    const char *parent = getenv("TMPDIR");
    renyi_error err = {0};

    temporary_model_remove();
    snprintf(directory, sizeof directory, "%s/renyi-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(directory)) {
        cli_error("%s: %s", directory, strerror(errno));
        directory[0] = 0;
        return NULL;
    }
    snprintf(file, sizeof file, "%s/model.safetensors", directory);
    signal(SIGINT, end_by_signal);
    signal(SIGTERM, end_by_signal);
    signal(SIGHUP, end_by_signal);
    if (renyi_model_init_file(file, architecture, &opt, &err) == RENYI_OK) return file;
    cli_fail(&err);
    temporary_model_remove();
    return NULL;
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* All that was measured: forward passes, or training steps. */
typedef struct bench_results {
    bench_report report;
    bench_train_row *train; /* [n_train] */
    size_t n_train;
} bench_results;

/* Appends the rows of one measurement to the report. */
static void add_rows(bench_report *report, const bench_config *config, const char *title,
                     const bench_numbers *numbers)
{
    for (size_t i = 0; i < config->n_dtypes * config->n_policies; i++) {
        const size_t policy = i % config->n_policies;
        const bench_row row = {
            .model = cli_copy(title),
            .policy = config->policies[policy],
            .batch = config->batch,
            .threads = config->threads,
            .streams = config->streams,
            .faster_than =
                i < config->n_policies ? NULL : renyi_dtype_name(dtype_from_name(numbers[0].dtype)),
            .mac_ratio = policy ? numbers[i].macs / numbers[i - policy].macs : (double)NAN,
            .numbers = numbers[i]};
        report->rows = cli_grow(report->rows, report->count + 1, sizeof row);
        report->rows[report->count++] = row;
    }
}

static int measure_passes(const bench_config *config, const char *title, bench_results *results)
{
    bench_numbers *numbers = cli_alloc(config->n_dtypes * config->n_policies, sizeof *numbers);
    const int code = bench_measure(config, numbers);

    if (code == CLI_OK) add_rows(&results->report, config, title, numbers);
    free(numbers);
    return code;
}

static int measure_steps(const bench_config *config, const char *title, bench_results *results)
{
    bench_train_numbers *numbers = cli_alloc(config->n_policies, sizeof *numbers);
    const int code = bench_train_measure(config, numbers);

    for (size_t i = 0; code == CLI_OK && i < config->n_policies; i++) {
        const bench_train_row row = {.model = cli_copy(title),
                                     .policy = config->policies[i],
                                     .batch = config->batch,
                                     .threads = config->threads,
                                     .mac_ratio =
                                         i ? numbers[i].macs / numbers[0].macs : (double)NAN,
                                     .numbers = numbers[i]};
        results->train = cli_grow(results->train, results->n_train + 1, sizeof row);
        results->train[results->n_train++] = row;
    }
    free(numbers);
    return code;
}

/* Each batch size with each number of threads. Returns an exit code. */
static int measure_model(const bench_arguments *a, const char *path, const char *title,
                         bench_results *results)
{
    bench_config config = {.path = path,
                           .repetitions = (uint32_t)a->repetitions,
                           .streams = (uint32_t)a->streams,
                           .policies = a->policies,
                           .n_policies = a->n_policies,
                           .dtypes = a->dtypes.items,
                           .n_dtypes = a->dtypes.n,
                           .photos = a->data_dir ? &a->photos.paths : NULL};
    int code = CLI_OK;

    config.model_options = model_options(a->cpu, NULL, a->image_size);
    for (size_t t = 0; code == CLI_OK && t < a->threads.count; t++)
        for (size_t b = 0; code == CLI_OK && b < a->batches.count; b++) {
            config.batch = (uint32_t)a->batches.values[b];
            config.threads = (uint32_t)a->threads.values[t];
            const size_t images = (size_t)config.batch * a->streams;
            if (!a->repetitions) /* each photo once */
                config.repetitions = (uint32_t)((a->photos.paths.count + images - 1) / images);
            cli_detail("measuring %s, batch %u, %u threads", title, config.batch, config.threads);
            code = (a->train ? measure_steps : measure_passes)(&config, title, results);
        }
    return code;
}

/* Returns CLI_PARTIAL if some models failed, the code of the first failure if all did. */
static int measure_all(const bench_arguments *a, bench_results *results)
{
    int failure = CLI_OK;

    for (size_t i = 0; i < a->models.count; i++) {
        char *path = model_path_resolve(a->models.items[i]);
        char *title = model_path_title(a->models.items[i]);
        const int code = path ? measure_model(a, path, title, results) : CLI_FAILED;
        if (!failure) failure = code;
        free(title);
        free(path);
    }
    for (size_t i = 0; i < a->archs.count; i++) {
        const char *path = temporary_model_make(a->archs.items[i]);
        const int code = path ? measure_model(a, path, a->archs.items[i], results) : CLI_FAILED;
        if (!failure) failure = code;
        temporary_model_remove();
    }
    return failure && results->report.count + results->n_train ? CLI_PARTIAL : failure;
}

enum { MAX_PEAK_TRIES = 3 };

/* The f32 peak for each number of threads. Measured again if a model was faster than the peak:
 * other programs may have slowed the first measurement. */
static int measure_peaks(const bench_arguments *a, bench_report *report, double *peaks)
{
    for (size_t t = 0; report->count && !a->no_peak && t < a->threads.count; t++) {
        const uint32_t threads = (uint32_t)a->threads.values[t];
        double fastest = 0.0;
        for (size_t i = 0; i < report->count; i++)
            if (report->rows[i].threads == threads && bench_row_is_f32(&report->rows[i]))
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

static int measure_and_print(const bench_arguments *a)
{
    double peaks[OPTION_MAX_COUNTS] = {0};
    bench_results results = {.report = {.threads = a->threads.values,
                                        .peaks = peaks,
                                        .n_threads = a->no_peak ? 0 : a->threads.count,
                                        .repetitions = (uint32_t)a->repetitions,
                                        .n_photos = a->photos.paths.count}};
    const bench_report *report = &results.report;
    int code = measure_all(a, &results);

    if (measure_peaks(a, &results.report, peaks)) code = CLI_FAILED;
    if (report->count && code != CLI_FAILED) bench_report_print(report, a->format);
    if (results.n_train)
        bench_train_print(results.train, results.n_train, report->repetitions, a->format);
    for (size_t i = 0; i < report->count; i++) free(report->rows[i].model);
    for (size_t i = 0; i < results.n_train; i++) free(results.train[i].model);
    free(results.report.rows);
    free(results.train);
    return code;
}

static option_outcome parse_options(bench_arguments *a, int argc, char **argv,
                                    cli_strings *arguments)
{
    const option table[] = {
        {"model", 'm', OPTION_STRINGS, &a->models, "MODEL",
         MODEL_HELP "; may be repeated (builtin)", 0, 0},
        {"arch", 'a', OPTION_STRINGS, &a->archs, "NAME",
         "architecture with random weights (renyi init --help)", 0, 0},
        {"batch-size", 'b', OPTION_COUNTS, &a->batches, "N,...", "batch sizes (1,8)", 1, 1024},
        {"threads", 't', OPTION_COUNTS, &a->threads, "N,...", "numbers of threads (1,2)", 1, 1024},
        {"streams", 0, OPTION_COUNT, &a->streams, "N",
         "batches run at the same time, each on its share of the threads (1)", 1, 64},
        {"repetitions", 0, OPTION_COUNT, &a->repetitions, "N", "measured runs of each (20)", 1,
         100000},
        {"data-dir", 0, OPTION_STRING, &a->data_dir, "DIR",
         "run photos instead of random input: each once, or as --repetitions says", 0, 0},
        {"format", 0, OPTION_CHOICE, &a->format, "md|csv|json", "format of the results (md)", 0, 0},
        {"json", 0, OPTION_FLAG, &a->json, "", "the same as --format json", 0, 0},
        {"train", 0, OPTION_FLAG, &a->train, "",
         "training steps instead of forward passes (then -b 32, -t 2, --repetitions 5)", 0, 0},
        {"no-peak", 0, OPTION_FLAG, &a->no_peak, "",
         "do not measure the peak: quicker, no share of it", 0, 0},
        SIZE_OPTION_ROWS(a),
        {"cpu", 0, OPTION_CHOICE, &a->cpu, CPU_CHOICES, "CPU level of the kernels", 0, 0},
        {"dtype", 0, OPTION_STRING, &a->dtype_list, "D,...",
         "dtypes of the matrix products in the blocks: " DTYPE_CHOICES " (the file's)", 0, 0},
        PRUNE_OPTION_ROWS(&a->prune),
    };
    const verb_syntax syntax = {
        "bench", "[-m MODEL]... [--arch NAME]... [options]",
        "Measures models on random input: median, p10 and p90 in ms per image, images/s, GFLOP/s, the share\n"
        "of the machine's matrix-product peak (measured, too), and peak memory. Each configuration runs in\n"
        "its own process, after a warm-up. With --prune the dense model and all policies run in turn in one\n"
        "process; time/dense beside MACs/dense shows how much of the saving becomes speed. With several\n"
        "--dtype the dtypes take turns, too; the last column is the speedup over the first. With --train a\n"
        "training step (forward, backward, AdamW) is measured beside the forward pass. With --streams N batches\n"
        "run at the same time; ms is their time divided by all their images. The time of a cascade depends on\n"
        "the image: with --data-dir the mean and p95 over photos are printed, too, and time/dense is that of\n"
        "the means.",
        "  renyi bench -m model.safetensors -b 1,8 -t 1,2 --repetitions 20\n"
        "  renyi bench -m model.safetensors --prune \"mosaic keep=0.7 layers=0,3,6\" --prune \"naive p=16 layers=0-5\"\n"
        "  renyi bench -m model.safetensors --dtype f32,int8 -b 8 -t 2\n"
        "  renyi bench -m model.safetensors -b 1 -t 2 --streams 2\n"
        "  renyi bench --train --arch vit_small_patch16_224 -t 2 --prune \"evit keep=0.7 layers=0,3,6\"\n"
        "  renyi bench -m model.safetensors -b 1 -t 2 --data-dir photos --prune half --prune sure\n"
        "  renyi bench --arch vit_small_patch16_224 --arch vit_base_patch16_224 --json > bench.json\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

/* Values of the options that were not given. */
static void set_defaults(bench_arguments *a)
{
    if (!a->models.count && !a->archs.count)
        cli_strings_add(&a->models, cli_copy(model_or_builtin(NULL)));
    if (!a->batches.count)
        a->batches = a->train ? (option_counts){{32}, 1} : (option_counts){{1, 8}, 2};
    if (!a->threads.count)
        a->threads = a->train ? (option_counts){{2}, 1} : (option_counts){{1, 2}, 2};
    if (!a->streams) a->streams = 1;
    if (a->json) a->format = "json";
    if (!a->repetitions && !a->data_dir) a->repetitions = a->train ? 5 : 20;
}

static int list_photos(bench_arguments *a)
{
    cli_strings folder = {0};

    if (!a->data_dir) return CLI_OK;
    cli_strings_add(&folder, cli_copy(a->data_dir));
    image_inputs_collect(&a->photos, &folder, NULL, 1);
    cli_strings_free(&folder);
    if (a->photos.paths.count) return CLI_OK;
    if (!a->photos.n_failed) cli_error("%s: no images", a->data_dir);
    return CLI_FAILED;
}

int cmd_bench(int argc, char **argv)
{
    bench_arguments a = {.format = "md"};
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO) {
        set_defaults(&a);
        if (arguments.count)
            options_usage_error("bench", "unexpected '%s' (models are given with -m)",
                                arguments.items[0]);
        else if (a.train && a.streams > 1)
            options_usage_error("bench", "--train takes no --streams: a step has one batch");
        else if (a.train && a.data_dir)
            options_usage_error("bench", "--train runs on random input; leave --data-dir out");
        else if (a.train && a.dtype_list && strchr(a.dtype_list, ','))
            options_usage_error("bench", "--train takes one --dtype");
        else if ((code = dtype_list_parse(&a.dtypes, "bench", a.dtype_list)) == CLI_OK &&
                 (code = list_policies(&a)) == CLI_OK && (code = list_photos(&a)) == CLI_OK)
            code = measure_and_print(&a);
    }
    free(a.policies);
    image_inputs_free(&a.photos);
    cli_strings_free(&a.texts);
    prune_options_free(&a.prune);
    cli_strings_free(&a.models);
    cli_strings_free(&a.archs);
    cli_strings_free(&arguments);
    return code;
}
