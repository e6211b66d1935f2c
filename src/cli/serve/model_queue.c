/* model_queue.c - the queue of a model and the thread that empties it. Inputs with the same key
 * (kind, policy, classes) run together, up to --max-batch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The thread waits for company only while other requests are on their way (their bodies arrive or
 * their images are decoded), at most --max-wait-ms after the oldest input came. A single client
 * never waits.
 */
#include "cli/serve/serve_model.h"

#include <string.h>
#include <time.h>

enum { MAX_BATCH = 1024, MAX_TEXTS = 64 };

/* ---- adding ------------------------------------------------------------------------------------
 */

void model_queue_add(serve_model *m, serve_job *job, size_t n_inputs)
{
    const double now = cli_now_ms();

    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < n_inputs; i++) {
        job_input *in = &job->inputs[i];
        in->queued = now;
        in->next = NULL;
        if (m->last)
            m->last->next = in;
        else
            m->first = in;
        m->last = in;
    }
    atomic_fetch_add(&m->n_waiting, (unsigned)n_inputs);
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
}

/* ---- taking ------------------------------------------------------------------------------------
 */

static uint32_t most_together(const serve_model *m, const job_input *in)
{
    if (in->job->kind == REQUEST_CHAT) return 1;
    return in->pixels ? (uint32_t)m->server->config->max_batch : MAX_TEXTS;
}

static uint32_t count_alike(const serve_model *m, const char *key, uint32_t most)
{
    uint32_t n = 0;

    for (const job_input *in = m->first; in && n < most; in = in->next)
        n += strcmp(in->key, key) == 0;
    return n;
}

/* Waits until monotonic time `ms`, or until something is added. */
static void wait_until(serve_model *m, double ms)
{
    struct timespec t = {.tv_sec = (time_t)(ms / 1000.0)};

    t.tv_nsec = (long)((ms - 1000.0 * (double)t.tv_sec) * 1e6);
    pthread_cond_timedwait(&m->wake, &m->lock, &t);
}

/* The first inputs with this key leave the queue. */
static uint32_t unlink_alike(serve_model *m, const char *key, job_input **batch, uint32_t most)
{
    job_input *before = NULL, *next;
    uint32_t n = 0;

    for (job_input *in = m->first; in && n < most; in = next) {
        next = in->next;
        if (strcmp(in->key, key) != 0) {
            before = in;
            continue;
        }
        if (before)
            before->next = next;
        else
            m->first = next;
        if (m->last == in) m->last = before;
        batch[n++] = in;
    }
    atomic_fetch_sub(&m->n_waiting, n);
    return n;
}

/* Returns 0 when the queue is empty and stops. */
static uint32_t take_batch(serve_model *m, job_input **batch)
{
    uint32_t n = 0;

    pthread_mutex_lock(&m->lock);
    while (!m->first && !m->stops) pthread_cond_wait(&m->wake, &m->lock);
    if (m->first) {
        const char *key = m->first->key;
        const uint32_t most = most_together(m, m->first);
        const double until = m->first->queued + (double)m->server->config->max_wait_ms;
        while (count_alike(m, key, most) < most && atomic_load(&m->server->n_incoming) &&
               cli_now_ms() < until)
            wait_until(m, until);
        n = unlink_alike(m, key, batch, most);
    }
    pthread_mutex_unlock(&m->lock);
    return n;
}

/* ---- the thread --------------------------------------------------------------------------------
 */

static void *empty_queue(void *user)
{
    serve_model *m = user;
    job_input *batch[MAX_BATCH];

    for (uint32_t n; (n = take_batch(m, batch));) {
        if (batch[0]->job->kind == REQUEST_CHAT)
            run_chat(m, batch[0]->job);
        else if (batch[0]->pixels)
            run_images(m, batch, n);
        else
            run_texts(m, batch, n);
    }
    return NULL;
}

int model_queue_start(serve_model *m)
{
    const int code = pthread_create(&m->thread, NULL, empty_queue, m);

    m->has_thread = code == 0;
    if (code) cli_error("cannot start a thread: %s", strerror(code));
    return code ? -1 : 0;
}

void model_queue_stop(serve_model *m)
{
    if (!m->has_thread) return;
    pthread_mutex_lock(&m->lock);
    m->stops = 1;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->thread, NULL);
    m->has_thread = 0;
}
