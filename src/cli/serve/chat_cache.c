/* chat_cache.c - the conversations that a language model keeps, and the prompt of a request.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/chat_cache.h"

#include <stdlib.h>
#include <string.h>

struct chat_cache {
    served_chat *chats; /* [max] */
    size_t n, max;
    uint64_t clock;
};

static void clear_chat(served_chat *chat)
{
    renyi_conversation_free(chat->conversation);
    free(chat->transcript);
    *chat = (served_chat){0};
}

void chat_cache_free(chat_cache *c)
{
    for (size_t i = 0; c && i < c->n; i++) clear_chat(&c->chats[i]);
    if (c) free(c->chats);
    free(c);
}

static chat_cache *open_cache(serve_model *m)
{
    if (m->chats) return m->chats;
    chat_cache *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->max = m->server->config->max_chats;
    c->chats = calloc(c->max, sizeof *c->chats);
    if (c->chats) return m->chats = c;
    free(c);
    return NULL;
}

/* ---- finding -----------------------------------------------------------------------------------
 */

static size_t shared_beginning(const char *a, const char *b)
{
    size_t n = 0;

    while (a && a[n] && a[n] == b[n]) n++;
    return n;
}

/* May a request whose chat shares `n` bytes with this one take its place? With an image always:
 * that is most of the work. Else if less than half of its rows would be lost. */
static int is_taken_over(const served_chat *chat, size_t n)
{
    return chat->digest[0] || !chat->transcript || 2 * n >= strlen(chat->transcript);
}

/* The chat of which most can be used again; NULL = none. */
static served_chat *find_chat(const chat_cache *c, const serve_job *job, const char *transcript)
{
    served_chat *best = NULL;
    size_t most = 0;

    for (size_t i = 0; i < c->n; i++) {
        served_chat *chat = &c->chats[i];
        if (!chat->conversation || strcmp(chat->policy, job->policy) != 0 ||
            strcmp(chat->digest, job->digest) != 0)
            continue;
        const size_t n = shared_beginning(chat->transcript, transcript);
        if (!is_taken_over(chat, n) || (best && n <= most)) continue;
        best = chat;
        most = n;
    }
    return best;
}

static served_chat *place_for_new(chat_cache *c)
{
    served_chat *oldest = &c->chats[0];

    if (c->n < c->max) return &c->chats[c->n++];
    for (size_t i = 1; i < c->n; i++)
        if (c->chats[i].used < oldest->used) oldest = &c->chats[i];
    return oldest;
}

/* A new conversation with the job's policy and image. 0, or -1 with the job's error, unless it was
 * stopped: the caller knows why. */
static int make_chat(serve_model *m, serve_job *job, renyi_progress progress, served_chat *out)
{
    renyi_conversation_options o = served_model_chat(m, job->policy);
    renyi_error err = {0};

    o.progress = progress;
    o.progress_user = m;
    renyi_status st = renyi_conversation_new(&out->conversation, m->lvlm, &o, &err);
    if (st == RENYI_ERR_ARG) /* the rest of the options was good for the server's own policy */
        job_fail(job, 400, "invalid_policy", "prune", "prune: %s", cli_reason(&err));
    if (!st && job->digest[0]) st = renyi_conversation_show(out->conversation, &job->image, &err);
    if (st && st != RENYI_ERR_ABORTED) job_fail_library(job, &err);
    if (st) return -1;
    memcpy(out->policy, job->policy, sizeof out->policy);
    memcpy(out->digest, job->digest, sizeof out->digest);
    return 0;
}

served_chat *chat_cache_get(serve_model *m, serve_job *job, const char *transcript,
                            renyi_progress progress)
{
    chat_cache *c = open_cache(m);
    served_chat *chat = c ? find_chat(c, job, transcript) : NULL;

    if (c && !chat) {
        chat = place_for_new(c);
        clear_chat(chat);
        if (make_chat(m, job, progress, chat)) {
            clear_chat(chat);
            return NULL;
        }
    }
    if (!c)
        job_fail(job, 503, "no_memory", NULL, "out of memory");
    else
        chat->used = ++c->clock;
    return chat;
}

/* ---- texts -------------------------------------------------------------------------------------
 */

/* "role length:text" for each message. */
char *chat_transcript(const chat_options *chat, const char *answer)
{
    size_t size = answer ? strlen(answer) + 40 : 1, at = 0;

    for (size_t i = 0; i < chat->n_messages; i++) size += strlen(chat->messages[i].text) + 40;
    char *out = malloc(size);
    if (!out) return NULL;
    out[0] = 0;
    for (size_t i = 0; i < chat->n_messages; i++)
        at += (size_t)snprintf(out + at, size - at, "%d %zu:%s", (int)chat->messages[i].role,
                               strlen(chat->messages[i].text), chat->messages[i].text);
    if (answer)
        snprintf(out + at, size - at, "%d %zu:%s", (int)CHAT_ASSISTANT, strlen(answer), answer);
    return out;
}

const char *chat_image_text(const serve_job *job)
{
    const chat_options *chat = &job->request.chat;
    return job->digest[0] ? chat->messages[chat->image_message].text : NULL;
}

static renyi_status llama_prompt(const renyi_lm_tokenizer *t, const chat_options *chat,
                                 int32_t *ids, size_t max, size_t *n, renyi_error *err)
{
    size_t size = 1, at = 0;

    for (size_t i = 0; i < chat->n_messages; i++) size += strlen(chat->messages[i].text);
    char *text = malloc(size);
    if (!text) return err->code = RENYI_ERR_NOMEM;
    for (size_t i = 0; i < chat->n_messages; i++) {
        const size_t length = strlen(chat->messages[i].text);
        memcpy(text + at, chat->messages[i].text, length);
        at += length;
    }
    renyi_lm_tokenizer_info info;
    renyi_lm_tokenizer_get_info(t, &info);
    const uint32_t flags = RENYI_LM_PLAIN | (info.bos >= 0 ? RENYI_LM_BOS : 0);
    const renyi_status st = renyi_lm_tokenizer_encode(t, text, at, flags, ids, max, n, err);
    free(text);
    return st;
}

/* Messages of the user and of the assistant take turns. */
static uint32_t turn_of_image(const serve_job *job)
{
    const chat_options *chat = &job->request.chat;
    const size_t first = chat->messages[0].role == CHAT_SYSTEM;

    return job->digest[0] ? (uint32_t)((chat->image_message - first) / 2) : 0;
}

renyi_status chat_prompt(const serve_model *m, const serve_job *job, int32_t *ids, size_t max,
                         size_t *n, renyi_error *err)
{
    const renyi_lm_tokenizer *t = renyi_lvlm_tokenizer(m->lvlm);
    const chat_options *chat = &job->request.chat;
    const size_t first = chat->messages[0].role == CHAT_SYSTEM;
    const renyi_lvlm_prompt_options o = {.struct_size = sizeof o,
                                         .without_image = !job->digest[0],
                                         .image_turn = turn_of_image(job),
                                         .system = first ? chat->messages[0].text : NULL};

    if (!renyi_lvlm_visual(m->lvlm)) return llama_prompt(t, chat, ids, max, n, err);
    const size_t n_turns = (chat->n_messages - first + 1) / 2;
    renyi_lvlm_turn *turns = calloc(n_turns, sizeof *turns);
    if (!turns) return err->code = RENYI_ERR_NOMEM;
    for (size_t i = first; i < chat->n_messages; i++) {
        renyi_lvlm_turn *turn = &turns[(i - first) / 2];
        if (chat->messages[i].role == CHAT_USER)
            turn->question = chat->messages[i].text;
        else
            turn->answer = chat->messages[i].text;
    }
    const renyi_status st = renyi_lvlm_prompt(t, turns, (uint32_t)n_turns, &o, ids, max, n, err);
    free(turns);
    return st;
}
