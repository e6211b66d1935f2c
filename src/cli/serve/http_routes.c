/* http_routes.c - the table of paths, and the answers that need no model: the page, the list of
 * models, health, metrics, the description of the API.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/http_server.h"
#include "cli/serve/serve_model.h"

#include <stdlib.h>
#include <string.h>

extern const char ry_serve_page_html[], ry_openapi_json[]; /* embedded files (cmake/embed.cmake) */

/* ---- answers -----------------------------------------------------------------------------------
 */

static void answer_text(serve_job *job, int status, const char *type, const char *text)
{
    job->status = status;
    job->answer = strdup(text);
    job->answer_size = job->answer ? strlen(job->answer) : 0;
    job->type = type;
}

static void get_page(http_server *h, serve_job *job)
{
    (void)h;
    answer_text(job, 200, "text/html; charset=utf-8", ry_serve_page_html);
}

static void get_openapi(http_server *h, serve_job *job)
{
    (void)h;
    answer_text(job, 200, "application/json", ry_openapi_json);
}

static void get_ping(http_server *h, serve_job *job)
{
    (void)h;
    answer_text(job, 200, "text/plain; charset=utf-8", "pong");
}

static void get_health(http_server *h, serve_job *job)
{
    (void)h;
    job_answer_json(job, 200, json_pack("{s:s, s:s}", "status", "ok", "version", renyi_version()));
}

static void get_ready(http_server *h, serve_job *job)
{
    const char *why = atomic_load(&h->server->is_draining) ? "stopping"
                      : models_are_loaded(h->server)       ? NULL
                                                           : "loading";

    if (why) job->retry_after = "1";
    job_answer_json(job, why ? 503 : 200, json_pack("{s:s}", "status", why ? why : "ready"));
}

static void get_metrics(http_server *h, serve_job *job)
{
    serve_server *s = h->server;
    metric_gauges now = {.admitted = atomic_load(&s->n_admitted),
                         .connections = connections_count(&h->connections),
                         .body_bytes = atomic_load(&s->body_bytes),
                         .started = s->started};

    for (size_t i = 0; models_are_loaded(s) && i < s->n_models; i++)
        now.waiting += atomic_load(&s->models[i]->n_waiting);
    job->status = 200;
    job->answer = metrics_text(&s->metrics, &now, &job->answer_size);
    job->type = "text/plain; version=0.0.4; charset=utf-8";
}

static void get_models(http_server *h, serve_job *job)
{
    json_t *list = json_array();

    for (size_t i = 0; i < h->server->n_models; i++)
        json_array_append_new(list, served_model_json(h->server->models[i]));
    job_answer_json(job, 200, json_pack("{s:s, s:o}", "object", "list", "data", list));
}

static const char one_model[] = "/v1/models/";

static void get_model(http_server *h, serve_job *job)
{
    const char *name = job->path + sizeof one_model - 1;

    for (size_t i = 0; i < h->server->n_models; i++)
        if (strcmp(h->server->models[i]->name, name) == 0) {
            job_answer_json(job, 200, served_model_json(h->server->models[i]));
            return;
        }
    job_fail(job, 404, "model_not_found", NULL, "there is no model '%.100s' here", name);
    job_answer_error(job);
}

/* ---- the table ---------------------------------------------------------------------------------
 */

static const http_route routes[] = {
    {"/", 0, 0, get_page, 1, 0},
    {"/health", 0, 0, get_health, 1, 0},
    {"/ready", 0, 0, get_ready, 1, 0},
    {"/ping", 0, 0, get_ping, 1, 1},
    {"/openapi.json", 0, 0, get_openapi, 1, 0},
    {"/metrics", 0, 0, get_metrics, 0, 0},
    {"/v1/models", 0, 0, get_models, 0, 1},
    {one_model, 0, 0, get_model, 0, 1}, /* and a name */
    {"/v1/classify", 1, REQUEST_CLASSIFY, NULL, 0, 1},
    {"/v1/embeddings", 1, REQUEST_EMBEDDINGS, NULL, 0, 1},
    {"/v1/zeroshot", 1, REQUEST_ZEROSHOT, NULL, 0, 1},
    {"/v1/chat/completions", 1, REQUEST_CHAT, NULL, 0, 1},
    {"/predict", 1, REQUEST_PREDICT, NULL, 0, 1},
    {"other", 0, 0, NULL, 0, 0},
};
enum { N_ROUTES = sizeof routes / sizeof *routes };
_Static_assert((int)N_ROUTES <= (int)METRIC_ROUTES, "one counter for each route");

size_t http_route_count(void) { return N_ROUTES; }

const http_route *http_get_route(size_t i) { return &routes[i]; }

size_t http_find_route(const char *path)
{
    for (size_t i = 0; i < N_ROUTES - 1; i++) {
        const size_t n = strlen(routes[i].path);
        const int has_name = routes[i].path == one_model;
        if (has_name ? strncmp(path, routes[i].path, n) == 0 && path[n]
                     : strcmp(path, routes[i].path) == 0)
            return i;
    }
    return N_ROUTES - 1;
}
