/* conversation.c - makes and frees conversations with a LLaVA, and shows them images.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/llava/conversation.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/llava/visual_session.h"

#include <string.h>

/* ---- making and freeing -------------------------------------------------------------------- */

/* Questions come after the image, and only one square of patches is kept to choose from again. */
static renyi_status check_tiles(const renyi_conversation *c, renyi_error *err)
{
    if (!c->vision || !c->vision->tiles || !ry_visual_session_asks(c->vision)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "cdpruner metric=text: a conversation with a LLaVA-NeXT cannot choose by its "
                   "questions; use metric=cls or metric=col");
}

/* Whether the policy acts inside the language model; the sessions check the rest. */
static renyi_status find_place(renyi_conversation *c, const char *policy, renyi_error *err)
{
    ry_policy parsed;
    if (!c->m->visual && policy && strcmp(policy, "none") != 0)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "policy '%.80s': a plain Llama has no visual tokens to prune", policy);
    RY_TRY(ry_policy_parse(&parsed, policy ? policy : "none", err));
    c->prunes_lm = ry_policy_is_lm(&parsed);
    return RENYI_OK;
}

static renyi_status open_sessions(renyi_conversation *c, const renyi_conversation_options *o,
                                  renyi_error *err)
{
    RY_TRY(find_place(c, o->policy, err));
    const renyi_visual_session_options vision = {.struct_size = sizeof vision,
                                                 .n_threads = o->n_threads,
                                                 .policy = c->prunes_lm ? NULL : o->policy,
                                                 .relevance = c->m->relevance,
                                                 .progress = o->progress,
                                                 .progress_user = o->progress_user};
    if (c->m->visual) RY_TRY(renyi_visual_session_new(&c->vision, c->m->visual, &vision, err));
    RY_TRY(check_tiles(c, err));
    const renyi_lm_session_options lm = {.struct_size = sizeof lm,
                                         .max_context = o->max_context,
                                         .max_rows = o->max_rows,
                                         .n_threads = o->n_threads,
                                         .cache_bits = o->cache_bits,
                                         .policy = c->prunes_lm ? o->policy : NULL,
                                         .n_visual = renyi_visual_session_tokens(c->vision),
                                         .progress = o->progress,
                                         .progress_user = o->progress_user};
    RY_TRY(renyi_lm_session_new(&c->lm, c->m->lm, &lm, err));
    c->context = renyi_lm_max_context(c->lm);
    return RENYI_OK;
}

enum { FIRST_TEXT_BYTES = 4096 };

/* Bytes of the buffers that make_buffers takes. */
static size_t buffer_bytes(const renyi_conversation *c)
{
    const size_t a_row = sizeof *c->seen + sizeof *c->prompt + sizeof *c->inputs + sizeof *c->ids;
    return c->context * a_row + c->m->lm_info.vocab * (sizeof *c->logits + sizeof *c->order) +
           c->text_capacity;
}

static renyi_status make_buffers(renyi_conversation *c, renyi_error *err)
{
    const renyi_allocator *al = &c->m->al;
    const size_t n = c->context, vocab = c->m->lm_info.vocab;
    c->seen = ry_alloc(al, n, sizeof *c->seen);
    c->prompt = ry_alloc(al, n, sizeof *c->prompt);
    c->inputs = ry_alloc(al, n, sizeof *c->inputs);
    c->ids = ry_alloc(al, n + 1, sizeof *c->ids);
    c->logits = ry_alloc(al, vocab, sizeof *c->logits);
    c->order = ry_alloc(al, vocab, sizeof *c->order);
    c->text_capacity = FIRST_TEXT_BYTES;
    c->text = ry_alloc(al, c->text_capacity, 1);
    if (c->seen && c->prompt && c->inputs && c->ids && c->logits && c->order && c->text)
        return RENYI_OK;
    return ry_fail_nomem(err, buffer_bytes(c));
}

static renyi_status fill_conversation(renyi_conversation *c, const renyi_conversation_options *o,
                                      renyi_error *err)
{
    c->unread = -1;
    if (o->system) c->system = ry_strdup(&c->m->al, o->system);
    if (o->system && !c->system) return ry_fail_nomem(err, sizeof *c->system);
    RY_TRY(open_sessions(c, o, err));
    return make_buffers(c, err);
}

renyi_status renyi_conversation_new(renyi_conversation **out, const renyi_lvlm *m,
                                    const renyi_conversation_options *opt, renyi_error *err)
{
    renyi_conversation_options o;
    if (!out || !m) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_conversation_new: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_conversation_options", err));
    renyi_conversation *c = ry_calloc(&m->al, 1, sizeof *c);
    if (!c) return ry_fail_nomem(err, sizeof *c);
    c->m = m;
    const renyi_status st = fill_conversation(c, &o, err);
    if (st) {
        renyi_conversation_free(c);
        return st;
    }
    *out = c;
    return RENYI_OK;
}

void renyi_conversation_free(renyi_conversation *c)
{
    if (!c) return;
    const renyi_allocator *al = &c->m->al;
    renyi_lm_session_free(c->lm);
    renyi_visual_session_free(c->vision);
    ry_free(al, c->system);
    ry_free(al, c->chosen_by);
    ry_free(al, c->seen);
    ry_free(al, c->prompt);
    ry_free(al, c->inputs);
    ry_free(al, c->ids);
    ry_free(al, c->logits);
    ry_free(al, c->order);
    ry_free(al, c->text);
    ry_free(al, c);
}

const char *renyi_conversation_policy(const renyi_conversation *c)
{
    if (c->prunes_lm) return renyi_lm_session_policy(c->lm);
    return c->vision ? renyi_visual_session_policy(c->vision) : "none";
}

size_t renyi_conversation_bytes(const renyi_conversation *c)
{
    if (!c) return 0;
    return renyi_visual_session_bytes(c->vision) + renyi_lm_session_bytes(c->lm) + buffer_bytes(c);
}

/* ---- images -------------------------------------------------------------------------------- */

void renyi_conversation_restart(renyi_conversation *c)
{
    c->is_begun = 0;
    c->has_image = 0;
    c->unread = -1;
    c->n_drawn = 0;
}

/* Forgets the rows from the first one of the image on. */
static renyi_status forget_rows(renyi_conversation *c, renyi_error *err)
{
    const uint32_t n = renyi_lm_position(c->lm);
    uint32_t keep = 0;
    while (keep < n && c->seen[keep] != RENYI_LVLM_IMAGE) keep++;
    return renyi_lm_rewind(c->lm, keep, err);
}

static void forget_question(renyi_conversation *c)
{
    ry_free(&c->m->al, c->chosen_by);
    c->chosen_by = NULL;
}

/* Forgets the old image: only the rows before its first one are of use for the next. */
static renyi_status forget_image(renyi_conversation *c, renyi_error *err)
{
    renyi_conversation_restart(c);
    forget_question(c);
    c->image = (renyi_visual_tokens){0};
    c->vision_ms = 0.0;
    c->n_choosing = 0;
    return forget_rows(c, err);
}

/* What the session has computed since `before`. */
static renyi_visual_work work_since(const renyi_conversation *c, const renyi_visual_work *before)
{
    renyi_visual_work after;
    renyi_visual_session_get_work(c->vision, &after);
    return (renyi_visual_work){after.tower_macs - before->tower_macs,
                               after.projector_macs - before->projector_macs,
                               after.choice_ms - before->choice_ms};
}

renyi_status ry_conversation_choose(renyi_conversation *c, const char *question, renyi_error *err)
{
    renyi_visual_work before;
    if (!c->image.n || !ry_visual_session_asks(c->vision)) return RENYI_OK;
    if (!question || !*question)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "cdpruner metric=text chooses visual tokens by the question: ask with text, "
                       "or set renyi_answer_options.question, or say metric=cls or metric=col");
    if (c->chosen_by && strcmp(c->chosen_by, question) == 0) return RENYI_OK;
    renyi_conversation_restart(c); /* its rows are of another question's choice */
    forget_question(c);
    renyi_visual_session_get_work(c->vision, &before);
    const double begin = ry_clock();
    RY_TRY(forget_rows(c, err));
    RY_TRY(ry_visual_session_ask(c->vision, question, &c->image, err));
    /* This choice takes the place of the one that showing the image made, which tower_macs has. */
    const renyi_visual_work choice = work_since(c, &before);
    c->work.projector_macs = choice.projector_macs;
    c->work.choice_ms = choice.choice_ms;
    c->vision_ms += 1e3 * (ry_clock() - begin);
    c->chosen_by = ry_strdup(&c->m->al, question);
    return c->chosen_by ? RENYI_OK : ry_fail_nomem(err, strlen(question) + 1);
}

/* An image as a caller may give it: exactly one of the three is set. */
typedef struct image_source {
    const renyi_image *image;
    const void *bytes;
    size_t size;
    const char *path;
} image_source;

static renyi_status show_image(renyi_conversation *c, const image_source *p, renyi_error *err)
{
    renyi_visual_tokens seen;
    if (!c || (!p->image && !p->bytes && !p->path))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_conversation_show: NULL argument");
    if (!c->vision)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "this model is a plain Llama: it has no image tower, so it takes no images");
    RY_TRY(forget_image(c, err));
    renyi_visual_work before;
    renyi_visual_session_get_work(c->vision, &before);
    const double begin = ry_clock();
    RY_TRY(renyi_visual_session_question(c->vision, "", err)); /* a question chooses again */
    if (p->image) RY_TRY(renyi_visual_run(c->vision, p->image, &seen, err));
    if (p->bytes) RY_TRY(renyi_visual_run_bytes(c->vision, p->bytes, p->size, &seen, err));
    if (p->path) RY_TRY(renyi_visual_run_file(c->vision, p->path, &seen, err));
    c->work = work_since(c, &before);
    c->image = seen;
    c->vision_ms = 1e3 * (ry_clock() - begin);
    return RENYI_OK;
}

renyi_status renyi_conversation_show(renyi_conversation *c, const renyi_image *image,
                                     renyi_error *err)
{
    return show_image(c, &(image_source){.image = image}, err);
}

renyi_status renyi_conversation_show_bytes(renyi_conversation *c, const void *bytes, size_t size,
                                           renyi_error *err)
{
    return show_image(c, &(image_source){.bytes = bytes, .size = size}, err);
}

renyi_status renyi_conversation_show_file(renyi_conversation *c, const char *path, renyi_error *err)
{
    return show_image(c, &(image_source){.path = path}, err);
}
