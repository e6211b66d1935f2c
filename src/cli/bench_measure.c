/* bench_measure.c - see bench_measure.h.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The parent never touches a model: a child's high-water mark of memory is then that of one
 * configuration, and no thread pool is carried across fork.
 */
#include "bench_measure.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WARM_UP_RUNS = 3 };

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(const double *sorted, size_t count, double q)
{
    const double at = q * (double)(count - 1);
    const size_t low = (size_t)at, high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

/* Any bytes will do: the time of a dense pass does not depend on them. Same bytes in every run. */
static void fill_pixels(uint8_t *pixels, size_t count)
{
    uint32_t state = 1;

    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u; /* Numerical Recipes' generator */
        pixels[i] = (uint8_t)(state >> 24);
    }
}

static renyi_status time_runs(renyi_session *session, const bench_config *c,
                              const renyi_model_info *info, double *ms, renyi_error *err)
{
    const size_t n_pixels = (size_t)c->batch * info->image_size * info->image_size * 3;
    uint8_t *pixels = cli_alloc(n_pixels, 1);
    float *logits = cli_alloc((size_t)c->batch * info->n_classes, sizeof *logits);
    renyi_status status = RENYI_OK;

    fill_pixels(pixels, n_pixels);
    for (uint32_t i = 0; status == RENYI_OK && i < WARM_UP_RUNS + c->repetitions; i++) {
        const double start = cli_now_ms();
        status = renyi_run_pixels(session, pixels, c->batch, logits, err);
        if (i >= WARM_UP_RUNS) ms[i - WARM_UP_RUNS] = (cli_now_ms() - start) / c->batch;
    }
    free(logits);
    free(pixels);
    return status;
}

static void fill_numbers(bench_numbers *out, double *ms, uint32_t count,
                         const renyi_model_info *info, const renyi_session *session)
{
    struct rusage usage;

    qsort(ms, count, sizeof *ms, compare_doubles);
    out->ms_median = bench_quantile(ms, count, 0.5);
    out->ms_p10 = bench_quantile(ms, count, 0.1);
    out->ms_p90 = bench_quantile(ms, count, 0.9);
    out->macs = renyi_session_macs(session); /* what is really computed, not the nominal count */
    getrusage(RUSAGE_SELF, &usage);
    out->peak_rss_mb = (double)usage.ru_maxrss * 1024e-6; /* Linux counts in KiB */
    snprintf(out->architecture, sizeof out->architecture, "%s", info->architecture);
    snprintf(out->cpu_level, sizeof out->cpu_level, "%s", renyi_cpu_name(info->cpu));
}

static int measure_here(const void *argument, void *result)
{
    const bench_config *c = argument;
    const renyi_session_options session_options = {
        .struct_size = sizeof session_options, .max_batch = c->batch, .n_threads = c->threads};
    double *ms = cli_alloc(c->repetitions, sizeof *ms);
    renyi_session *session = NULL;
    renyi_model *model = NULL;
    renyi_model_info info;
    renyi_error err = {0};

    renyi_status status = renyi_model_open(&model, c->path, &c->model_options, &err);
    if (status == RENYI_OK) status = renyi_session_new(&session, model, &session_options, &err);
    if (status == RENYI_OK) {
        renyi_model_get_info(model, &info);
        status = time_runs(session, c, &info, ms, &err);
    }
    if (status == RENYI_OK)
        fill_numbers(result, ms, c->repetitions, &info, session);
    else
        cli_error("%s", err.message[0] ? err.message : renyi_status_name(status));
    renyi_session_free(session);
    renyi_model_free(model);
    free(ms);
    return status == RENYI_OK ? 0 : -1;
}

static int peak_here(const void *argument, void *result)
{
    renyi_error err = {0};

    if (renyi_measure_peak(*(const uint32_t *)argument, result, &err) == RENYI_OK) return 0;
    cli_error("%s", err.message[0] ? err.message : renyi_status_name(err.code));
    return -1;
}

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

/* Run work(argument, result) in a child and carry `size` bytes of result over. */
static int in_child(int (*work)(const void *, void *), const void *argument, void *result,
                    size_t size)
{
    int ends[2], status = 0;

    fflush(NULL);
    if (pipe(ends)) {
        cli_error("cannot make a pipe: %s", strerror(errno));
        return -1;
    }
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGINT, SIG_DFL); /* cleaning up is the parent's */
        signal(SIGTERM, SIG_DFL);
        close(ends[0]);
        int rc = work(argument, result);
        if (rc == 0 && write(ends[1], result, size) != (ssize_t)size) rc = -1;
        fflush(stderr);
        _exit(rc ? CLI_FAILED : CLI_OK);
    }
    close(ends[1]);
    const int rc = child > 0 ? read_exactly(ends[0], result, size) : -1;
    close(ends[0]);
    if (child < 0) cli_error("cannot start a process: %s", strerror(errno));
    if (child > 0) waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        cli_error("the measuring process was ended by signal %d", WTERMSIG(status));
    return rc;
}

int bench_measure(const bench_config *config, bench_numbers *out)
{
    return in_child(measure_here, config, out, sizeof *out);
}

int bench_measure_peak(uint32_t threads, double *gflops)
{
    return in_child(peak_here, &threads, gflops, sizeof *gflops);
}
