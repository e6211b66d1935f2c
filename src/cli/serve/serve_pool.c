/* serve_pool.c - the workers: threads that take tasks in the order in which they were added. They
 * read bodies, decode images and write answers, beside the threads of the models.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/serve.h"
#include "cli/serve/serve_job.h"

#include <stdlib.h>
#include <string.h>

static serve_job *take(serve_pool *p)
{
    pthread_mutex_lock(&p->lock);
    while (!p->first && !p->stops) pthread_cond_wait(&p->wake, &p->lock);
    serve_job *job = p->first;
    if (job) {
        p->first = job->next_task;
        if (!p->first) p->last = NULL;
        job->next_task = NULL;
    }
    pthread_mutex_unlock(&p->lock);
    return job;
}

static void *work(void *user)
{
    serve_pool *p = user;

    for (serve_job *job; (job = take(p));) job->task(job);
    return NULL;
}

int pool_start(serve_pool *p, size_t n)
{
    *p = (serve_pool){.threads = cli_alloc(n, sizeof *p->threads)};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    for (; p->n < n; p->n++) {
        const int code = pthread_create(&p->threads[p->n], NULL, work, p);
        if (!code) continue;
        cli_error("cannot start a thread: %s", strerror(code));
        return -1;
    }
    return 0;
}

void pool_add(serve_pool *p, serve_job *job, pool_task *task)
{
    pthread_mutex_lock(&p->lock);
    job->task = task;
    job->next_task = NULL;
    if (p->last)
        p->last->next_task = job;
    else
        p->first = job;
    p->last = job;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

void pool_stop(serve_pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->stops = 1;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->n; i++) pthread_join(p->threads[i], NULL);
    free(p->threads);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
}
