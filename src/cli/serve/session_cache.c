/* session_cache.c - the sessions of a model: one per policy, output and set of classes, the least
 * used one freed when there are too many. Only the thread of the model uses them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/zeroshot.h"
#include "cli/serve/serve_model.h"

#include <stdlib.h>
#include <string.h>

/* Classes of zero-shot requests: the image tower with their embeddings as its head. */
typedef struct served_head {
    char digest[65];
    renyi_model *model;
    uint64_t used;
} served_head;

struct session_cache {
    served_session *sessions; /* [max] */
    served_head *heads;       /* [max] */
    size_t n_sessions, n_heads, max;
    renyi_text_session *text;
    uint64_t clock;
};

static session_cache *open_cache(serve_model *m)
{
    const size_t max = m->server->config->max_sessions;

    if (m->sessions) return m->sessions;
    session_cache *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->max = max;
    c->sessions = calloc(max, sizeof *c->sessions);
    c->heads = calloc(max, sizeof *c->heads);
    if (!c->sessions || !c->heads) {
        session_cache_free(c);
        return NULL;
    }
    return m->sessions = c;
}

/* ---- removing ----------------------------------------------------------------------------------
 */

static void remove_session(session_cache *c, size_t i)
{
    renyi_session_free(c->sessions[i].session);
    free(c->sessions[i].key);
    c->sessions[i] = c->sessions[--c->n_sessions];
    c->sessions[c->n_sessions] = (served_session){0};
}

/* Its sessions go first. Sessions point to heads, so these stay where they are. */
static void clear_head(session_cache *c, served_head *head)
{
    for (size_t i = c->n_sessions; i-- > 0;)
        if (c->sessions[i].head == head) remove_session(c, i);
    renyi_model_free(head->model);
    *head = (served_head){0};
}

void session_cache_free(session_cache *c)
{
    if (!c) return;
    while (c->n_sessions) remove_session(c, 0);
    for (size_t i = 0; i < c->n_heads; i++) clear_head(c, &c->heads[i]);
    renyi_text_session_free(c->text);
    free(c->sessions);
    free(c->heads);
    free(c);
}

/* ---- classes -----------------------------------------------------------------------------------
 */

/* Borrowed strings of a JSON list; owned list; NULL without memory. */
static const char **borrow_strings(const json_t *list)
{
    const size_t n = json_array_size(list);
    const char **out = calloc(n + 1, sizeof *out);

    for (size_t i = 0; out && i < n; i++) out[i] = json_string_value(json_array_get(list, i));
    return out;
}

static renyi_status make_head(const serve_model *m, const serve_job *job, renyi_model **out,
                              renyi_error *err)
{
    const char **names = borrow_strings(job->request.classes);
    const char **templates = borrow_strings(job->request.templates);
    const uint32_t n = (uint32_t)json_array_size(job->request.classes);
    const renyi_classifier_options o = {.struct_size = sizeof o,
                                        .templates = templates,
                                        .n_templates =
                                            (uint32_t)json_array_size(job->request.templates),
                                        .truncate = job->request.truncate != 0,
                                        .n_threads = (uint32_t)m->server->config->threads};
    renyi_classifier *c = NULL;
    renyi_status st = names && templates ? RENYI_OK : RENYI_ERR_NOMEM;

    err->code = st;
    if (!st) st = renyi_classifier_new(&c, m->text.text, m->text.tokenizer, names, n, &o, err);
    if (!st) st = zeroshot_head(out, m->vision, c, names, err);
    renyi_classifier_free(c);
    free(names);
    free(templates);
    return st;
}

/* The head of the job's classes; made if needed. NULL with *err. */
static served_head *find_head(serve_model *m, const serve_job *job, renyi_error *err)
{
    session_cache *c = m->sessions;
    served_head *oldest = &c->heads[0];
    renyi_model *model = NULL;

    for (size_t i = 0; i < c->n_heads; i++) {
        served_head *head = &c->heads[i];
        if (head->model && strcmp(head->digest, job->digest) == 0) {
            head->used = ++c->clock;
            return head;
        }
        if (head->used < oldest->used) oldest = head;
    }
    if (make_head(m, job, &model, err) != RENYI_OK) return NULL;
    served_head *head = c->n_heads < c->max ? &c->heads[c->n_heads++] : oldest;
    clear_head(c, head);
    memcpy(head->digest, job->digest, sizeof head->digest);
    head->model = model;
    head->used = ++c->clock;
    return head;
}

/* ---- sessions ----------------------------------------------------------------------------------
 */

/* Stops a run when the server must end. */
static int on_progress(void *user, uint64_t done, uint64_t total)
{
    const serve_server *s = user;

    (void)done;
    (void)total;
    return atomic_load(&s->is_aborting);
}

static renyi_status make_session(serve_model *m, const serve_job *job, served_session *out,
                                 renyi_error *err)
{
    const serve_config *config = m->server->config;
    const renyi_model *model = out->head ? out->head->model : m->vision;
    const int is_embedding = job->kind == REQUEST_EMBEDDINGS || job->kind == REQUEST_PREDICT;
    const renyi_session_options o = {.struct_size = sizeof o,
                                     .max_batch = (uint32_t)config->max_batch,
                                     .n_threads = (uint32_t)config->threads,
                                     .policy = job->policy,
                                     .progress = on_progress,
                                     .progress_user = m->server,
                                     .trace = job->request.with_trace != 0,
                                     .output =
                                         is_embedding ? RENYI_OUTPUT_EMBEDDING : RENYI_OUTPUT_AUTO,
                                     .n_streams = (uint32_t)config->streams};
    renyi_layer_cost *layers = calloc(m->info.n_blocks + 1, sizeof *layers);
    renyi_cost dense, cost;
    renyi_status st = layers ? RENYI_OK : RENYI_ERR_NOMEM;

    err->code = st;
    if (!st) st = renyi_policy_cost(model, NULL, "none", &dense, NULL, 0, err);
    if (!st) st = renyi_policy_cost(model, NULL, job->policy, &cost, layers, m->info.n_blocks, err);
    if (!st) st = renyi_session_new(&out->session, model, &o, err);
    if (!st) {
        out->n_row = renyi_session_outputs(out->session);
        /* Without the classifier, if embeddings are asked for. */
        const double unused = cost.total.macs_executed - renyi_session_macs(out->session);
        out->macs_dense = dense.total.macs_executed - unused;
        out->dropped = layers[0].tokens_in - layers[cost.n_blocks - 1].tokens_out;
    }
    free(layers);
    return st;
}

served_session *session_cache_get(serve_model *m, serve_job *job)
{
    session_cache *c = open_cache(m);
    served_session made = {0};
    renyi_error err = {.code = RENYI_ERR_NOMEM};
    size_t oldest = 0;

    for (size_t i = 0; c && i < c->n_sessions; i++) {
        if (strcmp(c->sessions[i].key, job->key) == 0) {
            c->sessions[i].used = ++c->clock;
            return &c->sessions[i];
        }
        if (c->sessions[i].used < c->sessions[oldest].used) oldest = i;
    }
    if (c && c->n_sessions == c->max) remove_session(c, oldest);
    if (c && job->digest[0]) made.head = find_head(m, job, &err);
    if (c && (!job->digest[0] || made.head)) made.key = strdup(job->key);
    if (!made.key || make_session(m, job, &made, &err) != RENYI_OK) {
        free(made.key);
        job_fail_library(job, &err);
        return NULL;
    }
    made.used = ++c->clock;
    metrics_add(&m->server->metrics, &m->server->metrics.sessions_made);
    c->sessions[c->n_sessions] = made;
    return &c->sessions[c->n_sessions++];
}

renyi_text_session *session_cache_text(serve_model *m, renyi_error *err)
{
    const renyi_text_session_options o = {.struct_size = sizeof o,
                                          .n_threads = (uint32_t)m->server->config->threads,
                                          .progress = on_progress,
                                          .progress_user = m->server};
    session_cache *c = open_cache(m);

    err->code = RENYI_ERR_NOMEM;
    if (c && !c->text && renyi_text_session_new(&c->text, m->text.text, &o, err) != RENYI_OK)
        return NULL;
    return c ? c->text : NULL;
}
