/* thread_pool.c - threads that help with short lists of tasks.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/thread_pool.h"

#include "base/alloc.h"
#include "base/status.h"

#include <pthread.h>

/* Tasks take tens of microseconds or more, so one lock for all of this is enough. */
struct ry_thread_pool {
    pthread_mutex_t lock;
    pthread_cond_t begin, end; /* a list begins, or the pool ends; all tasks of a list are done */
    ry_thread_pool_task task;
    void *user;
    size_t next, count; /* of the list; count = next after a failure */
    size_t running;
    size_t failed; /* the first task that failed */
    renyi_status status;
    renyi_error error; /* of this task */
    int is_over;
    unsigned n_helpers, n_numbered; /* started; those that have taken a number */
    pthread_t helpers[];
};

/* ---- tasks --------------------------------------------------------------------------------- */

static void note_failure(ry_thread_pool *c, size_t i, renyi_status st, const renyi_error *error)
{
    c->count = c->next;
    if (c->status && c->failed < i) return;
    c->failed = i;
    c->status = st;
    c->error = *error;
}

/* Runs tasks until none is left; locked before and after. */
static void run_tasks(ry_thread_pool *c, unsigned thread)
{
    while (c->next < c->count) {
        const size_t i = c->next++;
        renyi_error error = {RENYI_OK, -1, ""};
        c->running++;
        pthread_mutex_unlock(&c->lock);
        const renyi_status st = c->task(c->user, i, thread, &error);
        pthread_mutex_lock(&c->lock);
        if (st) note_failure(c, i, st, &error);
        if (--c->running == 0 && c->next >= c->count) pthread_cond_signal(&c->end);
    }
}

static void *help(void *user)
{
    ry_thread_pool *c = user;
    pthread_mutex_lock(&c->lock);
    const unsigned thread = ++c->n_numbered; /* the caller is 0 */
    while (!c->is_over) {
        run_tasks(c, thread);
        if (!c->is_over) pthread_cond_wait(&c->begin, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static renyi_status run_alone(size_t count, ry_thread_pool_task task, void *user, renyi_error *err)
{
    for (size_t i = 0; i < count; i++) RY_TRY(task(user, i, 0, err));
    return RENYI_OK;
}

renyi_status ry_thread_pool_run(ry_thread_pool *c, size_t count, ry_thread_pool_task task,
                                void *user, renyi_error *err)
{
    if (ry_thread_pool_threads(c) == 1 || count < 2) return run_alone(count, task, user, err);
    pthread_mutex_lock(&c->lock);
    c->task = task;
    c->user = user;
    c->next = 0;
    c->count = count;
    c->status = RENYI_OK;
    pthread_cond_broadcast(&c->begin);
    run_tasks(c, 0);
    while (c->running) pthread_cond_wait(&c->end, &c->lock);
    const renyi_status st = c->status;
    if (st && err) *err = c->error;
    pthread_mutex_unlock(&c->lock);
    return st;
}

unsigned ry_thread_pool_threads(const ry_thread_pool *c) { return c ? 1 + c->n_helpers : 1; }

/* ---- threads ------------------------------------------------------------------------------- */

renyi_status ry_thread_pool_new(ry_thread_pool **out, unsigned n_threads, const renyi_allocator *al,
                                renyi_error *err)
{
    const unsigned wanted = n_threads > 1 ? n_threads - 1 : 0;
    const size_t bytes = sizeof(ry_thread_pool) + wanted * sizeof(pthread_t);
    ry_thread_pool *c = *out = ry_calloc(al, 1, bytes);
    if (!c) return ry_fail_nomem(err, bytes);
    pthread_mutex_init(&c->lock, NULL); /* never fail on Linux */
    pthread_cond_init(&c->begin, NULL);
    pthread_cond_init(&c->end, NULL);
    while (c->n_helpers < wanted && pthread_create(&c->helpers[c->n_helpers], NULL, help, c) == 0)
        c->n_helpers++;
    return RENYI_OK;
}

void ry_thread_pool_free(ry_thread_pool *c, const renyi_allocator *al)
{
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    c->is_over = 1;
    pthread_cond_broadcast(&c->begin);
    pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < c->n_helpers; i++) pthread_join(c->helpers[i], NULL);
    pthread_cond_destroy(&c->begin);
    pthread_cond_destroy(&c->end);
    pthread_mutex_destroy(&c->lock);
    ry_free(al, c);
}
