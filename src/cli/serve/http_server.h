/* http_server.h - HTTP by libmicrohttpd: listens, reads requests, sends answers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_HTTP_SERVER_H
#define RENYI_HTTP_SERVER_H

#include "cli/serve/http_connections.h"
#include "cli/serve/serve_job.h"

struct MHD_Daemon;

typedef struct http_server {
    serve_server *server;
    struct MHD_Daemon *daemon;
    http_connections connections;
    atomic_ullong n_requests;
    char url[128]; /* "http://127.0.0.1:8080" */
} http_server;

/* 0, or -1 after reporting. */
int http_start(http_server *h, serve_server *server);
void http_stop_accepting(http_server *h);
void http_stop(http_server *h); /* no request may be under way */

/* ---- routes (http_routes.c)
 * ---------------------------------------------------------------------- */

typedef struct http_route {
    const char *path;
    int is_post;
    request_kind kind;                           /* of a POST */
    void (*get)(http_server *h, serve_job *job); /* of a GET: sets the answer at once */
    int is_public;                               /* without a key */
    int needs_models;                            /* 503 until they are loaded */
} http_route;

/* The number of the route of a path; that of the last, which has no path, if there is none. */
size_t http_find_route(const char *path);
const http_route *http_get_route(size_t i);
size_t http_route_count(void);

#endif
