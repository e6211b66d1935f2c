/* run_chat.c - runs one chat on the thread of a language model: prompt, answer, stop texts, events.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/output.h"
#include "cli/serve/chat_cache.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The answer while it is written. */
typedef struct chat_answer {
    serve_job *job;
    char *text;
    size_t size, capacity, sent; /* sent: bytes that are in events */
    int is_stopped;              /* by a stop text */
    int is_lost;                 /* no memory, or the client is gone */
    json_int_t created;
} chat_answer;

/* ---- the client --------------------------------------------------------------------------------
 */

static int is_gone(serve_job *job)
{
    pthread_mutex_lock(&job->lock);
    const int is_open = job->stream.is_open, gone = job->is_gone;
    pthread_mutex_unlock(&job->lock);
    return is_open ? gone : job_client_is_gone(job); /* suspended: the connection is there */
}

/* During the image tower and the prompt. */
static int on_progress(void *user, uint64_t done, uint64_t total)
{
    const serve_model *m = user;

    (void)done;
    (void)total;
    return atomic_load(&m->server->is_aborting) || is_gone(m->current);
}

/* ---- events ------------------------------------------------------------------------------------
 */

/* choices: consumed. */
static json_t *document(const chat_answer *a, const char *object, json_t *choices)
{
    char id[40];

    snprintf(id, sizeof id, "chatcmpl-%llu", (unsigned long long)a->job->id);
    return json_pack("{s:s, s:s, s:I, s:o, s:o}", "id", id, "object", object, "created", a->created,
                     "model", json_text(a->job->model->name), "choices", choices);
}

/* delta: consumed. */
static json_t *chunk(const chat_answer *a, json_t *delta, const char *finish)
{
    return document(
        a, "chat.completion.chunk",
        json_pack("[{s:i, s:o, s:s?}]", "index", 0, "delta", delta, "finish_reason", finish));
}

/* Sends the text up to `end`. */
static void send_text(chat_answer *a, size_t end)
{
    if (!a->job->request.chat.is_streamed || end <= a->sent) return;
    json_t *content = json_stringn(a->text + a->sent, end - a->sent);
    json_t *delta = a->sent ? json_pack("{s:o}", "content", content)
                            : json_pack("{s:s, s:o}", "role", "assistant", "content", content);
    if (stream_event(a->job, chunk(a, delta, NULL))) a->is_lost = 1;
    a->sent = end;
}

/* ---- stop texts --------------------------------------------------------------------------------
 */

/* Looks for a stop text that ends in the last `fresh` bytes; cuts the answer before the first. */
static void find_stop(chat_answer *a, size_t fresh)
{
    const chat_options *chat = &a->job->request.chat;

    for (size_t i = 0; i < chat->n_stops; i++) {
        const size_t n = strlen(chat->stops[i]), back = fresh + n - 1;
        const size_t from = a->size > back ? a->size - back : 0;
        const char *found = strstr(a->text + from, chat->stops[i]);
        if (!found) continue;
        a->is_stopped = 1;
        a->size = (size_t)(found - a->text);
        a->text[a->size] = 0;
        fresh = fresh < a->size ? fresh : a->size;
    }
}

/* Bytes at the end that may be the beginning of a stop text: they are not sent yet. */
static size_t held_back(const chat_answer *a)
{
    const chat_options *chat = &a->job->request.chat;
    size_t most = 0;

    for (size_t i = 0; i < chat->n_stops; i++) {
        size_t n = strlen(chat->stops[i]) - 1;
        if (n > a->size) n = a->size;
        for (; n > most; n--)
            if (memcmp(a->text + a->size - n, chat->stops[i], n) == 0) most = n;
    }
    return most;
}

/* Adds text to the answer; a NUL, which clients could not send back, becomes U+FFFD. */
static int add_text(chat_answer *a, const char *text, size_t size)
{
    static const char replacement[] = "\xef\xbf\xbd";
    const size_t most = a->size + 3 * size + 1;

    if (most > a->capacity) {
        char *grown = realloc(a->text, 2 * most);
        if (!grown) return -1;
        a->text = grown;
        a->capacity = 2 * most;
    }
    for (size_t i = 0; i < size; i++) {
        const size_t n = text[i] ? 1 : 3;
        memcpy(a->text + a->size, text[i] ? text + i : replacement, n);
        a->size += n;
    }
    a->text[a->size] = 0;
    return 0;
}

static int on_text(void *user, const char *text, size_t size)
{
    chat_answer *a = user;
    const size_t before = a->size;

    if (a->is_stopped || a->is_lost) return 1;
    if (add_text(a, text, size)) return a->is_lost = 1;
    find_stop(a, a->size - before);
    send_text(a, a->is_stopped ? a->size : a->size - held_back(a));
    if (atomic_load(&a->job->server->is_aborting) || is_gone(a->job)) a->is_lost = 1;
    return a->is_stopped || a->is_lost;
}

/* ---- the end -----------------------------------------------------------------------------------
 */

static const char *finish_reason(const chat_answer *a, const renyi_answer *r)
{
    return a->is_stopped || r->end == RENYI_ANSWER_EOS ? "stop" : "length";
}

static json_t *usage_json(const renyi_answer *r)
{
    return json_pack("{s:i, s:i, s:i, s:{s:i}}", "prompt_tokens", (int)r->n_prompt,
                     "completion_tokens", (int)r->n_ids, "total_tokens",
                     (int)(r->n_prompt + r->n_ids), "prompt_tokens_details", "cached_tokens",
                     (int)r->n_reused);
}

/* What OpenAI's shape has no place for. */
static json_t *details_json(const serve_job *job, const renyi_answer *r)
{
    return json_pack("{s:s, s:i, s:o, s:o, s:o, s:o}", "policy", job->policy, "visual_tokens",
                     (int)r->n_visual, "vision_ms", json_number(r->vision_ms), "prefill_ms",
                     json_number(r->prefill_ms), "first_token_ms", json_number(r->first_token_ms),
                     "tokens_per_second", json_number(r->tokens_per_second));
}

static void answer_whole(chat_answer *a, const renyi_answer *r)
{
    json_t *message =
        json_pack("{s:s, s:o}", "role", "assistant", "content", json_text(a->text ? a->text : ""));
    json_t *out = document(a, "chat.completion",
                           json_pack("[{s:i, s:o, s:s}]", "index", 0, "message", message,
                                     "finish_reason", finish_reason(a, r)));

    if (out)
        json_object_update_new(
            out, json_pack("{s:o, s:o}", "usage", usage_json(r), "renyi", details_json(a->job, r)));
    job_answer_json(a->job, 200, out);
    job_hand_back(a->job);
}

static void answer_stream(chat_answer *a, const renyi_answer *r)
{
    const serve_job *job = a->job;

    send_text(a, a->size);
    json_t *last = chunk(a, a->sent ? json_object() : json_pack("{s:s}", "role", "assistant"),
                         finish_reason(a, r));
    if (last) json_object_set_new(last, "renyi", details_json(job, r));
    stream_event(a->job, last);
    if (job->request.chat.with_usage) {
        json_t *usage = document(a, "chat.completion.chunk", json_array());
        if (usage) json_object_set_new(usage, "usage", usage_json(r));
        stream_event(a->job, usage);
    }
    stream_end(a->job);
}

/* Before the first event an error is an ordinary answer, later it is an event. */
static void answer_failure(serve_job *job)
{
    pthread_mutex_lock(&job->lock);
    const int is_open = job->stream.is_open;
    pthread_mutex_unlock(&job->lock);
    if (is_open) {
        stream_event(job, json_pack("{s:{s:o, s:s, s:s?}}", "error", "message",
                                    json_text(job->error.message), "type", "server_error", "code",
                                    job->error.code));
        stream_end(job);
        return;
    }
    job_answer_error(job);
    job_hand_back(job);
}

/* ---- the run -----------------------------------------------------------------------------------
 */

static renyi_status ask(serve_model *m, served_chat *chat, chat_answer *a, renyi_answer *out,
                        renyi_error *err)
{
    const serve_job *job = a->job;
    const chat_options *c = &job->request.chat;
    const uint64_t most = job->server->config->limits.tokens;
    const renyi_answer_options o = {.struct_size = sizeof o,
                                    .max_new_tokens =
                                        c->max_tokens ? c->max_tokens : (uint32_t)most,
                                    .temperature = c->temperature,
                                    .top_p = c->top_p,
                                    .seed = c->seed,
                                    .on_text = on_text,
                                    .user = a,
                                    .question = chat_image_text(job)};
    const size_t max = m->lm.context;
    int32_t *ids = malloc(max * sizeof *ids);
    size_t n = 0;

    err->code = RENYI_ERR_NOMEM;
    renyi_status st = ids ? chat_prompt(m, job, ids, max, &n, err) : RENYI_ERR_NOMEM;
    if (!st) st = renyi_conversation_ask_ids(chat->conversation, ids, n, &o, out, err);
    free(ids);
    return st;
}

/* 0 with *r, or -1 with the job's error. */
static int answer(serve_model *m, chat_answer *a, renyi_answer *r)
{
    serve_job *job = a->job;
    char *transcript = chat_transcript(&job->request.chat, NULL);
    renyi_error err = {.code = transcript ? RENYI_ERR_ABORTED : RENYI_ERR_NOMEM};
    served_chat *chat = transcript ? chat_cache_get(m, job, transcript, on_progress) : NULL;
    const renyi_status st = chat ? ask(m, chat, a, r, &err) : err.code;

    free(transcript);
    if (chat) {
        free(chat->transcript);
        chat->transcript = st ? NULL : chat_transcript(&job->request.chat, a->text ? a->text : "");
    }
    if (st || a->is_lost) {
        if (!atomic_load(&m->server->is_aborting) && is_gone(job)) {
            job_fail(job, 499, "client_gone", NULL, "the client closed the connection");
            metrics_add(&m->server->metrics, &m->server->metrics.gone);
        }
        if (!st) err.code = RENYI_ERR_ABORTED;
        job_fail_library(job, &err);
        return -1;
    }
    metrics_answer(&m->server->metrics, r->n_prompt, r->n_reused, r->n_ids);
    return 0;
}

void run_chat(serve_model *m, serve_job *job)
{
    chat_answer a = {.job = job, .created = (json_int_t)time(NULL)};
    renyi_answer r = {0};

    m->current = job;
    if (atomic_load(&m->server->is_aborting) || is_gone(job)) {
        job_fail(job, 499, "client_gone", NULL, "the client closed the connection");
        answer_failure(job);
    } else if (answer(m, &a, &r)) {
        answer_failure(job);
    } else if (job->request.chat.is_streamed) {
        answer_stream(&a, &r);
    } else {
        answer_whole(&a, &r);
    }
    m->current = NULL;
    free(a.text);
    job_unref(job);
}
