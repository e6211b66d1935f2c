/* lm_session.c - bodies of the language model's sessions of llava.h: rows checked, cut into passes
 * and run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/llava/lm_model.h"
#include "model/llama/llama_plan.h"

#include <inttypes.h>

struct renyi_lm_session {
    const renyi_lm *lm; /* borrowed */
    ry_llama_plan *plan;
    renyi_progress progress;
    void *progress_user;
};

enum { DEFAULT_ROWS = 512, MAX_ROWS = 1 << 14, MAX_THREADS = 1024 };

/* Passes are whole tiles of the products, so that a row's tile has the same height in each. */
static uint32_t whole_tiles(uint32_t rows)
{
    return (rows + RY_LINEAR_TILE - 1) / RY_LINEAR_TILE * RY_LINEAR_TILE;
}

static renyi_status check_options(renyi_lm_session_options *o, const renyi_lm *lm, renyi_error *err)
{
    const uint32_t context = lm->model.config.context;
    if (!o->max_context) o->max_context = context;
    if (!o->n_threads) o->n_threads = ry_cpu_cores();
    if (!o->max_rows) o->max_rows = DEFAULT_ROWS;
    if (!o->cache_bits) o->cache_bits = lm->dtype == RENYI_DTYPE_F32 ? 32 : 16;
    if (o->max_context > context)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "max_context %u; the model was made for at most %u rows", o->max_context,
                       context);
    if (o->max_rows > MAX_ROWS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "max_rows %u; at most %d", o->max_rows, MAX_ROWS);
    if (o->n_threads > MAX_THREADS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u threads; at most %d", o->n_threads, MAX_THREADS);
    if (o->cache_bits != 16 && o->cache_bits != 32)
        return ry_fail(err, RENYI_ERR_ARG, -1, "cache_bits %u; 16 or 32 wanted", o->cache_bits);
    if (o->max_rows > o->max_context) o->max_rows = o->max_context;
    o->max_rows = whole_tiles(o->max_rows);
    return RENYI_OK;
}

renyi_status renyi_lm_session_new(renyi_lm_session **out, const renyi_lm *lm,
                                  const renyi_lm_session_options *opt, renyi_error *err)
{
    renyi_lm_session_options o;
    if (!out || !lm) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_session_new: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_lm_session_options", err));
    RY_TRY(check_options(&o, lm, err));
    renyi_lm_session *s = ry_calloc(&lm->al, 1, sizeof *s);
    if (!s) return ry_fail_nomem(err, sizeof *s);
    s->lm = lm;
    s->progress = o.progress;
    s->progress_user = o.progress_user;
    const ry_llama_plan_options plan = {.level = lm->level,
                                        .max_context = o.max_context,
                                        .max_rows = o.max_rows,
                                        .n_threads = o.n_threads,
                                        .half = o.cache_bits == 16};
    const renyi_status st = ry_llama_plan_new(&s->plan, &lm->model, &plan, &lm->al, err);
    if (st) {
        renyi_lm_session_free(s);
        return st;
    }
    *out = s;
    return RENYI_OK;
}

void renyi_lm_session_free(renyi_lm_session *s)
{
    if (!s) return;
    const renyi_allocator *al = &s->lm->al;
    ry_llama_plan_free(s->plan, al);
    ry_free(al, s);
}

size_t renyi_lm_session_bytes(const renyi_lm_session *s)
{
    return s ? s->plan->arena_bytes + s->plan->cache_bytes : 0;
}

uint32_t renyi_lm_position(const renyi_lm_session *s) { return s ? s->plan->position : 0; }
uint32_t renyi_lm_max_context(const renyi_lm_session *s)
{
    return s ? s->plan->opt.max_context : 0;
}

renyi_status renyi_lm_rewind(renyi_lm_session *s, uint32_t position, renyi_error *err)
{
    if (!s) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_rewind: NULL argument");
    if (position > s->plan->position)
        return ry_fail(err, RENYI_ERR_ARG, -1, "rewind to row %u of a sequence of %u", position,
                       s->plan->position);
    s->plan->position = position;
    return RENYI_OK;
}

/* ---- feed ---------------------------------------------------------------------------------- */

static renyi_status check_input(const renyi_lm_session *s, const renyi_lm_input *in, uint32_t n,
                                renyi_error *err)
{
    const uint32_t vocab = s->lm->model.config.vocab;
    const uint32_t position = s->plan->position, room = s->plan->opt.max_context - position;
    if (!n) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_feed: no rows");
    if (n > room)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "the context is full: %u rows are in it and %u more do not fit into %u. The "
                       "model was made for %u; fewer visual tokens or a shorter text would fit",
                       position, n, position + room, s->lm->model.config.context);
    for (uint32_t i = 0; i < n; i++)
        if (!in[i].embedding && (in[i].token < 0 || (uint32_t)in[i].token >= vocab))
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "token %" PRId32 " in row %u; the model has 0 to %u: is the tokenizer "
                           "of another model?",
                           in[i].token, i, vocab - 1);
    return RENYI_OK;
}

renyi_status renyi_lm_feed(renyi_lm_session *s, const renyi_lm_input *in, uint32_t n, float *logits,
                           renyi_error *err)
{
    if (!s || !in) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_feed: NULL argument");
    RY_TRY(check_input(s, in, n, err));
    for (uint32_t done = 0, count; done < n; done += count) {
        const uint32_t left = n - done, most = s->plan->opt.max_rows;
        count = left < most ? left : most;
        ry_llama_forward(s->plan, in + done, count, count == left ? logits : NULL);
        if (s->progress && s->progress(s->progress_user, done + count, n))
            return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    }
    return RENYI_OK;
}
