/* http_server.c - HTTP by libmicrohttpd: a request from its header to its answer. These threads
 * never wait: while a request is worked on, its connection is suspended.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/http_server.h"

#include "cli/serve/http_listen.h"
#include "cli/serve/serve_model.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

enum { HTTP_THREADS = 2, HTTP_MEMORY = 64 << 10, BODY_FIRST = 64 << 10, BODY_MARGIN = 5 };

/* ---- sending -----------------------------------------------------------------------------------
 */

static ssize_t read_stream(void *user, uint64_t at, char *buffer, size_t max)
{
    const long n = stream_read(user, buffer, max);

    (void)at;
    return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static void add_headers(const serve_job *job, struct MHD_Response *r)
{
    const serve_config *config = job->server->config;
    char id[32];

    snprintf(id, sizeof id, "%llu", (unsigned long long)job->id);
    MHD_add_response_header(r, "Content-Type", job->type);
    MHD_add_response_header(r, "Cache-Control", "no-store");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "X-Request-Id", id);
    if (strncmp(job->type, "text/html", 9) == 0)
        MHD_add_response_header(
            r, "Content-Security-Policy",
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src "
            "'self' data: blob:; media-src 'self' blob:; connect-src 'self'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'");
    if (job->retry_after) MHD_add_response_header(r, "Retry-After", job->retry_after);
    if (job->status == 401) MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
    if (job->status == 405)
        MHD_add_response_header(r, "Allow",
                                http_get_route(job->route)->is_post ? "POST" : "GET, HEAD");
    if (config->cors) {
        MHD_add_response_header(r, "Access-Control-Allow-Origin", config->cors);
        MHD_add_response_header(r, "Access-Control-Allow-Headers", "Authorization, Content-Type");
        MHD_add_response_header(r, "Access-Control-Allow-Methods", "GET, POST");
    }
    if (job->closes || atomic_load(&job->server->is_draining))
        MHD_add_response_header(r, "Connection", "close");
}

/* The job outlives the answer, so its bytes are not copied. */
static enum MHD_Result send_answer(serve_job *job)
{
    struct MHD_Response *r;

    if (job->stream.is_open) {
        job->type = "text/event-stream; charset=utf-8";
        r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream, job, NULL);
    } else {
        r = MHD_create_response_from_buffer(job->answer_size, job->answer, MHD_RESPMEM_PERSISTENT);
    }
    if (!r) return MHD_NO;
    if (!job->status) job->status = 503;
    add_headers(job, r);
    const enum MHD_Result code = MHD_queue_response(job->connection, (unsigned)job->status, r);
    MHD_destroy_response(r);
    return code;
}

static enum MHD_Result send_error(serve_job *job)
{
    job_answer_error(job);
    return send_answer(job);
}

/* ---- a new request -----------------------------------------------------------------------------
 */

static http_connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Whether the request may go on; else the job has an error. Its body is read and left out, because
 * many clients do not look for an answer while they send. */
static void check_request(http_server *h, serve_job *job, const http_connection *from)
{
    const http_route *route = http_get_route(job->route);
    const int is_get = strcmp(job->method, "GET") == 0 || strcmp(job->method, "HEAD") == 0;
    const int is_post = strcmp(job->method, "POST") == 0;

    if (from && from->is_over) {
        metrics_add(&h->server->metrics, &h->server->metrics.refused_connections);
        job->closes = 1;
        job_fail(job, 429, "too_many_connections", NULL,
                 "more than %llu connections from this address",
                 (unsigned long long)h->connections.max_per_address);
    } else if (job->route == http_route_count() - 1) {
        job_fail(job, 404, "not_found", NULL, "there is nothing at this path; see /openapi.json");
    } else if (route->is_post ? !is_post : !is_get) {
        job_fail(job, 405, "method_not_allowed", NULL, "this path takes %s",
                 route->is_post ? "POST" : "GET");
    } else if (!route->is_public &&
               !api_keys_allow(&h->server->keys, header(job->connection, "Authorization"))) {
        job_fail(job, 401, "invalid_api_key", NULL,
                 "a valid key is needed: Authorization: Bearer KEY");
    } else if (route->is_post && atomic_load(&h->server->is_draining)) {
        job_fail(job, 503, "stopping", NULL, "the server is stopping");
    } else if (route->needs_models && !models_are_loaded(h->server)) {
        job_fail(job, 503, "loading", NULL, "the models are being loaded; try again later");
    }
}

/* 1 if the body is so large that the answer must not wait for its end, or if the client asks before
 * it sends. */
static int refuse_large_body(http_server *h, serve_job *job)
{
    const uint64_t most = h->server->config->max_body << 20;
    const char *length = header(job->connection, "Content-Length");
    const uint64_t size = length ? strtoull(length, NULL, 10) : 0;

    if (size <= most) return 0;
    job_fail(job, 413, "body_too_large", NULL, "the body has %llu bytes; %llu are allowed",
             (unsigned long long)size, (unsigned long long)most);
    return size / 4 > most || header(job->connection, "Expect") != NULL;
}

static void name_request(serve_job *job, const char *method, const char *path,
                         const http_connection *from)
{
    snprintf(job->method, sizeof job->method, "%s", method);
    snprintf(job->path, sizeof job->path, "%s", path);
    snprintf(job->address, sizeof job->address, "%s", from ? from->address : "unknown");
}

/* libmicrohttpd closes a connection without an answer when nothing arrives for so long. While a
 * body arrives that must be later than connections_end_slow, which answers 408. */
static void set_timeout(http_server *h, struct MHD_Connection *connection, int is_body)
{
    const serve_config *c = h->server->config;
    const uint64_t later = c->body_seconds + BODY_MARGIN;
    const uint64_t seconds = is_body && later > c->idle_seconds ? later : c->idle_seconds;

    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)seconds);
}

/* The header is there. */
static enum MHD_Result begin(http_server *h, struct MHD_Connection *connection, const char *path,
                             const char *method, void **state)
{
    http_connection *from = connection_of(connection);
    const char *type = header(connection, "Content-Type");
    serve_job *job = job_new(h->server);

    if (!job) return MHD_NO;
    *state = job;
    job->id = atomic_fetch_add(&h->n_requests, 1) + 1;
    job->connection = connection;
    job->fd = from ? from->fd : -1;
    job->route = http_find_route(path);
    job->kind = http_get_route(job->route)->kind;
    name_request(job, method, path, from);
    if (from) connection_enter(&h->connections, from, CONNECTION_BODY);
    if (h->server->config->cors && strcmp(method, "OPTIONS") == 0) {
        job->status = 204;
        return MHD_YES;
    }
    check_request(h, job, from);
    if (refuse_large_body(h, job)) return send_error(job);
    set_timeout(h, connection, 1);
    if (type && !(job->content_type = strdup(type))) return MHD_NO;
    if (http_get_route(job->route)->is_post && !job->error.status) {
        job->is_incoming = 1;
        atomic_fetch_add(&h->server->n_incoming, 1);
    }
    return MHD_YES;
}

/* ---- the body ----------------------------------------------------------------------------------
 */

/* Memory for `more` bytes; 0, or -1 with the job's error. */
static int grow_body(http_server *h, serve_job *job, size_t more)
{
    const serve_config *config = h->server->config;
    const uint64_t most = config->max_body << 20, most_together = config->max_bodies << 20;
    size_t capacity = job->body_capacity ? job->body_capacity : BODY_FIRST;

    if (job->body_size + more > most) {
        job_fail(job, 413, "body_too_large", NULL, "the body has more than %llu bytes",
                 (unsigned long long)most);
        return -1;
    }
    while (capacity < job->body_size + more) capacity *= 2;
    if (capacity == job->body_capacity) return 0;
    const size_t extra = capacity - job->body_capacity;
    if (atomic_fetch_add(&h->server->body_bytes, extra) + extra > most_together) {
        atomic_fetch_sub(&h->server->body_bytes, extra);
        job_fail(job, 429, "too_much_data", NULL,
                 "the bodies of all requests have more than %llu "
                 "bytes; try again",
                 (unsigned long long)most_together);
        return -1;
    }
    unsigned char *grown = realloc(job->body, capacity);
    if (!grown) {
        atomic_fetch_sub(&h->server->body_bytes, extra);
        job_fail(job, 503, "no_memory", NULL, "out of memory");
        return -1;
    }
    job->body = grown;
    job->body_capacity = capacity;
    return 0;
}

static void take_body(http_server *h, serve_job *job, const char *bytes, size_t n)
{
    if (job->error.status || !job->is_incoming || grow_body(h, job, n)) return;
    memcpy(job->body + job->body_size, bytes, n);
    job->body_size += n;
}

/* ---- the request is complete -------------------------------------------------------------------
 */

static void leave_incoming(serve_job *job)
{
    if (job->is_incoming) atomic_fetch_sub(&job->server->n_incoming, 1);
    job->is_incoming = 0;
}

static enum MHD_Result work(http_server *h, serve_job *job)
{
    serve_server *s = h->server;

    if (atomic_fetch_add(&s->n_admitted, 1) >= s->config->max_queue) {
        atomic_fetch_sub(&s->n_admitted, 1);
        job_fail(job, 429, "queue_full", NULL, "%llu requests are under way; try again later",
                 (unsigned long long)s->config->max_queue);
        leave_incoming(job);
        return send_error(job);
    }
    job->is_admitted = 1;
    /* Asked after n_admitted has grown: either the drain waits for this one, or it is seen here. */
    if (atomic_load(&s->is_draining)) {
        job_fail(job, 503, "stopping", NULL, "the server is stopping");
        leave_incoming(job);
        return send_error(job);
    }
    MHD_suspend_connection(job->connection);
    pool_add(&s->pool, job, job_prepare);
    return MHD_YES;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *size, void **state)
{
    http_server *h = user;
    serve_job *job = *state;

    (void)version;
    if (!job) return begin(h, connection, path, method, state);
    if (*size) {
        take_body(h, job, bytes, *size);
        *size = 0;
        return MHD_YES;
    }
    http_connection *from = connection_of(connection);
    if (from) connection_enter(&h->connections, from, CONNECTION_BUSY);
    set_timeout(h, connection, 0);
    pthread_mutex_lock(&job->lock);
    const int is_done = job->is_done;
    pthread_mutex_unlock(&job->lock);
    if (is_done || job->status) return send_answer(job);
    if (job->error.status) {
        leave_incoming(job);
        return send_error(job);
    }
    if (http_get_route(job->route)->is_post) return work(h, job);
    http_get_route(job->route)->get(h, job);
    return send_answer(job);
}

/* ---- the end -----------------------------------------------------------------------------------
 */

static void on_completed(void *user, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode how)
{
    http_server *h = user;
    serve_job *job = *state;
    http_connection *from = connection_of(connection);

    if (from) connection_enter(&h->connections, from, CONNECTION_IDLE);
    if (!job) return;
    *state = NULL;
    leave_incoming(job);
    pthread_mutex_lock(&job->lock);
    job->is_gone = 1;
    const int is_whole = how == MHD_REQUEST_TERMINATED_COMPLETED_OK;
    const int is_slow = from && !is_whole && connection_is_slow(&h->connections, from);
    const int status = is_slow ? 408 : is_whole && job->status ? job->status : 499;
    const log_request line = {.address = job->address,
                              .method = job->method,
                              .path = job->path,
                              .model = job->model ? job->model->name : NULL,
                              .reason = is_slow             ? "timeout"
                                        : job->error.status ? job->error.code
                                                            : NULL,
                              .status = status,
                              .ms = cli_now_ms() - job->begun,
                              .n_inputs = job->request.n_inputs,
                              .id = job->id};
    pthread_mutex_unlock(&job->lock);
    metrics_request(&h->server->metrics, job->route, status, line.ms / 1e3);
    log_put(&line);
    if (job->is_admitted) atomic_fetch_sub(&h->server->n_admitted, 1);
    job_unref(job);
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    http_server *h = user;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*context) connections_remove(&h->connections, *context);
        *context = NULL;
        return;
    }
    const int fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const struct sockaddr *address =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    *context = connections_add(&h->connections, fd, address);
}

/* ---- start and stop ----------------------------------------------------------------------------
 */

int http_start(http_server *h, serve_server *server)
{
    const serve_config *c = server->config;
    int is_ipv6 = 0;

    *h = (http_server){.server = server};
    h->connections.max_per_address = c->max_per_address;
    h->connections.header_ms = 1e3 * (double)c->header_seconds;
    h->connections.body_ms = 1e3 * (double)c->body_seconds;
    h->connections.idle_ms = 1e3 * (double)c->idle_seconds;
    connections_open(&h->connections);
    for (size_t i = 0; i < http_route_count(); i++)
        server->metrics.routes[i] = http_get_route(i)->path;
    const int fd = http_listen(c->host, (unsigned)c->port, &is_ipv6, h->url, sizeof h->url);
    if (fd < 0) return -1;
    h->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
            (is_ipv6 ? MHD_USE_IPv6 : 0),
        0, NULL, NULL, on_request, h, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE,
        (unsigned)HTTP_THREADS, MHD_OPTION_CONNECTION_LIMIT, (unsigned)c->max_connections,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)c->idle_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        h, MHD_OPTION_END);
    if (h->daemon) return 0;
    cli_error("%s: libmicrohttpd could not start: %s", h->url, strerror(errno));
    return -1;
}

void http_stop_accepting(http_server *h) { http_close(MHD_quiesce_daemon(h->daemon)); }

void http_stop(http_server *h)
{
    if (h->daemon) MHD_stop_daemon(h->daemon);
    connections_close(&h->connections);
}
