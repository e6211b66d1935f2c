/* request.h - what a client asks for: the fields of a JSON body or of a form, checked by limits.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing here knows HTTP or models: request_read takes the bytes of a body. Strings are borrowed
 * from the JSON document that the request holds, images from the body or from decoded data: URLs.
 */
#ifndef RENYI_REQUEST_H
#define RENYI_REQUEST_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

typedef enum request_kind {
    REQUEST_EMBEDDINGS,
    REQUEST_CLASSIFY,
    REQUEST_ZEROSHOT,
    REQUEST_CHAT,
    REQUEST_PREDICT /* Immich's */
} request_kind;

typedef struct request_limits {
    uint64_t images;     /* per request */
    uint64_t texts;      /* per request; of zero-shot: classes x templates */
    uint64_t text_bytes; /* of one text; of a chat: of all messages together */
    uint64_t tokens;     /* of an answer */
} request_limits;

/* Why a request is refused. */
typedef struct request_error {
    int status;        /* of HTTP: 400, 404, 413, ... */
    const char *code;  /* for programs: "invalid_value"; static */
    const char *param; /* the field at fault; NULL = none; static */
    char message[600];
} request_error;

/* Fills err; returns -1. */
int request_fail(request_error *err, int status, const char *code, const char *param,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* An image or a text, in the order of the request. */
typedef struct request_input {
    const char *text; /* NULL = an image */
    const unsigned char *bytes;
    size_t size;
    unsigned char *owned; /* the same bytes if they are not in the body; else NULL */
    const char *name;     /* file name of an image in a form; NULL = none */
} request_input;

typedef enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT } chat_role;

typedef struct chat_message {
    chat_role role;
    char *text; /* owned: the text parts, joined */
} chat_message;

enum { CHAT_MAX_STOPS = 4, CHAT_STOP_LENGTH = 64 };

typedef struct chat_options {
    chat_message *messages; /* [n_messages] the last one is the user's */
    size_t n_messages;
    size_t image_message; /* the one with the image, if there is an image */
    uint32_t max_tokens;  /* 0 = the server's limit */
    double temperature, top_p;
    uint64_t seed;
    const char *stops[CHAT_MAX_STOPS];
    size_t n_stops;
    int is_streamed, with_usage;
} chat_options;

typedef struct serve_request {
    request_kind kind;
    const char *model; /* NULL = the server chooses */
    const char *prune; /* NULL = the server's policy */
    request_input *inputs;
    size_t n_inputs;
    uint32_t top_k;
    int with_trace, is_base64, truncate;
    json_t *classes, *templates; /* lists of strings; borrowed from root */
    chat_options chat;
    json_t *root;  /* owned: the document that the strings are in */
    json_t *names; /* owned: file names of a form */
} serve_request;

/* Reads a body. content_type: of its header, NULL = none. 0, or -1 with *err; request_free either
 * way. The body must outlive the request. */
int request_read(serve_request *out, request_kind kind, const char *content_type, const void *body,
                 size_t size, const request_limits *limits, request_error *err);
void request_free(serve_request *r);

/* ---- for the readers of single kinds --------------------------------------------------------- */

/* Adds an image given as {"url": "data:..."}, as a string, or {"image_url": ...}. 0 or -1. */
int request_add_image(serve_request *r, const json_t *value, const request_limits *limits,
                      const char *param, request_error *err);
/* Optional fields: 1 if given, 0 if not or null, -1 with *err if it has another type or value. */
int request_string(const json_t *root, const char *key, const char **out, request_error *err);
int request_flag(const json_t *root, const char *key, int *out, request_error *err);
int request_count(const json_t *root, const char *key, uint64_t least, uint64_t most, uint64_t *out,
                  request_error *err);
int request_real(const json_t *root, const char *key, double least, double most, double *out,
                 request_error *err);

/* The messages and options of a chat (request_chat.c). */
int request_read_chat(serve_request *r, const request_limits *limits, request_error *err);

#endif
