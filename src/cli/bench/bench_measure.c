/* bench_measure.c - measures models in a child process: dtypes and policies take turns.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench/bench.h"
#include "cli/shared/images.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the child process --------------------------------------------------------------------- */

/* All of `size` bytes, or -1. */
static int read_exactly(int fd, void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = read(fd, (char *)to + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        done += (size_t)n;
    }
    return 0;
}

static int write_exactly(int fd, const void *from, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(fd, (const char *)from + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        done += (size_t)n;
    }
    return 0;
}

static _Noreturn void run_child(bench_work *work, const void *argument, void *result, size_t size,
                                int fd)
{
    signal(SIGINT, SIG_DFL); /* the parent cleans up */
    signal(SIGTERM, SIG_DFL);
    int code = work(argument, result);
    if (code == CLI_OK && write_exactly(fd, result, size)) code = CLI_FAILED;
    fflush(stderr);
    _exit(code);
}

int bench_in_child(bench_work *work, const void *argument, void *result, size_t size)
{
    int ends[2], status = 0;

    fflush(NULL);
    if (pipe(ends)) {
        cli_error("cannot make a pipe: %s", strerror(errno));
        return CLI_FAILED;
    }
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(work, argument, result, size, ends[1]);
    }
    if (child < 0) cli_error("cannot start a process: %s", strerror(errno));
    close(ends[1]);
    const int rc = child > 0 ? read_exactly(ends[0], result, size) : -1;
    close(ends[0]);
    if (child > 0) waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        cli_error("the measuring process was ended by signal %d", WTERMSIG(status));
    if (rc == 0) return CLI_OK;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : CLI_FAILED;
}

/* ---- the measurement ----------------------------------------------------------------------- */

/* Warm-up ends after this many rounds, or after the round that exceeds this time. */
enum { WARM_UP_ROUNDS = 3 };
static const double WARM_UP_MS = 2000;

/* The dtypes and policies of one model, and the buffers they run on. */
typedef struct measurement {
    const bench_config *config;
    size_t n;                 /* sessions: n_dtypes * n_policies */
    renyi_model **models;     /* [n_dtypes] */
    renyi_model_info info;    /* of the first */
    renyi_session **sessions; /* [n_dtypes, n_policies] */
    uint32_t images;          /* of a run: streams x batch */
    uint8_t *pixels;          /* [images, size, size, 3] */
    uint8_t *photos;          /* [those taken, size, size, 3] or NULL */
    double *macs;             /* [n] sums over the images of the measured rounds */
    uint64_t *twice;          /* [n] images of them that needed two passes */
    float *outputs;           /* [images, n_outputs] */
    double *ms;               /* [repetitions, n] per image */
} measurement;

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(double *values, size_t count, double q)
{
    const double at = q * (double)(count - 1);
    const size_t low = (size_t)at, high = low + 1 < count ? low + 1 : low;

    qsort(values, count, sizeof *values, compare_doubles);
    return values[low] + (at - (double)low) * (values[high] - values[low]);
}

/* The time of a pass does not depend on the bytes, that of a cascade does. They are the same in
 * every run. */
static void fill_pixels(uint8_t *pixels, size_t count)
{
    uint32_t state = 1;

    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u; /* Numerical Recipes' generator */
        pixels[i] = (uint8_t)(state >> 24);
    }
}

/* The model in one dtype, and a session for each policy. */
static renyi_status open_dtype(measurement *c, size_t dtype, renyi_error *err)
{
    const bench_config *config = c->config;
    renyi_options opt = config->model_options;

    opt.dtype = config->dtypes[dtype];
    renyi_status status = renyi_model_open(&c->models[dtype], config->path, &opt, err);
    for (size_t i = 0; status == RENYI_OK && i < config->n_policies; i++) {
        const renyi_session_options session = {.struct_size = sizeof session,
                                               .max_batch = c->images,
                                               .n_threads = config->threads,
                                               .policy = config->policies[i],
                                               .n_streams = config->streams};
        status = renyi_session_new(&c->sessions[dtype * config->n_policies + i], c->models[dtype],
                                   &session, err);
    }
    return status;
}

static renyi_status measurement_open(measurement *c, renyi_error *err)
{
    renyi_status status = RENYI_OK;

    c->images = c->config->batch * c->config->streams;
    c->n = c->config->n_dtypes * c->config->n_policies;
    c->models = cli_alloc(c->config->n_dtypes, sizeof *c->models);
    c->sessions = cli_alloc(c->n, sizeof *c->sessions);
    for (size_t i = 0; status == RENYI_OK && i < c->config->n_dtypes; i++)
        status = open_dtype(c, i, err);
    if (status == RENYI_OK) renyi_model_get_info(c->models[0], &c->info);
    return status;
}

static void measurement_close(measurement *c)
{
    for (size_t i = 0; i < c->n; i++) renyi_session_free(c->sessions[i]);
    for (size_t i = 0; i < c->config->n_dtypes; i++) renyi_model_free(c->models[i]);
    free(c->sessions);
    free(c->models);
    free(c->pixels);
    free(c->photos);
    free(c->macs);
    free(c->twice);
    free(c->outputs);
    free(c->ms);
}

static size_t image_bytes(const measurement *c)
{
    return (size_t)c->info.image_size * c->info.image_size * 3;
}

/* Decodes the photos that the rounds take: the first ones, at most all. */
static int load_photos(measurement *c)
{
    const cli_strings *list = c->config->photos;
    const image_overrides none = {0};
    image_spec spec;
    char *why = NULL;

    if (!list) return 0;
    if (image_spec_make(&spec, "bench", &c->info, &none)) return -1;
    const size_t taken = (size_t)c->config->repetitions * c->images;
    const size_t n = taken < list->count ? taken : list->count;
    c->photos = cli_alloc(n, image_bytes(c));
    for (size_t i = 0; i < n; i++)
        if (image_load(c->photos + i * image_bytes(c), list->items[i], &spec, &why)) {
            cli_error("%s: %s", list->items[i], why);
            free(why);
            return -1;
        }
    return 0;
}

/* The photos of one round; after the last comes the first. */
static void take_photos(measurement *c, uint32_t round)
{
    const size_t batch = c->images, each = image_bytes(c);

    for (size_t i = 0; c->photos && i < batch; i++)
        memcpy(c->pixels + i * each,
               c->photos + (round * batch + i) % c->config->photos->count * each, each);
}

static void count_passes(measurement *c)
{
    for (size_t i = 0; i < c->n; i++) {
        c->macs[i] += renyi_session_last_macs(c->sessions[i]);
        for (uint32_t k = 0; k < c->images; k++)
            c->twice[i] += renyi_session_passes(c->sessions[i], k) == 2;
    }
}

/* Each session runs once. ms: [n] per image. */
static renyi_status run_round(measurement *c, double *ms, renyi_error *err)
{
    for (size_t i = 0; i < c->n; i++) {
        const double start = cli_now_ms();
        const renyi_status status =
            renyi_run_pixels(c->sessions[i], c->pixels, c->images, c->outputs, err);
        if (status != RENYI_OK) return status;
        ms[i] = (cli_now_ms() - start) / c->images;
    }
    return RENYI_OK;
}

/* Warm-up, then the measured rounds. */
static renyi_status measurement_run(measurement *c, renyi_error *err)
{
    const size_t n_pixels = c->images * image_bytes(c);
    renyi_status status = RENYI_OK;

    c->pixels = cli_alloc(n_pixels, 1);
    c->outputs =
        cli_alloc((size_t)c->images * renyi_session_outputs(c->sessions[0]), sizeof *c->outputs);
    c->ms = cli_alloc(c->config->repetitions * c->n, sizeof *c->ms);
    c->macs = cli_alloc(c->n, sizeof *c->macs);
    c->twice = cli_alloc(c->n, sizeof *c->twice);
    fill_pixels(c->pixels, n_pixels);
    take_photos(c, 0);
    const double start = cli_now_ms();
    for (int i = 0; status == RENYI_OK && i < WARM_UP_ROUNDS; i++) {
        if (i && cli_now_ms() - start > WARM_UP_MS) break;
        status = run_round(c, c->ms, err);
    }
    for (uint32_t r = 0; status == RENYI_OK && r < c->config->repetitions; r++) {
        take_photos(c, r);
        status = run_round(c, c->ms + r * c->n, err);
        count_passes(c);
    }
    return status;
}

/* The times of session `who` in all rounds, or their ratios to those of `other` in the same round:
 * a machine that gets slower changes both. out: [repetitions] */
static void list_times(const measurement *c, size_t who, const size_t *other, double *out)
{
    const uint32_t rounds = c->config->repetitions;

    for (uint32_t r = 0; r < rounds; r++) {
        const double *ms = c->ms + r * c->n;
        out[r] = other ? ms[who] / ms[*other] : ms[who];
    }
}

static double mean_time(const measurement *c, size_t who)
{
    double sum = 0;

    for (uint32_t r = 0; r < c->config->repetitions; r++) sum += c->ms[r * c->n + who];
    return sum / c->config->repetitions;
}

static void fill_times(const measurement *c, size_t who, bench_numbers *out)
{
    const size_t policy = who % c->config->n_policies, dense = who - policy;
    const uint32_t rounds = c->config->repetitions;
    double *times = cli_alloc(rounds, sizeof *times);

    list_times(c, who, NULL, times);
    out->ms_median = bench_quantile(times, rounds, 0.5);
    out->ms_p10 = bench_quantile(times, rounds, 0.1);
    out->ms_p90 = bench_quantile(times, rounds, 0.9);
    out->ms_p95 = bench_quantile(times, rounds, 0.95);
    out->ms_mean = mean_time(c, who);
    list_times(c, who, &dense, times);
    out->time_ratio =
        c->photos ? out->ms_mean / mean_time(c, dense) : bench_quantile(times, rounds, 0.5);
    list_times(c, who, &policy, times); /* with the first dtype */
    out->speedup = 1.0 / bench_quantile(times, rounds, 0.5);
    free(times);
}

static renyi_status fill_numbers(const measurement *c, size_t who, bench_numbers *out,
                                 renyi_error *err)
{
    const char *text = renyi_session_policy(c->sessions[who]);
    const renyi_model *model = c->models[who / c->config->n_policies];
    renyi_model_info info;
    renyi_cost cost;

    const renyi_status status = renyi_policy_cost(model, NULL, text, &cost, NULL, 0, err);
    if (status != RENYI_OK) return status;
    renyi_model_get_info(model, &info);
    fill_times(c, who, out);
    out->macs_plain = cost.total.macs;
    out->macs = c->macs[who] / c->config->repetitions;
    out->second_share = cost.second.macs > 0
                            ? (double)c->twice[who] / c->config->repetitions / c->images
                            : (double)NAN;
    if (cost.second.macs > 0 && !c->photos)
        cli_note("%s: random input has no meaningful margins; give photos with --data-dir", text);
    out->peak_rss_mb = cli_peak_rss_bytes() * 1e-6;
    snprintf(out->policy, sizeof out->policy, "%s", text);
    snprintf(out->architecture, sizeof out->architecture, "%s", info.architecture);
    snprintf(out->cpu_level, sizeof out->cpu_level, "%s", renyi_cpu_name(info.cpu));
    snprintf(out->dtype, sizeof out->dtype, "%s", renyi_dtype_name(info.dtype));
    return RENYI_OK;
}

static int measure_here(const void *argument, void *result)
{
    measurement c = {.config = argument};
    bench_numbers *numbers = result;
    renyi_error err = {0};

    renyi_status status = measurement_open(&c, &err);
    const int is_misfit = status == RENYI_ERR_ARG && c.sessions[0];
    if (status == RENYI_OK && load_photos(&c)) {
        measurement_close(&c);
        return CLI_FAILED;
    }
    if (status == RENYI_OK) status = measurement_run(&c, &err);
    for (size_t i = 0; status == RENYI_OK && i < c.n; i++)
        status = fill_numbers(&c, i, &numbers[i], &err);
    if (status != RENYI_OK) cli_fail(&err);
    measurement_close(&c);
    return status == RENYI_OK ? CLI_OK : is_misfit ? CLI_USAGE : CLI_FAILED;
}

static int peak_here(const void *argument, void *result)
{
    renyi_error err = {0};

    if (renyi_measure_peak(*(const uint32_t *)argument, result, &err) == RENYI_OK) return CLI_OK;
    return cli_fail(&err);
}

int bench_measure(const bench_config *config, bench_numbers *out)
{
    return bench_in_child(measure_here, config, out,
                          config->n_dtypes * config->n_policies * sizeof *out);
}

int bench_measure_peak(uint32_t threads, double *gflops)
{
    return bench_in_child(peak_here, &threads, gflops, sizeof *gflops);
}
