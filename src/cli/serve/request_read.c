/* request_read.c - reads the body of a request: JSON or a form, then the fields of its kind
 * (request.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/multipart.h"
#include "cli/serve/request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int no_memory(request_error *err)
{
    return request_fail(err, 503, "no_memory", NULL, "out of memory");
}

static int add_input(serve_request *r, request_input in, request_error *err)
{
    request_input *grown = realloc(r->inputs, (r->n_inputs + 1) * sizeof *grown);

    if (!grown) return no_memory(err);
    r->inputs = grown;
    r->inputs[r->n_inputs++] = in;
    return 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Values of a request besides its texts and images. */
enum { OTHER_VALUES = 1 << 16, IMAGE_VALUES = 8 };

/* Commas and brackets bound the values of a document, which are counted before one is made: "[],"
 * has three bytes and takes a hundred of memory. */
static int has_few_values(const char *text, size_t size, const request_limits *limits)
{
    const uint64_t most = OTHER_VALUES + limits->texts + IMAGE_VALUES * limits->images;
    uint64_t n = 1;
    int in_text = 0;

    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"')
            in_text = !in_text;
        else if (in_text)
            i += text[i] == '\\';
        else
            n += text[i] == ',' || text[i] == '[' || text[i] == '{';
    }
    return n <= most;
}

/* ---- forms: fields become a JSON object, files become images --------------------------------- */

/* Fields that are lists, and fields whose text is a JSON value: 5, true. */
static int is_list(const char *key)
{
    return strcmp(key, "classes") == 0 || strcmp(key, "templates") == 0;
}

static int is_value(const char *key)
{
    return strcmp(key, "top_k") == 0 || strcmp(key, "trace") == 0 || strcmp(key, "truncate") == 0 ||
           strcmp(key, "entries") == 0;
}

/* json_stringn refuses what is not UTF-8 and, without memory, everything. */
static int add_field(serve_request *r, const multipart_part *part, const request_limits *limits,
                     request_error *err)
{
    json_t *key = json_stringn(part->name, part->n_name);
    json_t *value = json_stringn((const char *)part->bytes, part->size);
    int code = 0;

    if (!key || !value || strlen(json_string_value(key)) != part->n_name ||
        strlen(json_string_value(value)) != part->size) {
        code =
            request_fail(err, 400, "invalid_form", NULL, "a field of the form is not UTF-8 text");
    } else if (is_list(json_string_value(key))) {
        json_t *list = json_object_get(r->root, json_string_value(key));
        if (!list) json_object_set_new(r->root, json_string_value(key), list = json_array());
        code = json_array_append(list, value) ? no_memory(err) : 0;
    } else {
        if (is_value(json_string_value(key)) &&
            has_few_values((const char *)part->bytes, part->size, limits)) {
            json_t *read = json_loadb((const char *)part->bytes, part->size,
                                      JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
            if (read) {
                json_decref(value);
                value = read;
            }
        }
        code = json_object_set(r->root, json_string_value(key), value) ? no_memory(err) : 0;
    }
    json_decref(key);
    json_decref(value);
    return code;
}

static int add_file(serve_request *r, const multipart_part *part, const request_limits *limits,
                    request_error *err)
{
    json_t *name = json_stringn(part->filename, part->n_filename); /* NULL: not UTF-8, no name */
    const request_input in = {
        .bytes = part->bytes, .size = part->size, .name = json_string_value(name)};

    if (name && json_array_append_new(r->names, name)) return no_memory(err);
    if (r->n_inputs >= limits->images)
        return request_fail(err, 413, "too_many_images", NULL, "more than %llu images in a request",
                            (unsigned long long)limits->images);
    return add_input(r, in, err);
}

static int read_form(serve_request *r, const char *boundary, const void *body, size_t size,
                     const request_limits *limits, request_error *err)
{
    multipart m;
    multipart_part part;
    int more = multipart_begin(&m, boundary, body, size), code = 0;

    r->root = json_object();
    r->names = json_array();
    if (!r->root || !r->names) return no_memory(err);
    if (!more) more = 1;
    while (more > 0 && !code && (more = multipart_next(&m, &part)) > 0)
        code = part.filename ? add_file(r, &part, limits, err) : add_field(r, &part, limits, err);
    if (more < 0) return request_fail(err, 400, "invalid_form", NULL, "%s", m.why);
    return code;
}

static int read_json(serve_request *r, const void *body, size_t size, const request_limits *limits,
                     request_error *err)
{
    json_error_t at;

    if (!size) return request_fail(err, 400, "invalid_json", NULL, "the body is empty");
    if (!has_few_values(body, size, limits))
        return request_fail(err, 413, "too_many_values", NULL,
                            "the body has more values than its texts and images need");
    r->root = json_loadb(body, size, JSON_REJECT_DUPLICATES, &at);
    if (!r->root)
        return request_fail(err, 400, "invalid_json", NULL,
                            "the body is not valid JSON: line %d, column %d: %.200s", at.line,
                            at.column, at.text);
    if (json_is_object(r->root)) return 0;
    return request_fail(err, 400, "invalid_type", NULL, "the body must be a JSON object");
}

static int read_body(serve_request *r, const char *content_type, const void *body, size_t size,
                     const request_limits *limits, request_error *err)
{
    static const char json[] = "application/json";
    char boundary[MULTIPART_BOUNDARY + 1];
    const int takes_form = r->kind != REQUEST_CHAT && r->kind != REQUEST_EMBEDDINGS;
    const int takes_json = r->kind != REQUEST_PREDICT;

    if (!content_type) content_type = "";
    const size_t n_type = strcspn(content_type, "; \t");
    if (takes_json && n_type == sizeof json - 1 && strncasecmp(content_type, json, n_type) == 0)
        return read_json(r, body, size, limits, err);
    if (takes_form && multipart_boundary(content_type, boundary) == 0)
        return read_form(r, boundary, body, size, limits, err);
    return request_fail(err, 415, "unsupported_media_type", NULL, "the Content-Type must be %s%s%s",
                        takes_json ? json : "", takes_json && takes_form ? " or " : "",
                        takes_form ? "multipart/form-data with a boundary" : "");
}

/* ---- fields of images and texts -------------------------------------------------------------- */

static int add_text(serve_request *r, const json_t *value, const request_limits *limits,
                    const char *param, request_error *err)
{
    size_t n_texts = 1;

    for (size_t i = 0; i < r->n_inputs; i++) n_texts += r->inputs[i].text != NULL;
    if (n_texts > limits->texts)
        return request_fail(err, 413, "too_many_texts", param, "more than %llu texts in a request",
                            (unsigned long long)limits->texts);
    if (json_string_length(value) > limits->text_bytes)
        return request_fail(err, 413, "text_too_long", param,
                            "text %zu has %zu bytes; %llu are allowed", n_texts,
                            json_string_length(value), (unsigned long long)limits->text_bytes);
    if (!json_string_length(value))
        return request_fail(err, 400, "invalid_value", param, "text %zu is empty", n_texts);
    return add_input(r, (request_input){.text = json_string_value(value)}, err);
}

/* An item of `input`: a text, {"text": ...} or an object with an image. */
static int add_item(serve_request *r, const json_t *value, const request_limits *limits,
                    request_error *err)
{
    const json_t *image = json_object_get(value, "image_url"); /* NULL unless value is an object */
    const json_t *text = json_is_object(value) ? json_object_get(value, "text") : value;
    const json_t *type = json_object_get(value, "type"); /* likewise */

    if (type && !json_is_string(type))
        return request_fail(err, 400, "invalid_type", "input",
                            "'type' of an item of 'input' must be a string");
    if (json_is_object(value) && json_is_null(text)) text = NULL;
    if (image && !json_is_null(image) && text)
        return request_fail(err, 400, "invalid_value", "input",
                            "an item of 'input' has 'text' or 'image_url', not both");
    if (json_is_string(text)) return add_text(r, text, limits, "input", err);
    if (json_is_object(value) && !text) return request_add_image(r, value, limits, "input", err);
    return request_fail(err, 400, "invalid_type", "input",
                        "'input' takes texts and images, not token ids: a string, or a list of "
                        "strings and of objects with 'text' or 'image_url'");
}

static int read_embeddings(serve_request *r, const request_limits *limits, request_error *err)
{
    const json_t *input = json_object_get(r->root, "input");
    const char *format = "float";
    size_t i;
    json_t *value;

    if (request_string(r->root, "encoding_format", &format, err) < 0) return -1;
    if (strcmp(format, "float") != 0 && strcmp(format, "base64") != 0)
        return request_fail(err, 400, "invalid_value", "encoding_format",
                            "'encoding_format' must be float or base64");
    r->is_base64 = strcmp(format, "base64") == 0;
    value = json_object_get(r->root, "dimensions");
    if (value && !json_is_null(value))
        return request_fail(err, 400, "unsupported", "dimensions",
                            "'dimensions' is not supported: the first values of these embeddings "
                            "are not embeddings, so they cannot be shortened");
    if (request_flag(r->root, "truncate", &r->truncate, err) < 0) return -1;
    if (!input) return request_fail(err, 400, "missing", "input", "'input' is missing");
    if (!json_is_array(input)) return add_item(r, input, limits, err);
    if (!json_array_size(input))
        return request_fail(err, 400, "invalid_value", "input", "'input' is an empty list");
    json_array_foreach((json_t *)input, i, value) if (add_item(r, value, limits, err)) return -1;
    return 0;
}

/* 'image' or 'images'; a form has brought its files already. */
static int read_images(serve_request *r, const request_limits *limits, request_error *err)
{
    const json_t *one = json_object_get(r->root, "image"),
                 *list = json_object_get(r->root, "images");
    size_t i;
    json_t *value;

    if (json_is_null(one)) one = NULL;
    if (json_is_null(list)) list = NULL;
    if (one && request_add_image(r, one, limits, "image", err)) return -1;
    if (list && !json_is_array(list))
        return request_fail(err, 400, "invalid_type", "images", "'images' must be a list");
    json_array_foreach((json_t *)list, i,
                       value) if (request_add_image(r, value, limits, "images", err)) return -1;
    if (r->n_inputs) return 0;
    return request_fail(err, 400, "missing", "images",
                        "no image: give 'image' or 'images' with data: URLs, or files in a form");
}

static int read_classify(serve_request *r, const request_limits *limits, request_error *err)
{
    uint64_t top_k = 5;

    if (request_count(r->root, "top_k", 1, 1000000, &top_k, err) < 0) return -1;
    r->top_k = (uint32_t)top_k;
    if (request_flag(r->root, "trace", &r->with_trace, err) < 0) return -1;
    return read_images(r, limits, err);
}

/* A list of texts that are not empty; *n of them. */
static int check_texts(const json_t *list, const char *key, const request_limits *limits, size_t *n,
                       request_error *err)
{
    size_t i;
    json_t *value;

    *n = json_array_size(list);
    if (!json_is_array(list) || !*n)
        return request_fail(err, 400, list ? "invalid_type" : "missing", key,
                            "'%s' must be a list of texts", key);
    json_array_foreach((json_t *)list, i, value)
    {
        const size_t size = json_string_length(value);
        if (!size)
            return request_fail(err, 400, "invalid_type", key, "'%s': item %zu is not a text", key,
                                i + 1);
        if (size > limits->text_bytes)
            return request_fail(err, 413, "text_too_long", key,
                                "'%s': item %zu has %zu bytes; %llu are allowed", key, i + 1, size,
                                (unsigned long long)limits->text_bytes);
    }
    return 0;
}

static int read_zeroshot(serve_request *r, const request_limits *limits, request_error *err)
{
    size_t n_classes = 0, n_templates = 1, i;
    json_t *value;

    r->classes = json_object_get(r->root, "classes");
    r->templates = json_object_get(r->root, "templates");
    if (json_is_null(r->templates)) r->templates = NULL;
    if (check_texts(r->classes, "classes", limits, &n_classes, err)) return -1;
    if (r->templates && check_texts(r->templates, "templates", limits, &n_templates, err))
        return -1;
    json_array_foreach(r->templates, i, value) if (
        !strstr(json_string_value(value),
                "{}")) return request_fail(err, 400, "invalid_value", "templates",
                                           "'templates': item %zu has no {} for the class", i + 1);
    if (n_classes > limits->texts / n_templates)
        return request_fail(err, 413, "too_many_texts", "classes",
                            "%zu classes x %zu templates; %llu texts are allowed", n_classes,
                            n_templates, (unsigned long long)limits->texts);
    if (request_flag(r->root, "truncate", &r->truncate, err) < 0) return -1;
    return read_classify(r, limits, err);
}

/* Immich: 'entries' is {"clip": {"visual" or "textual": {"modelName": ..., "options": {}}}}, and
 * the form has the file 'image' or the field 'text'. */
static int read_predict(serve_request *r, const request_limits *limits, request_error *err)
{
    const json_t *entries = json_object_get(r->root, "entries");
    const json_t *clip = json_object_get(entries, "clip"), *text = json_object_get(r->root, "text");
    const json_t *visual = json_object_get(clip, "visual");
    const json_t *entry = visual ? visual : json_object_get(clip, "textual");

    if (!json_is_object(entries))
        return request_fail(err, 422, "invalid_value", "entries",
                            "'entries' must be a JSON object");
    if (json_object_size(entries) != 1 || json_object_size(clip) != 1 || !json_is_object(entry))
        return request_fail(err, 422, "unsupported", "entries",
                            "only {\"clip\": {\"visual\" or \"textual\": {...}}} is served");
    if (request_string(entry, "modelName", &r->model, err) < 0) return -1;
    if (!visual && json_is_string(text)) {
        r->n_inputs = 0;
        r->truncate = 1;
        return add_text(r, text, limits, "text", err);
    }
    if (visual && r->n_inputs == 1) return 0;
    return request_fail(err, 400, "missing", visual ? "image" : "text", "%s must be provided",
                        visual ? "one image" : "a text");
}

int request_read(serve_request *out, request_kind kind, const char *content_type, const void *body,
                 size_t size, const request_limits *limits, request_error *err)
{
    *out = (serve_request){.kind = kind, .top_k = 5};
    *err = (request_error){0};
    if (read_body(out, content_type, body, size, limits, err)) return -1;
    if (kind == REQUEST_PREDICT) return read_predict(out, limits, err);
    if (request_string(out->root, "model", &out->model, err) < 0) return -1;
    if (request_string(out->root, "prune", &out->prune, err) < 0) return -1;
    if (kind == REQUEST_CHAT) return request_read_chat(out, limits, err);
    if (kind == REQUEST_EMBEDDINGS) return read_embeddings(out, limits, err);
    return kind == REQUEST_ZEROSHOT ? read_zeroshot(out, limits, err)
                                    : read_classify(out, limits, err);
}

void request_free(serve_request *r)
{
    for (size_t i = 0; i < r->n_inputs; i++) free(r->inputs[i].owned);
    for (size_t i = 0; i < r->chat.n_messages; i++) free(r->chat.messages[i].text);
    free(r->inputs);
    free(r->chat.messages);
    json_decref(r->names);
    json_decref(r->root);
    *r = (serve_request){0};
}
