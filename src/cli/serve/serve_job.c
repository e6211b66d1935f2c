/* serve_job.c - one request under way: references, errors, and how an answer goes back to HTTP.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/serve_job.h"

#include "cli/kit/output.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

serve_job *job_new(serve_server *server)
{
    serve_job *job = calloc(1, sizeof *job);

    if (!job) return NULL;
    job->server = server;
    job->fd = -1;
    job->begun = cli_now_ms();
    job->type = "application/json";
    atomic_init(&job->refs, 1);
    pthread_mutex_init(&job->lock, NULL);
    return job;
}

void job_ref(serve_job *job) { atomic_fetch_add(&job->refs, 1); }

static void free_inputs(serve_job *job)
{
    const size_t n = job->kind == REQUEST_CHAT ? 1 : job->request.n_inputs;

    for (size_t i = 0; job->inputs && i < n; i++) {
        free(job->inputs[i].pixels);
        free(job->inputs[i].ids);
        free(job->inputs[i].row);
        json_decref(job->inputs[i].trace);
    }
    free(job->inputs);
}

void job_unref(serve_job *job)
{
    if (atomic_fetch_sub(&job->refs, 1) != 1) return;
    free_inputs(job);
    request_free(&job->request);
    renyi_image_free(&job->image, NULL);
    atomic_fetch_sub(&job->server->body_bytes, job->body_capacity);
    free(job->body);
    free(job->content_type);
    free(job->key);
    free(job->answer);
    free(job->stream.bytes);
    pthread_mutex_destroy(&job->lock);
    free(job);
}

/* A client that shuts down its side is taken as gone, as other servers do. */
int job_client_is_gone(const serve_job *job)
{
    char byte;
    const ssize_t n = recv(job->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* ---- errors ------------------------------------------------------------------------------------
 */

void job_fail(serve_job *job, int status, const char *code, const char *param, const char *fmt, ...)
{
    va_list args;

    pthread_mutex_lock(&job->lock);
    if (!job->error.status) {
        job->error = (request_error){.status = status, .code = code, .param = param};
        va_start(args, fmt);
        vsnprintf(job->error.message, sizeof job->error.message, fmt, args);
        va_end(args);
    }
    pthread_mutex_unlock(&job->lock);
}

void job_fail_library(serve_job *job, const renyi_error *err)
{
    switch (err->code) {
    case RENYI_ERR_ARG:
    case RENYI_ERR_FORMAT:
    case RENYI_ERR_UNSUPPORTED:
    case RENYI_ERR_LIMIT: job_fail(job, 400, "invalid_value", NULL, "%s", cli_reason(err)); break;
    case RENYI_ERR_NOMEM: job_fail(job, 503, "no_memory", NULL, "out of memory"); break;
    case RENYI_ERR_ABORTED: job_fail(job, 503, "stopping", NULL, "the server is stopping"); break;
    default: job_fail(job, 500, "internal", NULL, "%s", cli_reason(err)); break;
    }
}

/* ---- answers -----------------------------------------------------------------------------------
 */

/* OpenAI's names of kinds of errors. */
static const char *error_type(int status)
{
    if (status == 401) return "authentication_error";
    if (status == 404) return "not_found_error";
    if (status == 429) return "rate_limit_error";
    return status >= 500 ? "server_error" : "invalid_request_error";
}

static void set_answer(serve_job *job, int status, char *text)
{
    static const char none[] =
        "{\"error\":{\"message\":\"out of memory\",\"type\":\"server_error\","
        "\"param\":null,\"code\":\"no_memory\"}}";

    free(job->answer);
    if (!text) job->retry_after = "1";
    job->status = text ? status : 503;
    job->answer = text ? text : strdup(none);
    job->answer_size = job->answer ? strlen(job->answer) : 0;
    job->type = "application/json";
}

void job_answer_error(serve_job *job)
{
    const request_error *e = &job->error;
    json_t *document =
        json_pack("{s:{s:o, s:s, s:s?, s:s?}}", "error", "message", json_text(e->message), "type",
                  error_type(e->status), "param", e->param, "code", e->code);

    if (e->status == 429 || e->status == 503) job->retry_after = "1";
    set_answer(job, e->status, document ? json_dumps(document, JSON_COMPACT) : NULL);
    json_decref(document);
}

void job_answer_json(serve_job *job, int status, json_t *document)
{
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(9); /* all of a float, as --json */

    set_answer(job, status, document ? json_dumps(document, flags) : NULL);
    json_decref(document);
}

void job_hand_back(serve_job *job)
{
    struct MHD_Connection *connection = job->connection;

    pthread_mutex_lock(&job->lock);
    job->is_done = 1;
    pthread_mutex_unlock(&job->lock);
    MHD_resume_connection(connection);
}
