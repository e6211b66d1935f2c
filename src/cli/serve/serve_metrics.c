/* serve_metrics.c - what the server has done so far, as text for Prometheus.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "cli/serve/serve_metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const double time_bounds[METRIC_TIMES] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                                 0.2,   0.5,   1.0,   2.0,  5.0,  10.0, 30.0};
static const uint32_t size_bounds[METRIC_SIZES] = {1, 2, 4, 8, 16, 32, 64, 128};

/* Statuses that are counted one by one; the last stands for all others. */
static const int statuses[METRIC_STATUSES] = {200, 204, 400, 401, 404, 405, 408, 411, 413, 415,
                                              421, 422, 429, 431, 499, 500, 501, 503, 505, 0};

void metrics_init(serve_metrics *m)
{
    *m = (serve_metrics){0};
    pthread_mutex_init(&m->lock, NULL);
}

void metrics_free(serve_metrics *m) { pthread_mutex_destroy(&m->lock); }

/* ---- counting -------------------------------------------------------------------------------- */

static void add_time(metric_times *t, double seconds)
{
    int at = 0;

    while (at < METRIC_TIMES && seconds > time_bounds[at]) at++;
    t->buckets[at]++;
    t->sum += seconds;
}

static void add_size(metric_sizes *s, uint32_t n)
{
    int at = 0;

    while (at < METRIC_SIZES && n > size_bounds[at]) at++;
    s->buckets[at]++;
    s->sum += n;
}

void metrics_request(serve_metrics *m, size_t route, int status, double seconds)
{
    int at = 0;

    while (at < METRIC_STATUSES - 1 && statuses[at] != status) at++;
    pthread_mutex_lock(&m->lock);
    m->requests[route][at]++;
    add_time(&m->latency[route], seconds);
    pthread_mutex_unlock(&m->lock);
}

void metrics_images(serve_metrics *m, const metric_batch *b)
{
    pthread_mutex_lock(&m->lock);
    m->images += b->n;
    m->dropped += b->n * b->dropped;
    m->macs += b->n * b->macs;
    m->macs_saved += b->n * (b->macs_dense > b->macs ? b->macs_dense - b->macs : 0.0);
    add_size(&m->batches, b->n);
    add_time(&m->runs, b->seconds);
    pthread_mutex_unlock(&m->lock);
}

void metrics_texts(serve_metrics *m, uint64_t n, uint64_t tokens)
{
    pthread_mutex_lock(&m->lock);
    m->texts += n;
    m->text_tokens += tokens;
    pthread_mutex_unlock(&m->lock);
}

void metrics_answer(serve_metrics *m, uint64_t prompt, uint64_t cached, uint64_t answer)
{
    pthread_mutex_lock(&m->lock);
    m->prompt_tokens += prompt;
    m->cached_tokens += cached;
    m->answer_tokens += answer;
    pthread_mutex_unlock(&m->lock);
}

void metrics_add(serve_metrics *m, uint64_t *counter)
{
    pthread_mutex_lock(&m->lock);
    ++*counter;
    pthread_mutex_unlock(&m->lock);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void put_head(FILE *f, const char *name, const char *kind, const char *help)
{
    fprintf(f, "# HELP renyi_%s %s\n# TYPE renyi_%s %s\n", name, help, name, kind);
}

static void put_number(FILE *f, const char *name, const char *kind, double value, const char *help)
{
    put_head(f, name, kind, help);
    fprintf(f, "renyi_%s %.17g\n", name, value);
}

/* label: `route="x",` or "". */
static void put_times(FILE *f, const char *name, const char *label, const metric_times *t)
{
    uint64_t n = 0;

    for (int i = 0; i < METRIC_TIMES; i++)
        fprintf(f, "renyi_%s_bucket{%sle=\"%g\"} %" PRIu64 "\n", name, label, time_bounds[i],
                n += t->buckets[i]);
    n += t->buckets[METRIC_TIMES];
    fprintf(f, "renyi_%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n", name, label, n);
    const char *open = *label ? "{" : "", *close = *label ? "}" : "";
    const int length = *label ? (int)snprintf(NULL, 0, "%s", label) - 1 : 0; /* without the comma */
    fprintf(f, "renyi_%s_sum%s%.*s%s %.9g\n", name, open, length, label, close, t->sum);
    fprintf(f, "renyi_%s_count%s%.*s%s %" PRIu64 "\n", name, open, length, label, close, n);
}

static void put_sizes(FILE *f, const char *name, const metric_sizes *s)
{
    uint64_t n = 0;

    for (int i = 0; i < METRIC_SIZES; i++)
        fprintf(f, "renyi_%s_bucket{le=\"%u\"} %" PRIu64 "\n", name, size_bounds[i],
                n += s->buckets[i]);
    n += s->buckets[METRIC_SIZES];
    fprintf(f, "renyi_%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, n);
    fprintf(f, "renyi_%s_sum %.9g\nrenyi_%s_count %" PRIu64 "\n", name, s->sum, name, n);
}

static int is_used(const uint64_t requests[METRIC_STATUSES])
{
    uint64_t n = 0;

    for (int s = 0; s < METRIC_STATUSES; s++) n += requests[s];
    return n > 0;
}

static void put_requests(FILE *f, const serve_metrics *m)
{
    char label[80];

    put_head(f, "requests_total", "counter", "Requests by path and status.");
    for (size_t r = 0; r < METRIC_ROUTES && m->routes[r]; r++)
        for (int s = 0; s < METRIC_STATUSES; s++)
            if (m->requests[r][s])
                fprintf(f, "renyi_requests_total{route=\"%s\",code=\"%d\"} %" PRIu64 "\n",
                        m->routes[r], statuses[s], m->requests[r][s]);
    put_head(f, "request_seconds", "histogram", "From the header of a request to its answer.");
    for (size_t r = 0; r < METRIC_ROUTES && m->routes[r]; r++) {
        if (!is_used(m->requests[r])) continue;
        snprintf(label, sizeof label, "route=\"%s\",", m->routes[r]);
        put_times(f, "request_seconds", label, &m->latency[r]);
    }
}

static void put_work(FILE *f, const serve_metrics *m)
{
    const struct {
        const char *name, *help;
        double value;
    } counters[] = {
        {"images_total", "Images that models ran.", (double)m->images},
        {"tokens_dropped_total", "Tokens of images that pruning removed.", (double)m->dropped},
        {"macs_total", "Multiply-accumulates of images that were computed.", m->macs},
        {"macs_saved_total", "Multiply-accumulates that pruning saved.", m->macs_saved},
        {"texts_total", "Texts that were embedded.", (double)m->texts},
        {"text_tokens_total", "Tokens of these texts.", (double)m->text_tokens},
        {"chat_prompt_tokens_total", "Tokens of prompts, cached ones included.",
         (double)m->prompt_tokens},
        {"chat_cached_tokens_total", "Tokens of prompts that were in a cache.",
         (double)m->cached_tokens},
        {"chat_answer_tokens_total", "Tokens of answers.", (double)m->answer_tokens},
        {"sessions_made_total", "Sessions made for policies.", (double)m->sessions_made},
        {"clients_gone_total", "Requests whose client went away.", (double)m->gone},
        {"connections_refused_total", "Connections over the limit of an address.",
         (double)m->refused_connections},
        {"timeouts_total", "Connections closed because they were too slow.", (double)m->timeouts},
    };

    put_head(f, "batch_size", "histogram", "Images per run of a model.");
    put_sizes(f, "batch_size", &m->batches);
    put_head(f, "batch_seconds", "histogram", "Time of a run of a model.");
    put_times(f, "batch_seconds", "", &m->runs);
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        put_number(f, counters[i].name, "counter", counters[i].value, counters[i].help);
}

char *metrics_text(serve_metrics *m, const metric_gauges *g, size_t *size)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, size);

    if (!f) return NULL;
    pthread_mutex_lock(&m->lock);
    put_requests(f, m);
    put_work(f, m);
    pthread_mutex_unlock(&m->lock);
    put_number(f, "queue_length", "gauge", (double)g->waiting,
               "Images, texts and chats that wait for a model.");
    put_number(f, "requests_admitted", "gauge", (double)g->admitted,
               "Requests under way, up to --max-queue.");
    put_number(f, "connections", "gauge", (double)g->connections, "Open connections.");
    put_number(f, "body_bytes", "gauge", (double)g->body_bytes, "Memory of bodies under way.");
    put_number(f, "start_time_seconds", "gauge", g->started, "When the server started.");
    if (fclose(f)) {
        free(text);
        return NULL;
    }
    return text;
}
