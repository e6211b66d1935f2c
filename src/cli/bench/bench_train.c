/* bench_train.c - measures training steps and the forward pass, policies in turn, and prints both.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench/bench.h"
#include "cli/kit/output.h"

#include "renyi/train.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the measurement ----------------------------------------------------------------------- */

enum { FORWARD, PASS, STEP, TIMES }; /* the times of each policy */

/* A model, and for each policy a session and a learner. */
typedef struct measurement {
    const bench_config *config;
    renyi_model *model;
    renyi_model_info info;
    renyi_session **sessions; /* [n_policies] */
    renyi_learner **learners; /* [n_policies] */
    float *images;            /* [batch, 3, size, size] */
    uint32_t *labels;         /* [batch] */
    float *logits;            /* [batch, n_classes] */
    double *ms;               /* [repetitions, n_policies, TIMES] per image */
} measurement;

static renyi_status open_policy(measurement *c, size_t i, renyi_error *err)
{
    const bench_config *config = c->config;
    const renyi_session_options session = {.struct_size = sizeof session,
                                           .max_batch = config->batch,
                                           .n_threads = config->threads,
                                           .policy = config->policies[i]};
    const renyi_learner_options learner = {.struct_size = sizeof learner,
                                           .n_threads = config->threads,
                                           .image_size = config->model_options.image_size,
                                           .dtype = config->dtypes[0],
                                           .cpu = config->model_options.cpu,
                                           .policy = config->policies[i],
                                           .weight_decay = 0.05};

    const renyi_status status = renyi_session_new(&c->sessions[i], c->model, &session, err);
    if (status != RENYI_OK) return status;
    return renyi_learner_new(&c->learners[i], config->path, &learner, err);
}

static renyi_status measurement_open(measurement *c, renyi_error *err)
{
    const bench_config *config = c->config;
    renyi_options opt = config->model_options;

    opt.dtype = config->dtypes[0];
    c->sessions = cli_alloc(config->n_policies, sizeof *c->sessions);
    c->learners = cli_alloc(config->n_policies, sizeof *c->learners);
    renyi_status status = renyi_model_open(&c->model, config->path, &opt, err);
    if (status == RENYI_OK) renyi_model_get_info(c->model, &c->info);
    for (size_t i = 0; status == RENYI_OK && i < config->n_policies; i++)
        status = open_policy(c, i, err);
    return status;
}

static void measurement_close(measurement *c)
{
    for (size_t i = 0; i < c->config->n_policies; i++) {
        renyi_learner_free(c->learners[i]);
        renyi_session_free(c->sessions[i]);
    }
    renyi_model_free(c->model);
    free(c->sessions);
    free(c->learners);
    free(c->images);
    free(c->labels);
    free(c->logits);
    free(c->ms);
}

/* Random values between -2 and 2, and any labels: the time of a step does not depend on them. */
static void fill_batch(measurement *c)
{
    const uint32_t batch = c->config->batch;
    const size_t n = (size_t)batch * 3 * c->info.image_size * c->info.image_size;
    uint32_t state = 1;

    c->images = cli_alloc(n, sizeof *c->images);
    c->labels = cli_alloc(batch, sizeof *c->labels);
    c->logits = cli_alloc((size_t)batch * c->info.n_classes, sizeof *c->logits);
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u; /* Numerical Recipes' generator */
        c->images[i] = (float)(state >> 8) * 0x1p-22f - 2.0f;
    }
    for (uint32_t i = 0; i < batch; i++) c->labels[i] = i % c->info.n_classes;
}

/* Each policy does each thing once. With a learning rate of 0 the update is computed, but the
 * weights stay the same, so that they never overflow. ms: [n_policies, TIMES] */
static renyi_status run_round(measurement *c, double *ms, renyi_error *err)
{
    const uint32_t n = c->config->batch;
    renyi_status status = RENYI_OK;

    for (size_t i = 0; i < c->config->n_policies * TIMES && status == RENYI_OK; i++) {
        const double start = cli_now_ms();
        renyi_learner *learner = c->learners[i / TIMES];
        if (i % TIMES == FORWARD)
            status = renyi_run_tensor(c->sessions[i / TIMES], c->images, n, c->logits, err);
        else if (i % TIMES == PASS)
            status = renyi_learner_forward(learner, c->images, n, c->logits, err);
        else
            status = renyi_learner_step(learner, c->images, c->labels, n, 0.0, NULL, err);
        ms[i] = (cli_now_ms() - start) / n;
    }
    return status;
}

/* Median of time `what` of policy `who`, or of its ratio to time `than` of policy `other` in the
 * same round. */
static double median_of(const measurement *c, size_t who, int what, const size_t *other, int than)
{
    const uint32_t rounds = c->config->repetitions;
    double *values = cli_alloc(rounds, sizeof *values);

    for (uint32_t r = 0; r < rounds; r++) {
        const double *ms = c->ms + r * c->config->n_policies * TIMES;
        values[r] = ms[who * TIMES + (size_t)what];
        if (other) values[r] /= ms[*other * TIMES + (size_t)than];
    }
    const double median = bench_quantile(values, rounds, 0.5);
    free(values);
    return median;
}

static void fill_numbers(const measurement *c, size_t who, bench_train_numbers *out)
{
    static const size_t dense = 0;
    renyi_learner_info info;

    renyi_learner_get_info(c->learners[who], &info);
    *out = (bench_train_numbers){.forward_ms = median_of(c, who, FORWARD, NULL, 0),
                                 .pass_ms = median_of(c, who, PASS, NULL, 0),
                                 .step_ms = median_of(c, who, STEP, NULL, 0),
                                 .step_forward = median_of(c, who, STEP, &who, FORWARD),
                                 .time_ratio = median_of(c, who, STEP, &dense, STEP),
                                 .macs = info.macs_forward,
                                 .activations_mb = (double)info.bytes_activations * 1e-6,
                                 .parameters_mb = (double)info.bytes_parameters * 1e-6,
                                 .peak_rss_mb = cli_peak_rss_bytes() * 1e-6,
                                 .micro_batch = info.micro_batch};
    snprintf(out->policy, sizeof out->policy, "%s", info.policy);
    snprintf(out->cpu_level, sizeof out->cpu_level, "%s", renyi_cpu_name(c->info.cpu));
    snprintf(out->dtype, sizeof out->dtype, "%s", renyi_dtype_name(c->info.dtype));
}

static int measure_here(const void *argument, void *result)
{
    measurement c = {.config = argument};
    bench_train_numbers *numbers = result;
    renyi_error err = {0};

    renyi_status status = measurement_open(&c, &err);
    const int is_misfit = status == RENYI_ERR_ARG && c.learners[0];
    if (status == RENYI_OK) {
        c.ms = cli_alloc(c.config->repetitions * c.config->n_policies * TIMES, sizeof *c.ms);
        fill_batch(&c);
        status = run_round(&c, c.ms, &err); /* warm-up */
    }
    for (uint32_t r = 0; status == RENYI_OK && r < c.config->repetitions; r++)
        status = run_round(&c, c.ms + r * c.config->n_policies * TIMES, &err);
    for (size_t i = 0; status == RENYI_OK && i < c.config->n_policies; i++)
        fill_numbers(&c, i, &numbers[i]);
    if (status != RENYI_OK) cli_fail(&err);
    measurement_close(&c);
    return status == RENYI_OK ? CLI_OK : is_misfit ? CLI_USAGE : CLI_FAILED;
}

int bench_train_measure(const bench_config *config, bench_train_numbers *out)
{
    return bench_in_child(measure_here, config, out, config->n_policies * sizeof *out);
}

/* ---- the results --------------------------------------------------------------------------- */

/* A number of a row; they are in the order of the columns. */
typedef struct figure {
    const char *key, *title;
    int digits;
    double value;
} figure;

enum { FIGURES = 11 };

static void figures_of(const bench_train_row *r, figure out[FIGURES])
{
    const bench_train_numbers *n = &r->numbers;
    const int is_dense = isnan(r->mac_ratio);
    const figure list[FIGURES] = {
        {"gmacs_forward", "GMACs forward", 3, n->macs * 1e-9},
        {"forward_ms", "forward ms", 2, n->forward_ms},
        {"pass_ms", "pass ms", 2, n->pass_ms},
        {"step_ms", "step ms", 2, n->step_ms},
        {"step_forward", "step/forward", 2, n->step_forward},
        {"images_per_second", "images/s", 2, 1e3 / n->step_ms},
        {"activations_mb", "activations MB", 0, n->activations_mb},
        {"peak_rss_mb", "RSS MB", 0, n->peak_rss_mb},
        {"time_ratio", "step/dense", 3, is_dense ? (double)NAN : n->time_ratio},
        {"mac_ratio", "MACs/dense", 3, r->mac_ratio},
        {"quotient", "x", 3, is_dense ? (double)NAN : n->time_ratio / r->mac_ratio},
    };
    memcpy(out, list, sizeof list);
}

static void put_table(const bench_train_row *rows, size_t count, uint32_t repetitions)
{
    static const char *const titles[] = {"model", "dtype", "policy"};
    text_table table = {0};
    figure f[FIGURES];
    char *cpu = cli_cpu_name();

    printf("CPU: %s, %s\n", cpu, rows[0].numbers.cpu_level);
    printf(
        "ms per image, median of %u rounds in turn. forward: an answer; pass: the trainer's own, "
        "which saves its activations;\nstep: forward, backward and AdamW; x = (step / dense) / "
        "(MACs / dense).\n\n",
        repetitions);
    free(cpu);
    figures_of(&rows[0], f);
    for (size_t i = 0; i < 3; i++) text_table_column(&table, TEXT_LEFT, "%s", titles[i]);
    text_table_column(&table, TEXT_RIGHT, "batch");
    text_table_column(&table, TEXT_RIGHT, "threads");
    for (size_t i = 0; i < FIGURES; i++) text_table_column(&table, TEXT_RIGHT, "%s", f[i].title);
    for (size_t r = 0; r < count; r++) {
        const char *const texts[] = {rows[r].model, rows[r].numbers.dtype, rows[r].policy};
        figures_of(&rows[r], f);
        for (size_t i = 0; i < 3; i++) text_table_cell(&table, "%s", texts[i]);
        text_table_cell(&table, "%u", rows[r].batch);
        text_table_cell(&table, "%u", rows[r].threads);
        for (size_t i = 0; i < FIGURES; i++)
            if (isnan(f[i].value))
                text_table_cell(&table, "-");
            else
                text_table_cell(&table, "%.*f", f[i].digits, f[i].value);
    }
    text_table_put(&table, 1, 0);
}

static void put_csv(const bench_train_row *rows, size_t count)
{
    figure f[FIGURES];

    figures_of(&rows[0], f);
    fputs("model,dtype,policy,batch,threads,micro_batch", stdout);
    for (size_t i = 0; i < FIGURES; i++) printf(",%s", f[i].key);
    for (size_t r = 0; r < count; r++) {
        putchar('\n');
        csv_cell(stdout, rows[r].model);
        printf(",%s,", rows[r].numbers.dtype);
        csv_cell(stdout, rows[r].numbers.policy);
        printf(",%u,%u,%u", rows[r].batch, rows[r].threads, rows[r].numbers.micro_batch);
        figures_of(&rows[r], f);
        for (size_t i = 0; i < FIGURES; i++) csv_real(stdout, 4, f[i].value);
    }
    putchar('\n');
}

static void put_json(const bench_train_row *rows, size_t count, uint32_t repetitions)
{
    json_t *results = json_array();
    char *cpu = cli_cpu_name();

    for (size_t r = 0; r < count; r++) {
        const bench_train_numbers *n = &rows[r].numbers;
        json_t *row =
            json_pack("{s:o, s:s, s:o, s:i, s:i, s:i}", "model", json_text(rows[r].model), "dtype",
                      n->dtype, "policy", json_text(n->policy), "batch", (int)rows[r].batch,
                      "threads", (int)rows[r].threads, "micro_batch", (int)n->micro_batch);
        figure f[FIGURES];
        figures_of(&rows[r], f);
        for (size_t i = 0; i < FIGURES; i++)
            json_object_set_new(row, f[i].key, json_number(f[i].value));
        json_array_append_new(results, row);
    }
    json_print(json_pack("{s:o, s:s, s:s, s:i, s:o}", "cpu", json_text(cpu), "cpu_level",
                         rows[0].numbers.cpu_level, "version", renyi_version(), "repetitions",
                         (int)repetitions, "train", results));
    free(cpu);
}

void bench_train_print(const bench_train_row *rows, size_t count, uint32_t repetitions,
                       const char *format)
{
    if (strcmp(format, "csv") == 0)
        put_csv(rows, count);
    else if (strcmp(format, "json") == 0)
        put_json(rows, count, repetitions);
    else
        put_table(rows, count, repetitions);
}
