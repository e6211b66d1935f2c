/* conversation_ask.c - questions to answers: prompt, reading, one token after the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/llava/conversation.h"
#include "engine/llava/next_token.h"

#include <string.h>

enum { DEFAULT_NEW_TOKENS = 512 };

static renyi_status read_options(renyi_answer_options *o, const renyi_answer_options *given,
                                 renyi_error *err)
{
    RY_TRY(ry_struct_read(o, sizeof *o, given, "renyi_answer_options", err));
    if (!o->max_new_tokens) o->max_new_tokens = DEFAULT_NEW_TOKENS;
    if (o->top_p == 0.0) o->top_p = 1.0;
    if (!(o->temperature >= 0.0 && o->temperature <= 1e6))
        return ry_fail(err, RENYI_ERR_ARG, -1, "temperature %g; 0 (greedy) to 1e6 wanted",
                       o->temperature);
    if (!(o->top_p > 0.0 && o->top_p <= 1.0))
        return ry_fail(err, RENYI_ERR_ARG, -1, "top_p %g; above 0 and at most 1 wanted", o->top_p);
    return RENYI_OK;
}

/* ---- text ---------------------------------------------------------------------------------- */

static renyi_status make_text_room(renyi_conversation *c, size_t more, renyi_error *err)
{
    const size_t needed = c->text_size + more + 1;
    if (needed <= c->text_room) return RENYI_OK;
    char *larger = ry_alloc(&c->m->al, 2, needed);
    if (!larger) return ry_fail_nomem(err, 2 * needed);
    memcpy(larger, c->text, c->text_size + 1);
    ry_free(&c->m->al, c->text);
    c->text = larger;
    c->text_room = 2 * needed;
    return RENYI_OK;
}

/* *stops: the listener has heard enough. */
static renyi_status put_text(renyi_conversation *c, const renyi_answer_options *o,
                             const char *piece, size_t size, int *stops, renyi_error *err)
{
    if (!size) return RENYI_OK;
    RY_TRY(make_text_room(c, size, err));
    memcpy(c->text + c->text_size, piece, size + 1);
    c->text_size += size;
    if (o->on_text && o->on_text(o->user, piece, size)) *stops = 1;
    return RENYI_OK;
}

/* Tokens that only pad the model's vocabulary have no text. */
static renyi_status put_token(renyi_conversation *c, const renyi_answer_options *o,
                              renyi_lm_stream *stream, int32_t id, int *stops, renyi_error *err)
{
    char piece[RENYI_LM_STREAM_ROOM];
    size_t size = 0;
    c->ids[c->n_ids++] = id;
    if (!c->m->tokenizer || (uint32_t)id >= c->m->words.n_ids) return RENYI_OK;
    RY_TRY(renyi_lm_stream_put(c->m->tokenizer, stream, id, piece, &size, err));
    return put_text(c, o, piece, size, stops, err);
}

/* ---- tokens -------------------------------------------------------------------------------- */

static renyi_status choose(renyi_conversation *c, const renyi_answer_options *o, int32_t *id,
                           renyi_error *err)
{
    const ry_choice how = {o->temperature, o->top_p, o->seed, c->n_drawn++};
    return ry_next_token(id, c->logits, c->m->lm_info.vocab, &how, c->order, err);
}

/* One more row, of the answer itself. */
static renyi_status read_token(renyi_conversation *c, int32_t id, renyi_error *err)
{
    const renyi_lm_input row = {NULL, id};
    const ry_reading reading = {&row, 1, renyi_lm_position(c->memory), c->sees_photo};
    return ry_conversation_read(c, &reading, err);
}

/* From the first token on. *n_after: tokens chosen after it. */
static renyi_status write_answer(renyi_conversation *c, const renyi_answer_options *o, int32_t id,
                                 renyi_answer_end *end, uint32_t *n_after, renyi_error *err)
{
    renyi_lm_stream stream = {0};
    char rest[RENYI_LM_STREAM_ROOM];
    size_t size = 0;
    int stops = 0;
    for (;;) {
        if (ry_lvlm_is_end(c->m, id) && !o->ignore_eos) {
            *end = RENYI_ANSWER_EOS;
            break;
        }
        RY_TRY(put_token(c, o, &stream, id, &stops, err));
        c->unread = id;
        const int is_full = renyi_lm_position(c->memory) == c->context;
        if (stops || c->n_ids == o->max_new_tokens || is_full) {
            *end = stops     ? RENYI_ANSWER_STOPPED
                   : is_full ? RENYI_ANSWER_CONTEXT
                             : RENYI_ANSWER_LENGTH;
            break;
        }
        RY_TRY(read_token(c, id, err));
        RY_TRY(choose(c, o, &id, err));
        ++*n_after;
    }
    renyi_lm_stream_end(&stream, rest, &size);
    return put_text(c, o, rest, size, &stops, err);
}

/* ---- answers ------------------------------------------------------------------------------- */

static void fill_answer(renyi_conversation *c, renyi_answer *a)
{
    a->text = c->text;
    a->ids = c->ids;
    a->n_ids = c->n_ids;
    a->n_visual = c->sees_photo ? c->photo.n : 0;
    a->kept = c->sees_photo ? c->photo.kept : NULL;
    a->bytes = ry_lvlm_bytes(c->m) + renyi_conversation_bytes(c);
}

static renyi_status answer(renyi_conversation *c, const ry_reading *reading,
                           const renyi_answer_options *o, renyi_answer *a, renyi_error *err)
{
    int32_t first;
    uint32_t n_after = 0;
    const double begin = ry_clock();
    RY_TRY(ry_conversation_read(c, reading, err));
    const double read_at = ry_clock();
    if (o->logits) memcpy(o->logits, c->logits, c->m->lm_info.vocab * sizeof *o->logits);
    RY_TRY(choose(c, o, &first, err));
    const double first_at = ry_clock();
    RY_TRY(write_answer(c, o, first, &a->end, &n_after, err));
    const double seconds = ry_clock() - first_at;
    a->n_reused = reading->from;
    a->n_prompt = reading->from + reading->n;
    a->vision_ms = c->vision_ms;
    a->prefill_ms = 1e3 * (read_at - begin);
    a->first_token_ms = c->vision_ms + 1e3 * (first_at - begin);
    a->tokens_per_second = n_after && seconds > 0.0 ? n_after / seconds : 0.0;
    c->vision_ms = 0.0;
    return RENYI_OK;
}

/* A conversation that broke off begins anew; what was read of it can be used again. */
static renyi_status converse(renyi_conversation *c, const ry_reading *reading,
                             const renyi_answer_options *o, renyi_answer *out, renyi_error *err)
{
    *out = (renyi_answer){0};
    c->n_ids = 0;
    c->text_size = 0;
    c->text[0] = 0;
    const renyi_status st = answer(c, reading, o, out, err);
    if (st) {
        renyi_conversation_restart(c);
        return st;
    }
    c->is_begun = 1;
    fill_answer(c, out);
    return RENYI_OK;
}

static renyi_status make_prompt(renyi_conversation *c, const char *question, ry_reading *reading,
                                renyi_error *err)
{
    const renyi_lvlm_turn turn = {question, NULL};
    const renyi_lvlm_prompt_options how = {
        .struct_size = sizeof how, .without_image = !c->photo.n, .system = c->system};
    const renyi_lm_tokenizer *t = c->m->tokenizer;
    size_t n = 0;
    const renyi_status st =
        c->is_begun ? renyi_lvlm_prompt_next(t, question, c->prompt, c->context, &n, err)
                    : renyi_lvlm_prompt(t, &turn, 1, &how, c->prompt, c->context, &n, err);
    if (st && n <= c->context) return st;
    return c->is_begun ? ry_conversation_plan_more(c, n, reading, err)
                       : ry_conversation_plan(c, NULL, n, reading, err);
}

renyi_status renyi_conversation_ask(renyi_conversation *c, const char *question,
                                    const renyi_answer_options *opt, renyi_answer *out,
                                    renyi_error *err)
{
    renyi_answer_options o;
    ry_reading reading;
    if (!c || !question || !out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_conversation_ask: NULL argument");
    RY_TRY(read_options(&o, opt, err));
    if (!c->m->tokenizer)
        return ry_fail(err, RENYI_ERR_ARG, -1, "a question in words needs a tokenizer: %s",
                       c->m->no_words);
    RY_TRY(make_prompt(c, question, &reading, err));
    return converse(c, &reading, &o, out, err);
}

renyi_status renyi_conversation_ask_ids(renyi_conversation *c, const int32_t *ids, size_t n,
                                        const renyi_answer_options *opt, renyi_answer *out,
                                        renyi_error *err)
{
    renyi_answer_options o;
    ry_reading reading;
    if (!c || !ids || !out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_conversation_ask_ids: NULL argument");
    RY_TRY(read_options(&o, opt, err));
    RY_TRY(ry_conversation_plan(c, ids, n, &reading, err));
    renyi_conversation_restart(c);
    return converse(c, &reading, &o, out, err);
}
