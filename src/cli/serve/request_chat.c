/* request_chat.c - the messages and options of a chat, in OpenAI's shape (request.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/request.h"

#include <stdlib.h>
#include <string.h>

/* ---- messages -------------------------------------------------------------------------------- */

static int append(char **text, size_t *size, const json_t *value, const request_limits *limits,
                  request_error *err)
{
    const size_t n = json_string_length(value);

    if (n > limits->text_bytes || *size + n > limits->text_bytes)
        return request_fail(err, 413, "text_too_long", "messages",
                            "a message has more than %llu bytes of text",
                            (unsigned long long)limits->text_bytes);
    char *grown = realloc(*text, *size + n + 1);
    if (!grown) return request_fail(err, 503, "no_memory", NULL, "out of memory");
    memcpy(grown + *size, json_string_value(value), n);
    grown[ *size += n] = 0;
    *text = grown;
    return 0;
}

/* A part of a message's content: {"type": "text", "text": ...} or {"type": "image_url", ...}. */
static int read_part(serve_request *r, const json_t *part, char **text, size_t *size,
                     const request_limits *limits, request_error *err)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    const size_t n = r->chat.n_messages;

    if (type && strcmp(type, "text") == 0 && json_is_string(json_object_get(part, "text")))
        return append(text, size, json_object_get(part, "text"), limits, err);
    if (!type || strcmp(type, "image_url") != 0)
        return request_fail(err, 400, "invalid_type", "messages",
                            "message %zu: a part of the content is {\"type\": \"text\", \"text\": "
                            "...} or {\"type\": \"image_url\", \"image_url\": {\"url\": "
                            "\"data:...\"}}",
                            n);
    if (r->chat.messages[n - 1].role != CHAT_USER)
        return request_fail(err, 400, "invalid_value", "messages",
                            "message %zu: only the user's messages may have images", n);
    if (r->n_inputs)
        return request_fail(err, 400, "too_many_images", "messages",
                            "message %zu: a chat has one image, and message %zu has it already; "
                            "leave one out, or begin a new chat",
                            n, r->chat.image_message + 1);
    r->chat.image_message = n - 1;
    return request_add_image(r, part, limits, "messages", err);
}

static int read_role(chat_role *out, const json_t *message, size_t n, request_error *err)
{
    const char *role = json_string_value(json_object_get(message, "role"));

    *out = CHAT_USER;
    if (!role) return request_fail(err, 400, "missing", "messages", "message %zu has no role", n);
    if (strcmp(role, "user") == 0) return 0;
    *out = CHAT_ASSISTANT;
    if (strcmp(role, "assistant") == 0) return 0;
    *out = CHAT_SYSTEM;
    if (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0) return 0;
    return request_fail(err, 400, "unsupported", "messages",
                        "message %zu: role '%.40s' is not system, user or assistant", n, role);
}

static int read_message(serve_request *r, const json_t *message, const request_limits *limits,
                        request_error *err)
{
    const json_t *content = json_object_get(message, "content");
    chat_message *m = &r->chat.messages[r->chat.n_messages++];
    size_t size = 0, i;
    json_t *part;

    m->text = calloc(1, 1);
    if (!m->text) return request_fail(err, 503, "no_memory", NULL, "out of memory");
    if (read_role(&m->role, message, r->chat.n_messages, err)) return -1;
    if (json_is_string(content)) return append(&m->text, &size, content, limits, err);
    if (!json_is_array(content))
        return request_fail(err, 400, "invalid_type", "messages",
                            "message %zu: 'content' must be a string or a list of parts",
                            r->chat.n_messages);
    json_array_foreach((json_t *)content, i,
                       part) if (read_part(r, part, &m->text, &size, limits, err)) return -1;
    return 0;
}

/* System messages first, then user and assistant by turns, the user last. */
static int check_order(const chat_options *c, request_error *err)
{
    chat_role want = CHAT_USER;

    for (size_t i = 0; i < c->n_messages; i++) {
        const chat_role role = c->messages[i].role;
        if (role == CHAT_SYSTEM && i == 0) continue;
        if (role != want)
            return request_fail(err, 400, "invalid_value", "messages",
                                "message %zu: after an optional system message, messages of the "
                                "user and of the assistant take turns",
                                i + 1);
        want = role == CHAT_USER ? CHAT_ASSISTANT : CHAT_USER;
    }
    if (c->n_messages && c->messages[c->n_messages - 1].role == CHAT_USER) return 0;
    return request_fail(err, 400, "invalid_value", "messages",
                        "the last message must be the user's");
}

static int read_messages(serve_request *r, const request_limits *limits, request_error *err)
{
    const json_t *list = json_object_get(r->root, "messages");
    size_t i, total = 0;
    json_t *message;

    if (!json_is_array(list) || !json_array_size(list))
        return request_fail(err, 400, list ? "invalid_type" : "missing", "messages",
                            "'messages' must be a list of messages");
    r->chat.messages = calloc(json_array_size(list), sizeof *r->chat.messages);
    if (!r->chat.messages) return request_fail(err, 503, "no_memory", NULL, "out of memory");
    json_array_foreach((json_t *)list, i, message)
    {
        if (read_message(r, message, limits, err)) return -1;
        total += strlen(r->chat.messages[i].text);
        if (total > limits->text_bytes)
            return request_fail(err, 413, "text_too_long", "messages",
                                "the messages have more than %llu bytes of text",
                                (unsigned long long)limits->text_bytes);
    }
    return check_order(&r->chat, err);
}

/* ---- options --------------------------------------------------------------------------------- */

/* Of UTF-8: bytes that do not continue a character. */
static size_t count_characters(const json_t *text)
{
    size_t n = 0;

    for (const char *at = json_string_value(text); at && *at; at++) n += (*at & 0xc0) != 0x80;
    return n;
}

static int read_stops(chat_options *c, const json_t *root, request_error *err)
{
    const json_t *stop = json_object_get(root, "stop");
    const size_t n = json_is_array(stop) ? json_array_size(stop) : 1;

    if (!stop || json_is_null(stop)) return 0;
    if (n > CHAT_MAX_STOPS)
        return request_fail(err, 400, "invalid_value", "stop", "'stop' takes up to %d texts",
                            CHAT_MAX_STOPS);
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_is_array(stop) ? json_array_get(stop, i) : stop;
        if (!json_string_length(value) || count_characters(value) > CHAT_STOP_LENGTH)
            return request_fail(err, 400, "invalid_value", "stop",
                                "'stop' takes texts of 1 to %d characters", CHAT_STOP_LENGTH);
        c->stops[c->n_stops++] = json_string_value(value);
    }
    return 0;
}

/* null, false, 0, [], {}, "none", and ["text"], the only kind of answer there is. */
static int asks_for_nothing(const json_t *value)
{
    if (!value || json_is_null(value) || json_is_false(value)) return 1;
    if (json_is_string(value)) return strcmp(json_string_value(value), "none") == 0;
    if (json_is_integer(value)) return json_integer_value(value) == 0;
    if (json_is_object(value)) return json_object_size(value) == 0;
    const char *only = json_string_value(json_array_get(value, 0));
    const size_t n = json_array_size(value);
    return json_is_array(value) && (!n || (n == 1 && only && strcmp(only, "text") == 0));
}

/* What other servers have and would change the answer: refused unless it asks for nothing. */
static int refuse_others(const json_t *root, request_error *err)
{
    static const char *const refused[] = {
        "tools",        "functions",  "tool_choice", "function_call", "logprobs",
        "top_logprobs", "logit_bias", "audio",       "modalities",    "top_k"};
    static const struct {
        const char *key;
        double only;
    } numbers[] = {{"presence_penalty", 0.0},
                   {"frequency_penalty", 0.0},
                   {"repetition_penalty", 1.0},
                   {"min_p", 0.0}};
    const json_t *format = json_object_get(root, "response_format");
    const char *type = json_string_value(json_object_get(format, "type"));
    double number;
    uint64_t one;

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!asks_for_nothing(json_object_get(root, refused[i])))
            return request_fail(err, 400, "unsupported", refused[i], "'%s' is not supported",
                                refused[i]);
    if (!asks_for_nothing(format) && !(type && strcmp(type, "text") == 0))
        return request_fail(err, 400, "unsupported", "response_format",
                            "'response_format' other than text is not supported");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (request_real(root, numbers[i].key, numbers[i].only, numbers[i].only, &number, err) < 0)
            return -1;
    return request_count(root, "n", 1, 1, &one, err) < 0 ? -1 : 0;
}

int request_read_chat(serve_request *r, const request_limits *limits, request_error *err)
{
    chat_options *c = &r->chat;
    const json_t *stream = json_object_get(r->root, "stream_options");
    uint64_t max_tokens = 0, seed = 42;

    c->temperature = 0.0;
    c->top_p = 1.0;
    if (request_count(r->root, "max_tokens", 1, limits->tokens, &max_tokens, err) < 0) return -1;
    if (request_count(r->root, "max_completion_tokens", 1, limits->tokens, &max_tokens, err) < 0)
        return -1;
    if (request_real(r->root, "temperature", 0.0, 1e6, &c->temperature, err) < 0) return -1;
    if (request_real(r->root, "top_p", 1e-9, 1.0, &c->top_p, err) < 0) return -1;
    if (request_count(r->root, "seed", 0, INT64_MAX, &seed, err) < 0) return -1;
    if (request_flag(r->root, "stream", &c->is_streamed, err) < 0) return -1;
    if (stream && !json_is_null(stream) && !json_is_object(stream))
        return request_fail(err, 400, "invalid_type", "stream_options",
                            "'stream_options' must be an object");
    if (request_flag(stream, "include_usage", &c->with_usage, err) < 0) return -1;
    c->max_tokens = (uint32_t)max_tokens;
    c->seed = seed;
    if (read_stops(c, r->root, err) || refuse_others(r->root, err)) return -1;
    return read_messages(r, limits, err);
}
