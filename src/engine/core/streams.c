/* streams.c - starts a thread for each part of a job but the first, and waits for all.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "engine/core/streams.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

typedef struct stream {
    ry_stream_part *part;
    void *user;
    uint32_t number;
    pthread_t thread;
    int is_started;
    renyi_status status;
    renyi_error err;
} stream;

static void *run_stream(void *argument)
{
    stream *s = argument;
    s->status = s->part(s->user, s->number, &s->err);
    return NULL;
}

/* Signals stay with the caller's threads. */
static void start_streams(stream *streams, uint32_t n)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (uint32_t i = 1; i < n; i++)
        streams[i].is_started =
            pthread_create(&streams[i].thread, NULL, run_stream, &streams[i]) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

renyi_status ry_streams_run(uint32_t n, ry_stream_part *part, void *user, renyi_error *err)
{
    stream streams[RY_MAX_STREAMS];
    assert(n > 0 && n <= RY_MAX_STREAMS);
    if (n == 1) return part(user, 0, err);
    for (uint32_t i = 0; i < n; i++) streams[i] = (stream){.part = part, .user = user, .number = i};
    start_streams(streams, n);
    for (uint32_t i = 0; i < n; i++)
        if (!streams[i].is_started) (void)run_stream(&streams[i]);
    for (uint32_t i = 1; i < n; i++)
        if (streams[i].is_started) pthread_join(streams[i].thread, NULL);
    for (uint32_t i = 0; i < n; i++) {
        if (streams[i].status == RENYI_OK) continue;
        if (err) *err = streams[i].err;
        return streams[i].status;
    }
    return RENYI_OK;
}
