/* serve_job.h - one request under way: its body, what was read from it, the results, the answer.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A job belongs to one thread at a time: HTTP -> worker (job_prepare) -> thread of the model ->
 * worker (job_finish) -> HTTP. While it is away from HTTP its connection is suspended. A chat that
 * streams is the exception: the model's thread writes while HTTP sends, under `lock`.
 */
#ifndef RENYI_SERVE_JOB_H
#define RENYI_SERVE_JOB_H

#include "cli/serve/serve.h"

struct MHD_Connection;

/* One image or text of a request. */
typedef struct job_input {
    uint8_t *pixels; /* [size, size, 3] of an image */
    int32_t *ids;    /* [context] of a text */
    uint32_t n_ids;
    uint32_t width, height; /* of the image as sent */
    float *row;             /* [n_row] logits or embedding */
    json_t *trace;
    double ms_decode, ms, macs, macs_dense;
    uint32_t batch; /* images that ran together */
    serve_job *job;
    const char *key;        /* inputs with the same key may share a batch */
    struct job_input *next; /* in the queue of a model */
    double queued;          /* when it entered the queue, ms */
} job_input;

/* The text of a streamed answer between the thread of the model and HTTP. */
typedef struct job_stream {
    char *bytes;
    size_t size, capacity, sent;
    int is_open, is_ended, is_waiting; /* waiting: HTTP is suspended until there is more */
} job_stream;

struct serve_job {
    serve_server *server;
    atomic_int refs;
    uint64_t id;

    /* HTTP */
    struct MHD_Connection *connection;
    int fd;
    size_t route;
    double begun; /* ms */
    char address[64], path[128], method[16];
    char *content_type; /* owned */
    unsigned char *body;
    size_t body_size, body_capacity;
    int is_admitted, is_incoming;
    int closes; /* the connection ends with the answer */

    /* work */
    pool_task *task;
    serve_job *next_task;
    request_kind kind;
    serve_request request;
    serve_model *model;
    char policy[RENYI_POLICY_MAX]; /* with all defaults */
    char *key;                     /* of its images; owned */
    char digest[65];               /* of the classes, or of a chat's image; "" = none */
    job_input *inputs;             /* [request.n_inputs], of a chat one */
    renyi_image image;             /* of a chat; owned */
    uint32_t n_row;
    atomic_uint n_left;

    /* answer */
    pthread_mutex_t lock;
    request_error error; /* status 0 = none */
    int status, is_done, is_gone;
    char *answer; /* owned */
    size_t answer_size;
    const char *type, *retry_after;
    job_stream stream;
};

serve_job *job_new(serve_server *server); /* NULL without memory; one reference */
void job_ref(serve_job *job);
void job_unref(serve_job *job);

/* 1 if its client closed the connection. Only while the connection is suspended. */
int job_client_is_gone(const serve_job *job);

/* The first error of a job stays. */
void job_fail(serve_job *job, int status, const char *code, const char *param, const char *fmt, ...)
    CLI_PRINTF(5, 6);
/* An error of the library: the client's fault (400) or the server's (500). */
void job_fail_library(serve_job *job, const renyi_error *err);

/* Sets the answer from its error, or from a document, which is consumed. */
void job_answer_error(serve_job *job);
void job_answer_json(serve_job *job, int status, json_t *document);
/* The answer is complete: HTTP may send it. The caller must not use the job any more. */
void job_hand_back(serve_job *job);

/* ---- steps ------------------------------------------------------------------------------------
 */

void job_prepare(serve_job *job); /* a worker's: reads the body, decodes, queues (job_prepare.c) */
void job_finish(serve_job *job);  /* a worker's: writes the answer (job_finish.c) */

/* ---- streams (job_stream.c) --------------------------------------------------------------------
 */

/* "data: {...}\n\n"; the document is consumed. 0, or -1 if the client is gone or without memory.
 * The first event starts the answer. */
int stream_event(serve_job *job, json_t *document);
void stream_end(serve_job *job);
/* For HTTP: copies up to max bytes; 0 = nothing yet, the connection is suspended; -1 = the end. */
long stream_read(serve_job *job, char *buffer, size_t max);

#endif
