/* llava_prompt.c - conversations as LLaVA-1.5 was trained with them: the template vicuna_v1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/llava/lm_tokenizer.h"
#include "renyi/llava.h"

#include <string.h>

#define SYSTEM                                                                 \
    "A chat between a curious user and an artificial intelligence assistant. " \
    "The assistant gives helpful, detailed, and polite answers to the user's questions."

/* Text between special ids, put together before it is encoded: pieces reach over the seams. */
typedef struct text {
    const renyi_lm_tokenizer *t;
    ry_id_sink out;
    char *at; /* [room] */
    size_t n, room;
} text;

static void say(text *x, const char *words)
{
    const size_t n = strlen(words);
    memcpy(x->at + x->n, words, n);
    x->n += n;
}

/* What was said so far as ids; is_inner: behind eos. */
static renyi_status end_section(text *x, int is_inner, renyi_error *err)
{
    const size_t n = x->n;
    x->n = 0;
    return ry_spm_encode(x->t->spm, x->at, n, RENYI_LM_PLAIN, is_inner, &x->out, err);
}

/* Room for any section: all that is said in the conversation. */
static renyi_status make_room(text *x, const renyi_lvlm_turn *turns, uint32_t n_turns,
                              const char *system, renyi_error *err)
{
    int fits = ry_add_size(strlen(system), 64, &x->room);
    for (uint32_t i = 0; i < n_turns; i++) {
        fits = fits && ry_add_size(x->room, strlen(turns[i].question) + 32, &x->room);
        if (turns[i].answer) fits = fits && ry_add_size(x->room, strlen(turns[i].answer), &x->room);
    }
    x->at = fits ? ry_alloc(&x->t->al, x->room, 1) : NULL;
    return x->at ? RENYI_OK : ry_fail_nomem(err, x->room);
}

/* " USER: <image>\n" in front of the first question. The picture cuts the text in two, and what is
 * behind it begins as a text of its own does. */
static renyi_status open_conversation(text *x, const char *system, int has_image, renyi_error *err)
{
    say(x, system);
    if (*system) say(x, " ");
    say(x, "USER: ");
    if (!has_image) return RENYI_OK;
    RY_TRY(end_section(x, 0, err));
    ry_id_put(&x->out, (uint32_t)RENYI_LVLM_IMAGE);
    say(x, "\n");
    return RENYI_OK;
}

static renyi_status say_turns(text *x, const renyi_lvlm_turn *turns, uint32_t n_turns,
                              renyi_error *err)
{
    for (uint32_t i = 0; i < n_turns; i++) {
        if (i) say(x, "USER: ");
        say(x, turns[i].question);
        say(x, " ASSISTANT:");
        if (turns[i].answer) {
            say(x, " ");
            say(x, turns[i].answer);
        }
        RY_TRY(end_section(x, i > 0, err));
        if (turns[i].answer) ry_id_put(&x->out, (uint32_t)x->t->spm->eos);
    }
    return RENYI_OK;
}

static renyi_status check(const renyi_lm_tokenizer *t, const renyi_lvlm_turn *turns,
                          uint32_t n_turns, renyi_error *err)
{
    for (uint32_t i = 0; i < n_turns; i++)
        if (!turns[i].question || (!turns[i].answer && i + 1 < n_turns))
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "turn %u of %u: every turn has a question, and all but the last an "
                           "answer",
                           i, n_turns);
    if (t->spm->bos < 0 || t->spm->eos < 0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "%s: no pieces for begin and end of a text, which vicuna_v1 needs",
                       t->source);
    return RENYI_OK;
}

renyi_status renyi_lvlm_prompt(const renyi_lm_tokenizer *t, const renyi_lvlm_turn *turns,
                               uint32_t n_turns, const renyi_lvlm_prompt_options *opt, int32_t *ids,
                               size_t max, size_t *n, renyi_error *err)
{
    renyi_lvlm_prompt_options o = {0};
    if (!t || !turns || !n_turns || (!ids && max))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_lvlm_prompt: an argument is NULL, or there are no turns");
    if (opt) RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_lvlm_prompt_options", err));
    RY_TRY(check(t, turns, n_turns, err));
    const char *system = o.system ? o.system : SYSTEM;
    text x = {.t = t, .out = {ids, max, 0}};
    renyi_status st = make_room(&x, turns, n_turns, system, err);
    if (st) return st;
    ry_id_put(&x.out, (uint32_t)t->spm->bos);
    st = open_conversation(&x, system, !o.without_image, err);
    if (!st) st = say_turns(&x, turns, n_turns, err);
    ry_free(&t->al, x.at);
    return st ? st : ry_lm_ids_end(&x.out, n, err);
}

renyi_status renyi_lvlm_prompt_next(const renyi_lm_tokenizer *t, const char *question, int32_t *ids,
                                    size_t max, size_t *n, renyi_error *err)
{
    const renyi_lvlm_turn turn = {question, NULL};
    if (!t || !question || (!ids && max))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lvlm_prompt_next: an argument is NULL");
    RY_TRY(check(t, &turn, 1, err));
    text x = {.t = t, .out = {ids, max, 0}};
    RY_TRY(make_room(&x, &turn, 1, "", err));
    ry_id_put(&x.out, (uint32_t)t->spm->eos);
    say(&x, "USER: ");
    say(&x, question);
    say(&x, " ASSISTANT:");
    const renyi_status st = end_section(&x, 1, err);
    ry_free(&t->al, x.at);
    return st ? st : ry_lm_ids_end(&x.out, n, err);
}
