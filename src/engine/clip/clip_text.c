/* clip_text.c - the text tower of CLIP or SigLIP: opens it, packs texts of different lengths into
 * passes, runs them, and returns embeddings of length 1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "engine/clip/clip_handles.h"
#include "engine/core/engine_options.h"
#include "model/clip_text/text_tower_plan.h"

#include <inttypes.h>
#include <string.h>

/* ---- the tower ----------------------------------------------------------------------------- */

static renyi_status fill_text(renyi_text *t, const ry_checkpoint *ckpt, const renyi_options *opt,
                              renyi_error *err)
{
    ry_text_config config;
    RY_TRY(ry_text_configure(&config, ckpt, err));
    if (opt->dtype == RENYI_DTYPE_DEFAULT && config.quantized)
        t->dtype = ry_dtype_of_quantized(t->level);
    return ry_text_load(&t->tower, &config, ckpt, opt, t->level, t->dtype, err);
}

renyi_status renyi_text_open(renyi_text **out, const char *path, const renyi_options *options,
                             renyi_error *err)
{
    renyi_options opt;
    ry_compute compute;
    ry_checkpoint ckpt = {0};
    if (!out || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_text_open: %s is NULL", out ? "path" : "out");
    *out = NULL;
    RY_TRY(ry_compute_choose(&compute, &opt, options, err));

    renyi_text *t = ry_calloc(&opt.allocator, 1, sizeof *t);
    if (!t) return ry_fail_in(err, ry_fail_nomem(err, sizeof *t), path);
    t->al = opt.allocator;
    t->level = compute.level;
    t->dtype = compute.dtype;
    renyi_status st = ry_checkpoint_open(&ckpt, path, &opt.limits, &t->al, err);
    if (st == RENYI_OK) {
        st = fill_text(t, &ckpt, &opt, err);
        if (st != RENYI_OK) st = ry_fail_in(err, st, path);
    }
    ry_checkpoint_close(&ckpt, &t->al);
    if (st != RENYI_OK) {
        renyi_text_free(t);
        return st;
    }
    *out = t;
    return RENYI_OK;
}

void renyi_text_free(renyi_text *t)
{
    if (!t) return;
    const renyi_allocator al = t->al;
    ry_text_free(&t->tower, &al);
    ry_free(&al, t);
}

void renyi_text_get_info(const renyi_text *t, renyi_text_info *info)
{
    const ry_text_config *c = &t->tower.config;
    *info = (renyi_text_info){
        .layout = c->layout == RY_LAYOUT_OPENAI ? "openai" : "huggingface",
        .activation = ry_activation_name(c->activation),
        .dim = c->dim,
        .n_blocks = c->n_blocks,
        .n_heads = c->n_heads,
        .mlp_dim = c->mlp_dim,
        .vocab = c->vocab,
        .context = c->context,
        .embed_dim = c->embed_dim,
        .norm_eps = c->norm_eps,
        .logit_scale = c->logit_scale,
        .logit_bias = c->logit_bias,
        .is_sigmoid = (uint32_t)c->is_sigmoid,
        .reads_padding = (uint32_t)ry_text_reads_padding(c),
        .n_params = t->tower.n_params,
        .fingerprint = t->tower.fingerprint,
        .dtype = t->dtype,
        .cpu = t->level,
    };
}

/* ---- sessions ------------------------------------------------------------------------------ */

struct renyi_text_session {
    const renyi_text *text; /* borrowed */
    ry_text_plan *plan;
    ry_text_line *lines; /* [max_tokens] the texts that are sorted together */
    renyi_progress progress;
    void *progress_user;
    uint64_t last_tokens;
};

enum { DEFAULT_TOKENS = 1024, MAX_TOKENS = 1 << 20 };

static renyi_status check_options(renyi_text_session_options *o, uint32_t context, renyi_error *err)
{
    if (!o->max_tokens) o->max_tokens = context > DEFAULT_TOKENS ? context : DEFAULT_TOKENS;
    if (o->max_tokens < context || o->max_tokens > MAX_TOKENS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "max_tokens %u; %u (one text) to %d are allowed",
                       o->max_tokens, context, MAX_TOKENS);
    return ry_threads_choose(&o->n_threads, err);
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

size_t renyi_text_session_bytes(const renyi_text_session *s)
{
    return s ? s->plan->arena_bytes + s->plan->max_tokens * sizeof *s->lines : 0;
}

uint64_t renyi_text_last_tokens(const renyi_text_session *s) { return s ? s->last_tokens : 0; }

/* ---- ids to embeddings --------------------------------------------------------------------- */

/* Ids of one call, [n, context]. */
typedef struct id_list {
    const ry_text_config *config;
    const int32_t *ids;
    const uint32_t *lengths;
    uint32_t n;
} id_list;

/* The token of ids [length] that is read. */
static uint32_t pooled_token(const ry_text_config *c, const int32_t *ids, uint32_t length)
{
    uint32_t at = 0;
    if (c->pool == RY_TEXT_POOL_FIRST) return 0;
    if (c->pool == RY_TEXT_POOL_LAST) return length - 1;
    if (c->pool == RY_TEXT_POOL_EOS) {
        while (at < length && ids[at] != (int32_t)c->eos) at++;
        return at < length ? at : 0;
    }
    for (uint32_t k = 1; k < length; k++)
        if (ids[k] > ids[at]) at = k;
    return at;
}

/* Text i as far as the tower reads it. */
static ry_text_line text_line(const id_list *t, uint32_t i)
{
    const ry_text_config *c = t->config;
    const int32_t *ids = t->ids + (size_t)i * c->context;
    const uint32_t length = t->lengths && !ry_text_reads_padding(c) ? t->lengths[i] : c->context;
    const uint32_t pool = pooled_token(c, ids, length);
    return (ry_text_line){ids, c->sees_all ? length : pool + 1, pool, i};
}

static renyi_status check_texts(const id_list *t, renyi_error *err)
{
    const uint32_t context = t->config->context, vocab = t->config->vocab;
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->lengths && (!t->lengths[i] || t->lengths[i] > context))
            return ry_fail(err, RENYI_ERR_ARG, -1, "text %u has %u ids; 1 to %u are allowed", i,
                           t->lengths[i], context);
        const ry_text_line line = text_line(t, i);
        for (uint32_t k = 0; k < line.length; k++)
            if (line.ids[k] < 0 || (uint32_t)line.ids[k] >= vocab)
                return ry_fail(err, RENYI_ERR_ARG, -1,
                               "id %" PRId32
                               " in text %u; the tower has 0 to %u: does the tokenizer "
                               "belong to another model?",
                               line.ids[k], i, vocab - 1);
    }
    return RENYI_OK;
}

renyi_status renyi_text_run(renyi_text_session *s, const int32_t *ids, const uint32_t *lengths,
                            uint32_t n, float *out, renyi_error *err)
{
    if (!s || !ids || !out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_text_run: NULL argument");
    const ry_text_config *c = &s->text->tower.config;
    const id_list t = {c, ids, lengths, n};
    RY_TRY(check_texts(&t, err));
    s->last_tokens = 0;
    for (uint32_t done = 0; done < n;) {
        const uint32_t left = n - done, R = s->plan->max_tokens, count = left < R ? left : R;
        for (uint32_t i = 0; i < count; i++) s->lines[i] = text_line(&t, done + i);
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

/* ---- texts to embeddings ------------------------------------------------------------------- */

enum { AT_ONCE = 4096 }; /* texts whose ids are in memory together: 1.3 MB */

/* Bytes of a text that an error shows: whole characters. */
static int shown_bytes(const char *text)
{
    enum { MOST = 40 };
    size_t n = strlen(text);
    if (n <= MOST) return (int)n;
    for (n = MOST; n && ((unsigned char)text[n] & 0xc0) == 0x80;) n--;
    return (int)n;
}

static renyi_status encode_text(const renyi_tokenizer *t, const char *text, uint32_t context,
                                int truncate, uint32_t number, int32_t *ids, uint32_t *length,
                                renyi_error *err)
{
    renyi_error why = {0};
    const renyi_status st =
        renyi_tokenizer_encode(t, text, strlen(text), context, truncate, ids, length, &why);
    if (!st) return RENYI_OK;
    const int n = shown_bytes(text);
    return ry_fail(err, st, why.offset, "text %u (\"%.*s%s\"): %s", number, n, text,
                   text[n] ? "..." : "", why.message);
}

renyi_status renyi_embed_texts(renyi_text_session *s, const renyi_tokenizer *tokenizer,
                               const char *const *texts, uint32_t n, int truncate, float *out,
                               renyi_error *err)
{
    renyi_text_info info;
    if (!s || !tokenizer || (n && (!texts || !out)))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_embed_texts: NULL argument");
    const renyi_text *tower = s->text;
    renyi_text_get_info(tower, &info);
    const uint32_t n_max = n < AT_ONCE ? n : AT_ONCE;
    int32_t *ids = ry_alloc(&tower->al, (size_t)n_max * info.context, sizeof *ids);
    uint32_t *lengths = ry_alloc(&tower->al, n_max, sizeof *lengths);
    renyi_status st =
        ids && lengths ? RENYI_OK : ry_fail_nomem(err, (size_t)n_max * info.context * sizeof *ids);
    for (uint32_t done = 0; !st && done < n;) {
        const uint32_t count = n - done < n_max ? n - done : n_max;
        for (uint32_t i = 0; !st && i < count; i++)
            st = encode_text(tokenizer, texts[done + i], info.context, truncate, done + i + 1,
                             ids + (size_t)i * info.context, &lengths[i], err);
        float *rows = out + (size_t)done * info.embed_dim;
        if (!st) st = renyi_text_run(s, ids, lengths, count, rows, err);
        if (!st) renyi_normalise_rows(rows, count, info.embed_dim);
        done += count;
    }
    ry_free(&tower->al, ids);
    ry_free(&tower->al, lengths);
    return st;
}
