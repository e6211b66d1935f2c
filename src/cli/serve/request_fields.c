/* request_fields.c - the fields of a request: strings, flags, numbers and images in a JSON object,
 * each refused with its name and what is allowed (request.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/data_url.h"
#include "cli/serve/request.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int request_fail(request_error *err, int status, const char *code, const char *param,
                 const char *fmt, ...)
{
    va_list args;

    err->status = status;
    err->code = code;
    err->param = param;
    va_start(args, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    return -1;
}

/* ---- plain fields ---------------------------------------------------------------------------- */

static const json_t *get(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    return json_is_null(value) ? NULL : value;
}

int request_string(const json_t *root, const char *key, const char **out, request_error *err)
{
    const json_t *value = get(root, key);

    if (!value) return 0;
    if (!json_is_string(value))
        return request_fail(err, 400, "invalid_type", key, "'%s' must be a string", key);
    *out = json_string_value(value);
    return 1;
}

int request_flag(const json_t *root, const char *key, int *out, request_error *err)
{
    const json_t *value = get(root, key);

    if (!value) return 0;
    if (!json_is_boolean(value))
        return request_fail(err, 400, "invalid_type", key, "'%s' must be true or false", key);
    *out = json_is_true(value);
    return 1;
}

int request_count(const json_t *root, const char *key, uint64_t least, uint64_t most, uint64_t *out,
                  request_error *err)
{
    const json_t *value = get(root, key);

    if (!value) return 0;
    if (!json_is_integer(value))
        return request_fail(err, 400, "invalid_type", key, "'%s' must be an integer", key);
    const json_int_t number = json_integer_value(value);
    if (least == most && (number < 0 || (uint64_t)number != least))
        return request_fail(err, 400, "unsupported", key, "'%s' other than %llu is not supported",
                            key, (unsigned long long)least);
    if (number < 0 || (uint64_t)number < least || (uint64_t)number > most)
        return request_fail(err, 400, "invalid_value", key, "'%s' is %lld; %llu to %llu is allowed",
                            key, (long long)number, (unsigned long long)least,
                            (unsigned long long)most);
    *out = (uint64_t)number;
    return 1;
}

int request_real(const json_t *root, const char *key, double least, double most, double *out,
                 request_error *err)
{
    const json_t *value = get(root, key);

    if (!value) return 0;
    if (!json_is_number(value))
        return request_fail(err, 400, "invalid_type", key, "'%s' must be a number", key);
    const double number = json_number_value(value);
    if (least >= most && !(number >= least && number <= most))
        return request_fail(err, 400, "unsupported", key, "'%s' other than %g is not supported",
                            key, least);
    if (!(number >= least && number <= most))
        return request_fail(err, 400, "invalid_value", key, "'%s' is %g; %g to %g is allowed", key,
                            number, least, most);
    *out = number;
    return 1;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* The URL in "data:...", {"url": "data:..."}, {"image_url": ...}; NULL = none. Each form holds at
 * most one more form, so the depth is bounded. */
static const json_t *find_url(const json_t *value, int depth)
{
    if (json_is_string(value) || !json_is_object(value) || depth > 2)
        return json_is_string(value) ? value : NULL;
    const json_t *inner = json_object_get(value, "image_url");
    if (!inner) inner = json_object_get(value, "url");
    return find_url(inner, depth + 1);
}

int request_add_image(serve_request *r, const json_t *value, const request_limits *limits,
                      const char *param, request_error *err)
{
    const json_t *url = find_url(value, 0);
    request_input in = {0};
    const char *why;
    size_t n_images = 1;

    for (size_t i = 0; i < r->n_inputs; i++) n_images += r->inputs[i].text == NULL;
    if (n_images > limits->images)
        return request_fail(err, 413, "too_many_images", param,
                            "more than %llu images in a request",
                            (unsigned long long)limits->images);
    if (!url)
        return request_fail(err, 400, "invalid_type", param,
                            "image %zu is neither a string \"data:image/jpeg;base64,...\" nor an "
                            "object with it in 'image_url'",
                            n_images);
    request_input *grown = realloc(r->inputs, (r->n_inputs + 1) * sizeof *grown);
    if (!grown) return request_fail(err, 503, "no_memory", NULL, "out of memory");
    r->inputs = grown;
    switch (data_url_decode(json_string_value(url), json_string_length(url), &in.owned, &in.size,
                            &why)) {
    case DATA_URL_OK: break;
    case DATA_URL_NOMEM: return request_fail(err, 503, "no_memory", NULL, "out of memory");
    default:
        return request_fail(err, 400, "invalid_image_url", param, "image %zu: %s", n_images, why);
    }
    in.bytes = in.owned;
    r->inputs[r->n_inputs++] = in;
    return 0;
}
