/* serve_model.h - a model that is served: what it can do, its queue, and what its thread keeps.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_SERVE_MODEL_H
#define RENYI_SERVE_MODEL_H

#include "cli/serve/serve_job.h"
#include "cli/shared/models.h"

#include "renyi/clip.h"
#include "renyi/llava.h"

typedef struct session_cache session_cache;
typedef struct chat_cache chat_cache;

struct serve_model {
    serve_server *server;
    char *name;

    /* An image model, with its text tower if it has one; or a language model. */
    renyi_model *vision;
    renyi_model_info info;
    char **labels; /* [info.n_classes] */
    text_tower text;
    int has_text;
    renyi_lvlm *lvlm;
    renyi_lm_info lm;
    char policy[RENYI_POLICY_MAX]; /* of requests that name none */

    /* The queue. */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    job_input *first, *last;
    atomic_uint n_waiting;
    int stops;
    pthread_t thread;
    int has_thread;

    /* Of the thread. */
    session_cache *sessions;
    chat_cache *chats;
    serve_job *current; /* the chat that runs */
};

/* ---- opening (serve_model.c) -------------------------------------------------------------------
 */

/* given: MODEL or NAME=MODEL. NULL after reporting. */
serve_model *served_model_open(serve_server *server, const char *given);
void served_model_free(serve_model *m);

/* Of a language model. */
renyi_conversation_options served_model_chat(const serve_model *m, const char *policy);

int served_model_can(const serve_model *m, request_kind kind); /* images and texts together */
json_t *served_model_json(const serve_model *m);               /* an entry of /v1/models */

/* The model of a request: the one it names, else the first that can. NULL with job's error. */
serve_model *served_model_find(serve_job *job);

/* ---- loading (load_models.c) -------------------------------------------------------------------
 */

/* Starts the thread that opens all models and starts theirs. 0, or -1 after reporting. */
int models_load(serve_server *s);
int models_are_loaded(serve_server *s);
void models_stop(serve_server *s); /* ends the threads of models_load */
void models_free(serve_server *s);

/* ---- the queue (model_queue.c) -----------------------------------------------------------------
 */

int model_queue_start(serve_model *m); /* 0, or -1 after reporting */
/* Adds the inputs of a job; its thread owns the job until all are done. */
void model_queue_add(serve_model *m, serve_job *job, size_t n_inputs);
void model_queue_stop(serve_model *m); /* finishes what was added, then ends the thread */

/* ---- runs: n inputs with the same key
 * ------------------------------------------------------------ */

void run_images(serve_model *m, job_input **batch, uint32_t n); /* run_batch.c */
void run_texts(serve_model *m, job_input **batch, uint32_t n);  /* run_batch.c */
void run_chat(serve_model *m, serve_job *job);                  /* run_chat.c */

/* ---- sessions (session_cache.c)
 * ------------------------------------------------------------------ */

/* A session for a policy, output and set of classes. */
typedef struct served_session {
    renyi_session *session;
    char *key;
    uint32_t n_row;
    uint64_t dropped, used;
    double macs_dense;
    struct served_head *head; /* classes; NULL = the model's own */
} served_session;

/* The one of a job; made if needed, and the least used one freed. NULL with the job's error. */
served_session *session_cache_get(serve_model *m, serve_job *job);
renyi_text_session *session_cache_text(serve_model *m, renyi_error *err);
void session_cache_free(session_cache *c);
void chat_cache_free(chat_cache *c);

#endif
