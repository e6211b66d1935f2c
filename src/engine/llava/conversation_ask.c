/* conversation_ask.c - from a question to an answer: finds the rows of the prompt that the language
 * model has not read yet, reads them, and then chooses one token after the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/llava/conversation.h"
#include "engine/llava/next_token.h"

#include <string.h>

enum { DEFAULT_NEW_TOKENS = 512 };

/* What to read before the answer: n inputs after the first `from` rows, which stay. */
typedef struct reading_plan {
    const renyi_lm_input *inputs;
    uint32_t n, from;
    int has_image;
} reading_plan;

/* ---- which rows to read -------------------------------------------------------------------- */

static renyi_status too_long(const renyi_conversation *c, uint64_t rows, uint32_t before,
                             uint32_t n_visual, renyi_error *err)
{
    return ry_fail(
        err, RENYI_ERR_LIMIT, -1,
        "the prompt has %llu rows (%u of earlier turns, %u of the image), and the context "
        "holds %u: ask a shorter question, keep fewer visual tokens, or start a new "
        "conversation",
        (unsigned long long)rows, before, n_visual, c->context);
}

static renyi_status check_ids(const renyi_conversation *c, const int32_t *ids, size_t n,
                              uint32_t *n_images, renyi_error *err)
{
    *n_images = 0;
    if (!n) return ry_fail(err, RENYI_ERR_ARG, -1, "the prompt has no ids");
    for (size_t i = 0; i < n; i++) {
        if (ry_lvlm_is_image(c->m, ids[i])) {
            ++*n_images;
        } else if (ids[i] < 0 || (uint32_t)ids[i] >= c->m->lm_info.vocab) {
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "id %d, number %zu of the prompt; the language model has 0 to %u%s",
                           (int)ids[i], i + 1, c->m->lm_info.vocab - 1,
                           c->m->lm_info.image < 0 ? ", and -200 for the image" : "");
        }
    }
    if (*n_images > 1)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "the prompt has %u places for an image; it needs one, however many rows the "
                       "image has",
                       *n_images);
    if (*n_images && !c->image.n)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "the prompt has a place for an image, but none was shown");
    return RENYI_OK;
}

/* Rows of the prompt that the language model has already read. The last row is always read again:
 * the logits come from it. If a prompt has chosen among the rows of the image, only the same prompt
 * can use them, and only if it does not end with one of them; another one can use what precedes
 * them. */
static uint32_t count_known(const renyi_conversation *c, uint32_t n)
{
    const uint32_t held = renyi_lm_position(c->lm);
    uint32_t k = 0, image = 0;
    while (k < held && k < n && c->seen[k] == c->inputs[k].token) k++;
    const int is_same = n == c->n_choosing && k == n && !c->inputs[n - 1].embedding;
    if (c->n_choosing && !is_same) {
        while (image < k && c->seen[image] != RENYI_LVLM_IMAGE) image++;
        k = image;
    }
    return k < n ? k : n - 1;
}

/* Plans a whole prompt of n ids (NULL = c->prompt) with the place of the image among them; rows
 * that were read already are left out. More rows than the context holds are RENYI_ERR_LIMIT; only
 * the first c->context ids are checked. Changes nothing but c->inputs. */
static renyi_status plan_prompt(renyi_conversation *c, const int32_t *ids, size_t n,
                                reading_plan *out, renyi_error *err)
{
    uint32_t n_images, at = 0;
    if (!ids) ids = c->prompt;
    RY_TRY(check_ids(c, ids, n < c->context ? n : c->context, &n_images, err));
    const uint64_t rows = (uint64_t)n - n_images + (uint64_t)n_images * c->image.n;
    if (rows > c->context) return too_long(c, rows, 0, n_images * c->image.n, err);
    for (size_t i = 0; i < n; i++) {
        if (!ry_lvlm_is_image(c->m, ids[i])) {
            c->inputs[at++] = (renyi_lm_input){NULL, ids[i]};
            continue;
        }
        for (uint32_t r = 0; r < c->image.n; r++)
            c->inputs[at++] =
                (renyi_lm_input){c->image.rows + (size_t)r * c->image.lm_dim, RENYI_LVLM_IMAGE};
    }
    const uint32_t known = count_known(c, at);
    *out = (reading_plan){c->inputs + known, at - known, known, n_images > 0};
    return RENYI_OK;
}

/* Plans c->prompt [n] after the rows so far, and before it the last token of the last answer if
 * that was not read yet. */
static renyi_status plan_next_turn(renyi_conversation *c, size_t n, reading_plan *out,
                                   renyi_error *err)
{
    const uint32_t held = renyi_lm_position(c->lm), has_unread = c->unread >= 0;
    const uint64_t rows = (uint64_t)held + has_unread + n;
    uint32_t at = 0;
    if (rows > c->context)
        return too_long(c, rows, held + has_unread, c->has_image ? c->image.n : 0, err);
    if (has_unread) c->inputs[at++] = (renyi_lm_input){NULL, c->unread};
    for (size_t i = 0; i < n; i++) c->inputs[at++] = (renyi_lm_input){NULL, c->prompt[i]};
    *out = (reading_plan){c->inputs, at, held, c->has_image};
    return RENYI_OK;
}

static int has_visual_rows(const reading_plan *plan)
{
    for (uint32_t i = 0; i < plan->n; i++)
        if (plan->inputs[i].embedding) return 1;
    return 0;
}

/* Are visual rows among the first n that were read? */
static int image_is_read(const renyi_conversation *c, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (c->seen[i] == RENYI_LVLM_IMAGE) return 1;
    return 0;
}

/* Forgets the rows from plan->from on and reads the planned ones; logits of what follows go to
 * c->logits. On failure the conversation is restarted. */
static renyi_status read_rows(renyi_conversation *c, const reading_plan *plan, renyi_error *err)
{
    const uint32_t from = plan->from;
    renyi_status st = renyi_lm_rewind(c->lm, from, err);
    if (from < c->n_choosing && !image_is_read(c, from)) c->n_choosing = 0;
    if (!st) st = renyi_lm_feed(c->lm, plan->inputs, plan->n, c->logits, err);
    if (!st && c->prunes_lm && has_visual_rows(plan)) c->n_choosing = from + plan->n;
    /* Rows that were read before a feed was stopped can be used again. */
    const uint32_t n_read = renyi_lm_position(c->lm) - from;
    for (uint32_t i = 0; i < n_read; i++) c->seen[from + i] = plan->inputs[i].token;
    c->has_image = plan->has_image;
    c->unread = -1;
    if (st) renyi_conversation_restart(c);
    return st;
}

/* ---- text of the answer -------------------------------------------------------------------- */

static renyi_status grow_text(renyi_conversation *c, size_t more, renyi_error *err)
{
    void *text = c->text;
    const size_t used = c->text_size + 1;
    const int ok = ry_reserve(&c->m->al, &text, &c->text_capacity, used, more, 1);
    c->text = text;
    return ok ? RENYI_OK : ry_fail_nomem(err, used + more);
}

/* *stops becomes 1 if the callback asks to stop. */
static renyi_status append_text(renyi_conversation *c, const renyi_answer_options *o,
                                const char *piece, size_t size, int *stops, renyi_error *err)
{
    if (!size) return RENYI_OK;
    RY_TRY(grow_text(c, size, err));
    memcpy(c->text + c->text_size, piece, size + 1);
    c->text_size += size;
    if (o->on_text && o->on_text(o->user, piece, size)) *stops = 1;
    return RENYI_OK;
}

/* Ids that only pad the model's vocabulary have no text. */
static renyi_status append_token(renyi_conversation *c, const renyi_answer_options *o,
                                 renyi_lm_stream *stream, int32_t id, int *stops, renyi_error *err)
{
    char piece[RENYI_LM_STREAM_ROOM];
    size_t size = 0;
    c->ids[c->n_ids++] = id;
    if (!c->m->tokenizer || (uint32_t)id >= c->m->ids.n_ids) return RENYI_OK;
    RY_TRY(renyi_lm_stream_put(c->m->tokenizer, stream, id, piece, &size, err));
    return append_text(c, o, piece, size, stops, err);
}

/* ---- tokens of the answer ------------------------------------------------------------------ */

static renyi_status choose_token(renyi_conversation *c, const renyi_answer_options *o, int32_t *id,
                                 renyi_error *err)
{
    const ry_choice how = {o->temperature, o->top_p, o->seed, c->n_drawn++};
    return ry_next_token(id, c->logits, c->m->lm_info.vocab, &how, c->order, err);
}

/* Reads one token of the answer. */
static renyi_status read_token(renyi_conversation *c, int32_t id, renyi_error *err)
{
    const renyi_lm_input row = {NULL, id};
    const reading_plan plan = {&row, 1, renyi_lm_position(c->lm), c->has_image};
    return read_rows(c, &plan, err);
}

/* id: the first token. *n_after: tokens chosen after it. */
static renyi_status write_answer(renyi_conversation *c, const renyi_answer_options *o, int32_t id,
                                 renyi_answer_end *end, uint32_t *n_after, renyi_error *err)
{
    renyi_lm_stream stream = {.has_begun =
                                  !c->m->visual}; /* a continuation keeps its first blank */
    char rest[RENYI_LM_STREAM_ROOM];
    size_t size = 0;
    int stops = 0;
    for (;;) {
        if (ry_lvlm_is_end(c->m, id) && !o->ignore_eos) {
            *end = RENYI_ANSWER_EOS;
            break;
        }
        RY_TRY(append_token(c, o, &stream, id, &stops, err));
        c->unread = id;
        const int is_full = renyi_lm_position(c->lm) == c->context;
        if (stops || c->n_ids == o->max_new_tokens || is_full) {
            *end = stops     ? RENYI_ANSWER_STOPPED
                   : is_full ? RENYI_ANSWER_CONTEXT
                             : RENYI_ANSWER_LENGTH;
            break;
        }
        RY_TRY(read_token(c, id, err));
        RY_TRY(choose_token(c, o, &id, err));
        ++*n_after;
    }
    renyi_lm_stream_end(&stream, rest, &size);
    return append_text(c, o, rest, size, &stops, err);
}

/* ---- answers ------------------------------------------------------------------------------- */

static renyi_status read_options(renyi_answer_options *o, const renyi_answer_options *given,
                                 renyi_error *err)
{
    RY_TRY(ry_struct_read(o, sizeof *o, given, "renyi_answer_options", err));
    if (!o->max_new_tokens) o->max_new_tokens = DEFAULT_NEW_TOKENS;
    if (o->top_p == 0.0) o->top_p = 1.0;
    if (!(o->temperature >= 0.0 && o->temperature <= 1e6))
        return ry_fail(err, RENYI_ERR_ARG, -1, "temperature %g; 0 (greedy) to 1e6 is allowed",
                       o->temperature);
    if (!(o->top_p > 0.0 && o->top_p <= 1.0))
        return ry_fail(err, RENYI_ERR_ARG, -1, "top_p %g; above 0 and at most 1 is allowed",
                       o->top_p);
    return RENYI_OK;
}

static void fill_answer(renyi_conversation *c, renyi_answer *a)
{
    c->n_cuts = 0;
    while (c->n_cuts < RY_MAX_CUTS &&
           renyi_lm_session_get_cut(c->lm, c->n_cuts, &c->cuts[c->n_cuts]))
        c->n_cuts++;
    a->cuts = c->cuts;
    a->n_cuts = c->n_cuts;
    a->text = c->text;
    a->ids = c->ids;
    a->n_ids = c->n_ids;
    a->n_visual = c->has_image ? c->image.n : 0;
    a->n_visual_full = c->has_image ? c->image.n_full : 0;
    a->kept = c->has_image ? c->image.kept : NULL;
    a->bytes = ry_lvlm_bytes(c->m) + renyi_conversation_bytes(c);
}

static renyi_status write_timed_answer(renyi_conversation *c, const reading_plan *plan,
                                       const renyi_answer_options *o, renyi_answer *a,
                                       renyi_error *err)
{
    int32_t first;
    uint32_t n_after = 0;
    const double begin = ry_clock();
    RY_TRY(read_rows(c, plan, err));
    const double read_at = ry_clock();
    ry_conversation_count_cost(c);
    if (o->logits) memcpy(o->logits, c->logits, c->m->lm_info.vocab * sizeof *o->logits);
    RY_TRY(choose_token(c, o, &first, err));
    const double first_at = ry_clock();
    RY_TRY(write_answer(c, o, first, &a->end, &n_after, err));
    const double seconds = ry_clock() - first_at;
    a->n_reused = plan->from;
    a->n_prompt = plan->from + plan->n;
    a->vision_ms = c->vision_ms;
    a->prefill_ms = 1e3 * (read_at - begin);
    a->first_token_ms = c->vision_ms + 1e3 * (first_at - begin);
    a->tokens_per_second = n_after && seconds > 0.0 ? n_after / seconds : 0.0;
    c->vision_ms = 0.0;
    return RENYI_OK;
}

/* After a failure the conversation starts again; rows that were read can be used again. */
static renyi_status answer_prompt(renyi_conversation *c, const reading_plan *plan,
                                  const renyi_answer_options *o, renyi_answer *out,
                                  renyi_error *err)
{
    *out = (renyi_answer){0};
    c->n_ids = 0;
    c->text_size = 0;
    c->text[0] = 0;
    const renyi_status st = write_timed_answer(c, plan, o, out, err);
    if (st) {
        renyi_conversation_restart(c);
        return st;
    }
    c->is_begun = 1;
    fill_answer(c, out);
    return RENYI_OK;
}

/* The ids of a question, in LLaVA's template if the model is one, into c->prompt. */
static renyi_status encode_question(renyi_conversation *c, const char *question, size_t *n,
                                    renyi_error *err)
{
    const renyi_lvlm_turn turn = {question, NULL};
    const renyi_lvlm_prompt_options how = {
        .struct_size = sizeof how, .without_image = !c->image.n, .system = c->system};
    const renyi_lm_tokenizer *t = c->m->tokenizer;
    const int begins = !c->is_begun && c->m->ids.bos >= 0;
    if (!c->m->visual)
        return renyi_lm_tokenizer_encode(t, question, strlen(question),
                                         RENYI_LM_PLAIN | (begins ? RENYI_LM_BOS : 0), c->prompt,
                                         c->context, n, err);
    return c->is_begun ? renyi_lvlm_prompt_next(t, question, c->prompt, c->context, n, err)
                       : renyi_lvlm_prompt(t, &turn, 1, &how, c->prompt, c->context, n, err);
}

/* The question, and the rows that are to be read for it. */
static renyi_status make_prompt(renyi_conversation *c, const char *question, reading_plan *plan,
                                renyi_error *err)
{
    size_t n = 0;
    const renyi_status st = encode_question(c, question, &n, err);
    if (st && n <= c->context) return st;
    return c->is_begun ? plan_next_turn(c, n, plan, err) : plan_prompt(c, NULL, n, plan, err);
}

renyi_status renyi_conversation_ask(renyi_conversation *c, const char *question,
                                    const renyi_answer_options *opt, renyi_answer *out,
                                    renyi_error *err)
{
    renyi_answer_options o;
    reading_plan plan;
    if (!c || !question || !out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_conversation_ask: NULL argument");
    RY_TRY(read_options(&o, opt, err));
    if (!c->m->tokenizer)
        return ry_fail(err, RENYI_ERR_ARG, -1, "a question as text needs a tokenizer: %s",
                       c->m->why_no_tokenizer);
    if (!c->is_begun) RY_TRY(ry_conversation_choose(c, question, err));
    RY_TRY(make_prompt(c, question, &plan, err));
    return answer_prompt(c, &plan, &o, out, err);
}

renyi_status renyi_conversation_ask_ids(renyi_conversation *c, const int32_t *ids, size_t n,
                                        const renyi_answer_options *opt, renyi_answer *out,
                                        renyi_error *err)
{
    renyi_answer_options o;
    reading_plan plan;
    if (!c || !ids || !out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_conversation_ask_ids: NULL argument");
    RY_TRY(read_options(&o, opt, err));
    RY_TRY(ry_conversation_choose(c, o.question, err));
    RY_TRY(plan_prompt(c, ids, n, &plan, err));
    renyi_conversation_restart(c);
    return answer_prompt(c, &plan, &o, out, err);
}
