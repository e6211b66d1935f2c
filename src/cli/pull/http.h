/* http.h - the HTTP requests of `renyi pull`, over libcurl.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Redirects are followed here, not by libcurl, so that the token is sent only to the endpoint and
 * https is never redirected to http.
 */
#ifndef RENYI_HTTP_H
#define RENYI_HTTP_H

#include <stddef.h>
#include <stdint.h>

typedef struct http_client http_client;

typedef struct http_settings {
    const char *endpoint; /* "https://huggingface.co": where the token may go; borrowed */
    const char *token;    /* NULL = none; borrowed */
    long stall_seconds;   /* give up after this time with less than HTTP_LEAST_SPEED */
    long total_seconds;   /* give up after this time, all requests together */
} http_settings;

enum {
    HTTP_LEAST_SPEED = 1000,     /* bytes per second */
    HTTP_MAX_PAGE = 64 << 10,    /* bytes read of an error page or of a redirect's page */
    HTTP_MAX_HEADERS = 256 << 10 /* bytes of all headers of one request */
};

/* Headers of the last response. Empty string or -1: not sent. */
typedef struct http_reply {
    long status;
    int64_t content_length, linked_size, range_start;
    char etag[256], linked_etag[256]; /* without quotes and W/ */
    char commit[64], error_code[64];
    char location[4096];
} http_reply;

typedef enum http_result {
    HTTP_DONE,   /* there is a reply, with any status */
    HTTP_CUT,    /* the connection ended or stalled; trying again may help */
    HTTP_REFUSED /* the sink stopped it, the time is over, or the request is impossible */
} http_result;

/* Receives the body of a 200 or 206 reply piece by piece; returns 0, or -1 to stop. */
typedef int http_sink(void *user, const http_reply *reply, const void *data, size_t size);

http_client *http_client_new(const http_settings *settings); /* NULL if libcurl does not start */
void http_client_free(http_client *client);
const char *http_error(const http_client *client); /* of the last request that was not HTTP_DONE */

/* Stops at the first reply that describes the file, as huggingface_hub does: only relative
 * redirects (a renamed repository) are followed. */
http_result http_head(http_client *client, const char *url, http_reply *reply);
/* Bytes from `from` to the end. All redirects are followed. */
http_result http_get(http_client *client, const char *url, uint64_t from, http_sink *sink,
                     void *user, http_reply *reply);

#endif
