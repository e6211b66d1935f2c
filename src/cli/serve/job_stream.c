/* job_stream.c - the text of a streamed answer: server-sent events that the thread of a model
 * writes and HTTP sends (serve_job.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/serve_job.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

/* Both are called with the lock. */
static int append(job_stream *s, const char *text, size_t n)
{
    if (s->size + n > s->capacity) {
        const size_t capacity = 2 * (s->size + n);
        char *grown = realloc(s->bytes, capacity);
        if (!grown) return -1;
        s->bytes = grown;
        s->capacity = capacity;
    }
    memcpy(s->bytes + s->size, text, n);
    s->size += n;
    return 0;
}

/* Wakes HTTP: for the first event by the answer itself, later from its wait for more. */
static void wake(serve_job *job)
{
    job_stream *s = &job->stream;
    const int is_first = !s->is_open;

    if (job->is_gone || (!is_first && !s->is_waiting)) return;
    s->is_open = 1;
    s->is_waiting = 0;
    job->is_done = 1;
    job->status = 200;
    MHD_resume_connection(job->connection);
}

int stream_event(serve_job *job, json_t *document)
{
    char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
    int code = text ? 0 : -1;

    json_decref(document);
    pthread_mutex_lock(&job->lock);
    if (job->is_gone) code = -1;
    if (!code) code = append(&job->stream, "data: ", 6);
    if (!code) code = append(&job->stream, text, strlen(text));
    if (!code) code = append(&job->stream, "\n\n", 2);
    if (!code) wake(job);
    pthread_mutex_unlock(&job->lock);
    free(text);
    return code;
}

void stream_end(serve_job *job)
{
    static const char done[] = "data: [DONE]\n\n";

    pthread_mutex_lock(&job->lock);
    append(&job->stream, done, sizeof done - 1); /* without memory the stream ends without it */
    job->stream.is_ended = 1;
    wake(job);
    pthread_mutex_unlock(&job->lock);
}

long stream_read(serve_job *job, char *buffer, size_t max)
{
    job_stream *s = &job->stream;
    long got = 0;

    pthread_mutex_lock(&job->lock);
    const size_t left = s->size - s->sent, n = left < max ? left : max;
    if (n) {
        memcpy(buffer, s->bytes + s->sent, n);
        s->sent += n;
        got = (long)n;
    } else if (s->is_ended) {
        got = -1;
    } else {
        s->is_waiting = 1;
        MHD_suspend_connection(job->connection);
    }
    if (s->sent == s->size) s->sent = s->size = 0;
    pthread_mutex_unlock(&job->lock);
    return got;
}
