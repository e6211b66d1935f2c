/* bench_measure.c - see bench_measure.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench_measure.h"

#include "bench_child.h"

#include <stdlib.h>
#include <sys/resource.h>

/* Warm-up ends after so many rounds, or after the first that is later than this. */
enum { WARM_UP_ROUNDS = 3, WARM_UP_MS = 2000 };

/* The policies of one model and what they run on. */
typedef struct contest {
    const bench_config *config;
    renyi_model *model;
    renyi_model_info info;
    renyi_session **sessions; /* [n_policies] */
    uint8_t *pixels;          /* [batch, size, size, 3] */
    float *logits;            /* [batch, n_classes] */
    double *ms;               /* [repetitions, n_policies] per image */
} contest;

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The q-quantile (0..1) of sorted values, linear between neighbours. */
static double quantile(const double *sorted, size_t count, double q)
{
    const double at = q * (double)(count - 1);
    const size_t low = (size_t)at, high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

/* Any bytes will do: the time of a pass does not depend on them. Same bytes in every run. */
static void fill_pixels(uint8_t *pixels, size_t count)
{
    uint32_t state = 1;

    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u; /* Numerical Recipes' generator */
        pixels[i] = (uint8_t)(state >> 24);
    }
}

/* The model, and a session for every policy. */
static renyi_status contest_open(contest *c, renyi_error *err)
{
    const bench_config *config = c->config;

    renyi_status status = renyi_model_open(&c->model, config->path, &config->model_options, err);
    if (status != RENYI_OK) return status;
    renyi_model_get_info(c->model, &c->info);
    c->sessions = cli_alloc(config->n_policies, sizeof *c->sessions);
    for (size_t i = 0; status == RENYI_OK && i < config->n_policies; i++) {
        const renyi_session_options opt = {.struct_size = sizeof opt,
                                           .max_batch = config->batch,
                                           .n_threads = config->threads,
                                           .policy = config->policies[i]};
        status = renyi_session_new(&c->sessions[i], c->model, &opt, err);
    }
    return status;
}

static void contest_close(contest *c)
{
    for (size_t i = 0; c->sessions && i < c->config->n_policies; i++)
        renyi_session_free(c->sessions[i]);
    free(c->sessions);
    renyi_model_free(c->model);
    free(c->pixels);
    free(c->logits);
    free(c->ms);
}

/* Every policy runs once; ms: [n_policies] per image. */
static renyi_status run_round(contest *c, double *ms, renyi_error *err)
{
    const uint32_t batch = c->config->batch;

    for (size_t i = 0; i < c->config->n_policies; i++) {
        const double start = cli_now_ms();
        const renyi_status status =
            renyi_run_pixels(c->sessions[i], c->pixels, batch, c->logits, err);
        if (status != RENYI_OK) return status;
        ms[i] = (cli_now_ms() - start) / batch;
    }
    return RENYI_OK;
}

/* Warm-up, then the rounds that count. */
static renyi_status contest_run(contest *c, renyi_error *err)
{
    const size_t n_pixels = (size_t)c->config->batch * c->info.image_size * c->info.image_size * 3;
    const size_t n_policies = c->config->n_policies;
    renyi_status status = RENYI_OK;

    c->pixels = cli_alloc(n_pixels, 1);
    c->logits = cli_alloc((size_t)c->config->batch * c->info.n_classes, sizeof *c->logits);
    c->ms = cli_alloc(c->config->repetitions * n_policies, sizeof *c->ms);
    fill_pixels(c->pixels, n_pixels);
    const double start = cli_now_ms();
    for (int i = 0; status == RENYI_OK && i < WARM_UP_ROUNDS; i++) {
        if (i && cli_now_ms() - start > WARM_UP_MS) break;
        status = run_round(c, c->ms, err);
    }
    for (uint32_t r = 0; status == RENYI_OK && r < c->config->repetitions; r++)
        status = run_round(c, c->ms + r * n_policies, err);
    return status;
}

/* The rounds' times of a policy, or their ratios to the first policy in the same round: those are
 * blind to a machine that drifts from round to round. out: [repetitions], ascending. */
static void sorted_times(const contest *c, size_t policy, int as_ratio, double *out)
{
    const uint32_t rounds = c->config->repetitions;

    for (uint32_t r = 0; r < rounds; r++) {
        const double *ms = c->ms + r * c->config->n_policies;
        out[r] = as_ratio ? ms[policy] / ms[0] : ms[policy];
    }
    qsort(out, rounds, sizeof *out, compare_doubles);
}

static void fill_times(const contest *c, size_t policy, bench_numbers *out)
{
    const uint32_t rounds = c->config->repetitions;
    double *sorted = cli_alloc(rounds, sizeof *sorted);

    sorted_times(c, policy, 0, sorted);
    out->ms_median = quantile(sorted, rounds, 0.5);
    out->ms_p10 = quantile(sorted, rounds, 0.1);
    out->ms_p90 = quantile(sorted, rounds, 0.9);
    sorted_times(c, policy, 1, sorted);
    out->time_ratio = quantile(sorted, rounds, 0.5);
    free(sorted);
}

static renyi_status fill_numbers(const contest *c, size_t policy, bench_numbers *out,
                                 renyi_error *err)
{
    const char *text = renyi_session_policy(c->sessions[policy]);
    struct rusage usage;
    renyi_cost cost;

    const renyi_status status = renyi_policy_cost(c->model, NULL, text, &cost, NULL, 0, err);
    if (status != RENYI_OK) return status;
    fill_times(c, policy, out);
    out->macs_plain = cost.total.macs;
    out->macs = renyi_session_last_macs(c->sessions[policy]);
    getrusage(RUSAGE_SELF, &usage);
    out->peak_rss_mb = (double)usage.ru_maxrss * 1024e-6; /* Linux counts in KiB */
    snprintf(out->policy, sizeof out->policy, "%s", text);
    snprintf(out->architecture, sizeof out->architecture, "%s", c->info.architecture);
    snprintf(out->cpu_level, sizeof out->cpu_level, "%s", renyi_cpu_name(c->info.cpu));
    return RENYI_OK;
}

static int measure_here(const void *argument, void *result)
{
    contest c = {.config = argument};
    bench_numbers *numbers = result;
    renyi_error err = {0};

    renyi_status status = contest_open(&c, &err);
    const int is_misfit = status == RENYI_ERR_ARG && c.sessions && c.sessions[0];
    if (status == RENYI_OK) status = contest_run(&c, &err);
    for (size_t i = 0; status == RENYI_OK && i < c.config->n_policies; i++)
        status = fill_numbers(&c, i, &numbers[i], &err);
    if (status != RENYI_OK)
        cli_error("%s", err.message[0] ? err.message : renyi_status_name(status));
    contest_close(&c);
    return status == RENYI_OK ? CLI_OK : is_misfit ? CLI_USAGE : CLI_FAILED;
}

static int peak_here(const void *argument, void *result)
{
    renyi_error err = {0};

    if (renyi_measure_peak(*(const uint32_t *)argument, result, &err) == RENYI_OK) return CLI_OK;
    cli_error("%s", err.message[0] ? err.message : renyi_status_name(err.code));
    return CLI_FAILED;
}

int bench_measure(const bench_config *config, bench_numbers *out)
{
    return bench_in_child(measure_here, config, out, config->n_policies * sizeof *out);
}

int bench_measure_peak(uint32_t threads, double *gflops)
{
    return bench_in_child(peak_here, &threads, gflops, sizeof *gflops);
}
