/* clip_text_session.c - bodies of the text sessions of clip.h: texts sorted, packed into passes and
 * run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/clip/clip_text.h"
#include "engine/core/engine_options.h"
#include "model/clip_text/text_tower_plan.h"

#include <inttypes.h>

struct renyi_text_session {
    const renyi_text *text; /* borrowed */
    ry_text_plan *plan;
    ry_text_line *lines; /* [max_tokens] texts that are sorted at a time */
    renyi_progress progress;
    void *progress_user;
    uint64_t last_tokens;
};

enum { DEFAULT_TOKENS = 1024, MAX_TOKENS = 1 << 20, MAX_THREADS = 1024 };

static renyi_status check_options(renyi_text_session_options *o, uint32_t context, renyi_error *err)
{
    if (!o->max_tokens) o->max_tokens = context > DEFAULT_TOKENS ? context : DEFAULT_TOKENS;
    if (!o->n_threads) o->n_threads = ry_cpu_cores();
    if (o->max_tokens < context || o->max_tokens > MAX_TOKENS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "max_tokens %u; %u (one text) to %d wanted",
                       o->max_tokens, context, MAX_TOKENS);
    if (o->n_threads > MAX_THREADS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u threads; at most %d", o->n_threads, MAX_THREADS);
    return RENYI_OK;
}

static renyi_status fill_session(renyi_text_session *s, const renyi_text *t,
                                 const renyi_text_session_options *o, renyi_error *err)
{
    const ry_text_plan_options plan = {t->level, o->max_tokens, o->n_threads};
    s->text = t;
    s->progress = o->progress;
    s->progress_user = o->progress_user;
    s->lines = ry_alloc(&t->al, o->max_tokens, sizeof *s->lines);
    if (!s->lines) return ry_fail_nomem(err, o->max_tokens * sizeof *s->lines);
    return ry_text_plan_new(&s->plan, &t->tower, &plan, &t->al, err);
}

renyi_status renyi_text_session_new(renyi_text_session **out, const renyi_text *t,
                                    const renyi_text_session_options *opt, renyi_error *err)
{
    renyi_text_session_options o;
    if (!out || !t) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_text_session_new: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_text_session_options", err));
    RY_TRY(check_options(&o, t->tower.config.context, err));
    renyi_text_session *s = ry_calloc(&t->al, 1, sizeof *s);
    if (!s) return ry_fail_nomem(err, sizeof *s);
    const renyi_status st = fill_session(s, t, &o, err);
    if (st) {
        renyi_text_session_free(s);
        return st;
    }
    *out = s;
    return RENYI_OK;
}

void renyi_text_session_free(renyi_text_session *s)
{
    if (!s) return;
    const renyi_allocator *al = &s->text->al;
    ry_text_plan_free(s->plan, al);
    ry_free(al, s->lines);
    ry_free(al, s);
}

const renyi_text *ry_text_session_tower(const renyi_text_session *s) { return s->text; }

size_t renyi_text_session_bytes(const renyi_text_session *s)
{
    return s ? s->plan->arena_bytes + s->plan->max_tokens * sizeof *s->lines : 0;
}

uint64_t renyi_text_last_tokens(const renyi_text_session *s) { return s ? s->last_tokens : 0; }

/* ---- run ----------------------------------------------------------------------------------- */

/* Ids of one call, [n, context]. */
typedef struct texts {
    const int32_t *ids;
    const uint32_t *lengths;
    uint32_t n, context;
} texts;

/* Text i up to the first of its largest ids. */
static ry_text_line line_of(const texts *t, uint32_t i)
{
    const int32_t *ids = t->ids + (size_t)i * t->context;
    const uint32_t length = t->lengths ? t->lengths[i] : t->context;
    uint32_t end = 0;
    for (uint32_t k = 1; k < length; k++)
        if (ids[k] > ids[end]) end = k;
    return (ry_text_line){ids, end + 1, i};
}

static renyi_status check_texts(const texts *t, uint32_t vocab, renyi_error *err)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->lengths && (!t->lengths[i] || t->lengths[i] > t->context))
            return ry_fail(err, RENYI_ERR_ARG, -1, "text %u has %u ids; 1 to %u wanted", i,
                           t->lengths[i], t->context);
        const ry_text_line line = line_of(t, i);
        for (uint32_t k = 0; k < line.length; k++)
            if (line.ids[k] < 0 || (uint32_t)line.ids[k] >= vocab)
                return ry_fail(err, RENYI_ERR_ARG, -1,
                               "id %" PRId32 " in text %u; the tower has 0 to %u: is the tokenizer "
                               "of another model?",
                               line.ids[k], i, vocab - 1);
    }
    return RENYI_OK;
}

renyi_status renyi_text_run(renyi_text_session *s, const int32_t *ids, const uint32_t *lengths,
                            uint32_t n, float *out, renyi_error *err)
{
    if (!s || !ids || !out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_text_run: NULL argument");
    const ry_text_config *c = &s->text->tower.config;
    const texts t = {ids, lengths, n, c->context};
    RY_TRY(check_texts(&t, c->vocab, err));
    s->last_tokens = 0;
    for (uint32_t done = 0; done < n;) {
        const uint32_t left = n - done, R = s->plan->max_tokens, count = left < R ? left : R;
        for (uint32_t i = 0; i < count; i++) s->lines[i] = line_of(&t, done + i);
        ry_text_sort(s->lines, count);
        for (size_t at = 0; at < count;) {
            at += ry_text_pack(&s->plan->pass, s->lines + at, count - at);
            ry_text_forward(s->plan, out);
            s->last_tokens += s->plan->pass.n_rows;
            if (s->progress && s->progress(s->progress_user, done + at, n))
                return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
        }
        done += count;
    }
    return RENYI_OK;
}
