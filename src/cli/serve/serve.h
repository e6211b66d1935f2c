/* serve.h - renyi serve: the options, the state of the server, and the threads that share it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Threads:
 *   main         signals, connections that are too slow, the end (cmd_serve.c, http_connections.c)
 *   loader       opens the models, then ends (load_models.c)
 *   HTTP         libmicrohttpd's: read requests and send answers, never wait (http_server.c)
 *   workers      read bodies, decode images, write answers (serve_pool.c, job_prepare.c)
 *   one a model  takes requests from its queue and runs them in batches (model_queue.c)
 */
#ifndef RENYI_SERVE_H
#define RENYI_SERVE_H

#include "cli/kit/cli.h"
#include "cli/serve/api_keys.h"
#include "cli/serve/request.h"
#include "cli/serve/serve_metrics.h"
#include "cli/shared/images.h"
#include "cli/shared/prune_options.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

typedef struct serve_config {
    cli_strings models; /* as given: MODEL or NAME=MODEL */
    prune_options prune;
    char *policy; /* that the pruning options mean; owned */
    const char *host, *key_file, *log, *cors, *tokenizer, *text_tower, *labels, *cpu, *dtype;
    uint64_t port, threads, streams, workers;
    uint64_t max_batch, max_wait_ms, max_queue, max_sessions, max_chats, max_context;
    uint64_t max_body, max_bodies; /* MB */
    uint64_t max_pixels, max_connections, max_per_address;
    uint64_t header_seconds, body_seconds, idle_seconds, drain_seconds;
    request_limits limits;
    int no_auth, exif;
    const char *decode; /* NULL = exact */
} serve_config;

typedef struct serve_model serve_model;
typedef struct serve_job serve_job;

/* ---- workers (serve_pool.c) ------------------------------------------------------------------ */

typedef void pool_task(serve_job *job);

typedef struct serve_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    serve_job *first, *last; /* linked by job->next_task */
    pthread_t *threads;      /* [n] */
    size_t n;
    int stops;
} serve_pool;

/* 0, or -1 after reporting. */
int pool_start(serve_pool *p, size_t n);
void pool_add(serve_pool *p, serve_job *job, pool_task *task);
void pool_stop(serve_pool *p); /* finishes what was added, then ends the threads */

/* ---- the server ------------------------------------------------------------------------------ */

enum { SERVE_LOADING, SERVE_LOADED, SERVE_NOT_LOADED };
enum { SERVE_WAKE = SIGUSR1 }; /* the loader sends it to the main thread, which waits for signals */

typedef struct serve_server {
    const serve_config *config;
    serve_model **models; /* [n_models] the loader's until loading is SERVE_LOADED */
    size_t n_models;
    atomic_int loading;
    int load_code; /* of the program, when loading is not SERVE_LOADING */
    pthread_t loader;
    serve_pool pool;
    serve_metrics metrics;
    api_keys keys;
    double started;           /* seconds since 1970 */
    atomic_uint n_admitted;   /* requests that were accepted and not answered */
    atomic_uint n_incoming;   /* of these, not in the queue of a model yet */
    atomic_ullong body_bytes; /* memory of bodies */
    atomic_int is_draining;   /* no new work */
    atomic_int is_aborting;   /* running work ends as soon as it can */
} serve_server;

/* ---- log (serve_log.c): one line per request on stderr, text or JSON --------------------------
 */

typedef struct log_request {
    const char *address, *method, *path; /* path: without the query */
    const char *model, *reason;          /* NULL = none; reason: the code of a refusal */
    int status;
    double ms;
    size_t n_inputs;
    uint64_t id;
} log_request;

/* form: "text", "json" or "none"; static. */
void log_open(const char *form);
void log_put(const log_request *r);
void log_event(const char *fmt, ...) CLI_PRINTF(1, 2); /* start, end, keys */

#endif
