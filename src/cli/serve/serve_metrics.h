/* serve_metrics.h - what the server has done so far, as text for Prometheus.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_SERVE_METRICS_H
#define RENYI_SERVE_METRICS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { METRIC_ROUTES = 16, METRIC_STATUSES = 20, METRIC_TIMES = 14, METRIC_SIZES = 8 };

/* Counts of values up to each bound; the last is everything. */
typedef struct metric_times {
    uint64_t buckets[METRIC_TIMES + 1];
    double sum;
} metric_times;

typedef struct metric_sizes {
    uint64_t buckets[METRIC_SIZES + 1];
    double sum;
} metric_sizes;

typedef struct serve_metrics {
    pthread_mutex_t lock;
    const char *routes[METRIC_ROUTES]; /* names; NULL = the end */
    uint64_t requests[METRIC_ROUTES][METRIC_STATUSES];
    metric_times latency[METRIC_ROUTES];
    metric_sizes batches;
    metric_times runs; /* seconds of the model per batch */
    uint64_t images, texts, text_tokens, dropped, gone, refused_connections, timeouts;
    uint64_t prompt_tokens, cached_tokens, answer_tokens, sessions_made;
    double macs, macs_saved;
} serve_metrics;

/* Numbers of this moment. */
typedef struct metric_gauges {
    uint64_t waiting, admitted, connections, body_bytes;
    double started; /* seconds since 1970 */
} metric_gauges;

/* What a batch of images did. */
typedef struct metric_batch {
    uint32_t n;
    double seconds, macs, macs_dense; /* MACs per image */
    uint64_t dropped;                 /* tokens per image */
} metric_batch;

void metrics_init(serve_metrics *m);
void metrics_free(serve_metrics *m);
void metrics_request(serve_metrics *m, size_t route, int status, double seconds);
void metrics_images(serve_metrics *m, const metric_batch *batch);
void metrics_texts(serve_metrics *m, uint64_t n, uint64_t tokens);
void metrics_answer(serve_metrics *m, uint64_t prompt, uint64_t cached, uint64_t answer);
void metrics_add(serve_metrics *m, uint64_t *counter); /* one of m's */

/* The text; owned (free), NULL without memory. */
char *metrics_text(serve_metrics *m, const metric_gauges *gauges, size_t *size);

#endif
