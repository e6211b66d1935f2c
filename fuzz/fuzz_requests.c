/* fuzz_requests.c - what clients of the server send: JSON bodies, forms and data: URLs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/data_url.h"
#include "cli/serve/multipart.h"
#include "cli/serve/request.h"
#include "fuzz_targets.h"

#include <stdlib.h>
#include <string.h>

/* ---- request --------------------------------------------------------------------------------- */

static int is_inside(const void *at, size_t n, const void *from, size_t size)
{
    const unsigned char *a = at, *f = from;
    return a >= f && n <= size && (size_t)(a - f) <= size - n;
}

/* What was accepted is within its limits, and every byte of it can be read. */
static void check_request(const serve_request *r, const request_limits *limits, const void *body,
                          size_t size)
{
    volatile unsigned char sink = 0;
    size_t n_images = 0, n_texts = 0;

    for (size_t i = 0; i < r->n_inputs; i++) {
        const request_input *in = &r->inputs[i];
        n_images += in->text == NULL;
        n_texts += in->text != NULL;
        if (in->text && (!*in->text || strlen(in->text) > limits->text_bytes)) abort();
        if (!in->text && !in->owned && !is_inside(in->bytes, in->size, body, size)) abort();
        for (size_t k = 0; !in->text && k < in->size; k++) sink ^= in->bytes[k];
        if (in->name) sink ^= (unsigned char)in->name[strlen(in->name)];
    }
    (void)sink;
    if (n_images > limits->images || n_texts > limits->texts) abort();
    if (r->kind == REQUEST_CHAT) {
        const chat_options *c = &r->chat;
        if (!c->n_messages || c->messages[c->n_messages - 1].role != CHAT_USER) abort();
        if (c->max_tokens > limits->tokens || c->n_stops > CHAT_MAX_STOPS || n_images > 1) abort();
        if (!(c->temperature >= 0.0) || !(c->top_p > 0.0 && c->top_p <= 1.0)) abort();
    } else if (!r->n_inputs || !r->top_k) {
        abort();
    }
    if (r->kind == REQUEST_ZEROSHOT &&
        json_array_size(r->classes) * (r->templates ? json_array_size(r->templates) : 1) >
            limits->texts)
        abort();
}

/* Any bytes as the body of a request: the first byte selects its kind and whether it is a form with
 * the boundary "b". Refused with a status and a message, or complete. */
int fuzz_request(const uint8_t *data, size_t size)
{
    const request_limits limits = {4, 16, 200, 64};
    request_error err;
    serve_request r;

    if (!size) return 0;
    unsigned char *body = malloc(size); /* exact size: the sanitizer sees overreads */
    if (!body) return 0;
    memcpy(body, data + 1, size - 1);
    const char *type = data[0] & 8 ? "multipart/form-data; boundary=b" : "application/json";
    const request_kind kind = (request_kind)((data[0] & 7) % 5);
    if (request_read(&r, kind, type, body, size - 1, &limits, &err)) {
        if (err.status < 400 || err.status > 599 || !err.code || !err.message[0]) abort();
    } else {
        check_request(&r, &limits, body, size - 1);
    }
    request_free(&r);
    free(body);
    return 0;
}

/* ---- multipart ------------------------------------------------------------------------------- */

/* The text up to the first line end is a Content-Type, the rest the form. Every part lies inside
 * the form, one after the other. */
int fuzz_multipart(const uint8_t *data, size_t size)
{
    const uint8_t *line = memchr(data, '\n', size);
    const size_t n_type = line ? (size_t)(line - data) : size;
    const size_t n = line ? size - n_type - 1 : 0;
    char boundary[MULTIPART_BOUNDARY + 1], *type = malloc(n_type + 1);
    unsigned char *body = malloc(n ? n : 1);
    const unsigned char *before = body;
    multipart m;
    multipart_part part;

    if (!type || !body) abort();
    memcpy(type, data, n_type);
    type[n_type] = 0;
    if (n) memcpy(body, line + 1, n);
    int more = multipart_boundary(type, boundary);
    if (!more) more = multipart_begin(&m, boundary, body, n) ? -1 : 1;
    while (more > 0 && (more = multipart_next(&m, &part)) > 0) {
        if (!part.n_name || !is_inside(part.name, part.n_name, body, n)) abort();
        if (!is_inside(part.bytes, part.size, body, n) || part.bytes < before) abort();
        if (part.filename && !is_inside(part.filename, part.n_filename, body, n)) abort();
        before = part.bytes + part.size;
    }
    free(type);
    free(body);
    return 0;
}

/* ---- data URLs ------------------------------------------------------------------------------- */

/* Any bytes as a URL: refused with a reason, or bytes that encode to the same base64. */
int fuzz_data_url(const uint8_t *data, size_t size)
{
    unsigned char *bytes;
    const char *why;
    size_t n;
    char *url = malloc(size ? size : 1);

    if (!url) return 0;
    if (size) memcpy(url, data, size);
    if (data_url_decode(url, size, &bytes, &n, &why) != DATA_URL_OK) {
        if (bytes || !why) abort();
        free(url);
        return 0;
    }
    char *text = base64_text(bytes, n);
    if (!text) abort();
    const size_t length = strlen(text);
    /* The last digit of padded base64 may have bits that mean nothing. */
    if (length > size || memcmp(url + size - length, text, length > 4 ? length - 4 : 0)) abort();
    free(text);
    free(bytes);
    free(url);
    return 0;
}
