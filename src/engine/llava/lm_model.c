/* lm_model.c - a language model: opens it, and sessions that feed it rows (tokens or visual rows)
 * and return the logits of what follows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/llava/llava_handles.h"
#include "model/llama/llama_loss.h"
#include "model/llama/llama_plan.h"
#include "model/llama/llama_tensors.h"
#include "prune/rules/lm_rule.h"
#include "renyi/lm.h"

#include <inttypes.h>

#define SMALL 1000000000u /* a model with no more parameters fits any machine as floats */

enum { DEFAULT_ROWS = 512, MAX_ROWS = 1 << 14 };

/* Nothing changes after it is opened, so sessions of several threads may share it. */
struct renyi_lm {
    renyi_allocator al; /* of everything below, and of the sessions */
    renyi_cpu level;
    renyi_dtype dtype; /* never DEFAULT or AUTO */
    ry_llama model;
    ry_tensors *kept; /* the mapped file that a stored model runs from, or NULL */
    int is_llava;     /* the file has a projector too */
    double weight_error;
};

/* ---- the model ----------------------------------------------------------------------------- */

/* The format of a file whose weights run as they are stored cannot be changed. */
static renyi_status choose_stored(renyi_dtype *out, renyi_dtype stored, renyi_dtype wanted,
                                  renyi_error *err)
{
    *out = stored;
    if (wanted == RENYI_DTYPE_DEFAULT || wanted == RENYI_DTYPE_AUTO || wanted == stored)
        return RENYI_OK;
    return ry_fail(
        err, RENYI_ERR_UNSUPPORTED, -1,
        "its weights are stored in %s, ready to run, and cannot become %s; use the original file",
        renyi_dtype_name(stored), renyi_dtype_name(wanted));
}

/* 16-bit weights of a large model stay 16-bit, blocks of Q4_0 stay what they are in int4, others
 * become int8 (Q4_0 and Q8_0 among them stay): as floats a 7B would take 27 GB. */
static renyi_dtype default_dtype(const ry_llama_config *c, const ry_checkpoint *ckpt)
{
    ry_tensor_naming n;
    if (ry_llama_params(c) <= SMALL || !ry_llama_naming_find(&n, ckpt->tensors))
        return RENYI_DTYPE_F32;
    const ry_tensor *t = ry_tensor_of_role(&n, ckpt->tensors, RY_Q_W, 0);
    if (t && ry_dtype_block(t->dtype) > 1)
        return ry_llama_is_q4(c, &n, ckpt->tensors) ? RENYI_DTYPE_INT4 : RENYI_DTYPE_INT8;
    return t && (t->dtype == RY_F16 || t->dtype == RY_BF16) ? RENYI_DTYPE_BF16 : RENYI_DTYPE_F32;
}

static renyi_status configure_lm(renyi_lm *lm, ry_llama_config *config, const ry_checkpoint *ckpt,
                                 const renyi_options *opt, renyi_error *err)
{
    RY_TRY(ry_llama_configure(config, ckpt, err));
    lm->is_llava = ry_visual_is_llava(ckpt);
    if (config->stored) return choose_stored(&lm->dtype, config->stored, opt->dtype, err);
    if (opt->dtype == RENYI_DTYPE_DEFAULT) lm->dtype = default_dtype(config, ckpt);
    return RENYI_OK;
}

static renyi_status fill_lm(renyi_lm *lm, ry_checkpoint *ckpt, const renyi_options *opt,
                            renyi_error *err)
{
    ry_llama_config config;
    RY_TRY(configure_lm(lm, &config, ckpt, opt, err));
    RY_TRY(ry_llama_loss(&lm->weight_error, &config, ckpt, lm->dtype, &lm->al, err));
    RY_TRY(ry_llama_load(&lm->model, &config, ckpt, opt, lm->level, lm->dtype, err));
    if (config.stored) { /* its weights stay in the mapped file */
        lm->kept = ckpt->tensors;
        ckpt->tensors = NULL;
    }
    return RENYI_OK;
}

/* Reads the options into a model without weights. */
static renyi_status begin_lm(renyi_lm *lm, renyi_options *opt, const renyi_options *given,
                             renyi_error *err)
{
    *lm = (renyi_lm){0};
    RY_TRY(ry_options_read(opt, given, err));
    RY_TRY(ry_cpu_choose(opt->cpu, &lm->level, err));
    RY_TRY(ry_dtype_choose_lm(opt->dtype, &lm->dtype, err));
    lm->al = opt->allocator;
    return RENYI_OK;
}

static renyi_status open_lm(renyi_lm **out, ry_checkpoint *ckpt, const char *path,
                            const renyi_lm *start, const renyi_options *opt, renyi_error *err)
{
    renyi_lm *lm = ry_calloc(&opt->allocator, 1, sizeof *lm);
    if (!lm) return ry_fail_in(err, ry_fail_nomem(err, sizeof *lm), path);
    *lm = *start;
    const renyi_status st = fill_lm(lm, ckpt, opt, err);
    if (st != RENYI_OK) {
        renyi_lm_free(lm);
        return ry_fail_in(err, st, path);
    }
    *out = lm;
    return RENYI_OK;
}

renyi_status ry_lm_open_checkpoint(renyi_lm **out, ry_checkpoint *ckpt, const char *path,
                                   const renyi_options *options, renyi_error *err)
{
    renyi_options opt;
    renyi_lm start;
    *out = NULL;
    RY_TRY(begin_lm(&start, &opt, options, err));
    return open_lm(out, ckpt, path, &start, &opt, err);
}

renyi_status renyi_lm_open(renyi_lm **out, const char *path, const renyi_options *options,
                           renyi_error *err)
{
    renyi_options opt;
    renyi_lm start;
    ry_checkpoint ckpt = {0};
    if (!out || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_open: %s is NULL", out ? "path" : "out");
    *out = NULL;
    RY_TRY(begin_lm(&start, &opt, options, err));
    renyi_status st = ry_checkpoint_open(&ckpt, path, &opt.limits, &opt.allocator, err);
    if (st == RENYI_OK) st = open_lm(out, &ckpt, path, &start, &opt, err);
    ry_checkpoint_close(&ckpt, &opt.allocator);
    return st;
}

/* Facts of a model without reading its weights. */
static renyi_status describe_lm(renyi_lm *lm, const ry_checkpoint *ckpt, const renyi_options *opt,
                                renyi_error *err)
{
    ry_llama *m = &lm->model;
    RY_TRY(configure_lm(lm, &m->config, ckpt, opt, err));
    /* rows that are not finite are an error when the model is opened */
    if (ry_llama_loss(&lm->weight_error, &m->config, ckpt, lm->dtype, &lm->al, NULL) ==
        RENYI_ERR_NOMEM)
        return ry_fail_nomem(err, 0);
    m->n_params = ry_llama_params(&m->config);
    m->bytes = ry_llama_bytes(&m->config, ckpt, lm->dtype);
    return RENYI_OK;
}

renyi_status renyi_lm_describe(const char *path, const renyi_options *options, renyi_lm_info *info,
                               renyi_error *err)
{
    renyi_options opt;
    renyi_lm lm;
    ry_checkpoint ckpt = {0};
    if (!info || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_describe: %s is NULL",
                       info ? "path" : "info");
    *info = (renyi_lm_info){0};
    RY_TRY(begin_lm(&lm, &opt, options, err));
    renyi_status st = ry_checkpoint_open(&ckpt, path, &opt.limits, &lm.al, err);
    if (st == RENYI_OK) {
        st = describe_lm(&lm, &ckpt, &opt, err);
        if (st != RENYI_OK) st = ry_fail_in(err, st, path);
    }
    ry_checkpoint_close(&ckpt, &lm.al);
    renyi_lm_get_info(&lm, info);
    return st;
}

void renyi_lm_free(renyi_lm *lm)
{
    if (!lm) return;
    const renyi_allocator al = lm->al;
    ry_llama_free(&lm->model, &al);
    ry_tensors_free(lm->kept);
    ry_free(&al, lm);
}

void renyi_lm_get_info(const renyi_lm *lm, renyi_lm_info *info)
{
    const ry_llama_config *c = &lm->model.config;
    *info = (renyi_lm_info){
        .layout = c->layout,
        .dim = c->dim,
        .n_layers = c->n_layers,
        .n_heads = c->n_heads,
        .mlp_dim = c->mlp_dim,
        .n_kv_heads = c->n_kv_heads,
        .head_dim = c->head_dim,
        .vocab = c->vocab,
        .context = c->context,
        .bos = c->bos,
        .eos = c->eos,
        .image = c->image,
        .rope_theta = c->rope_theta,
        .norm_eps = c->norm_eps,
        .tied = c->tied,
        .n_params = lm->model.n_params,
        .bytes = lm->model.bytes,
        .dtype = lm->dtype,
        .cpu = lm->level,
        .is_llava = lm->is_llava,
        .weight_error = lm->weight_error,
    };
}

/* ---- sessions ------------------------------------------------------------------------------ */

struct renyi_lm_session {
    const renyi_lm *lm; /* borrowed */
    ry_llama_plan *plan;
    ry_lm_rule *rule;  /* NULL = no policy */
    uint32_t cut_from; /* the first visual row of the last feed that the rule cut */
    char policy_text[RY_MAX_POLICY_TEXT]; /* in full */
    renyi_progress progress;
    void *progress_user;
};

/* Passes are whole tiles of the products, so that every row is in a tile of the same height. */
static uint32_t whole_tiles(uint32_t rows)
{
    return (rows + RY_LINEAR_TILE - 1) / RY_LINEAR_TILE * RY_LINEAR_TILE;
}

static renyi_status check_options(renyi_lm_session_options *o, const renyi_lm *lm, renyi_error *err)
{
    const uint32_t context = lm->model.config.context;
    if (!o->max_context) o->max_context = context;
    if (!o->max_rows) o->max_rows = DEFAULT_ROWS;
    if (!o->cache_bits) o->cache_bits = lm->dtype == RENYI_DTYPE_F32 ? 32 : 16;
    if (o->max_context > context)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "max_context (--max-context) %u; the model allows at most %u rows",
                       o->max_context, context);
    if (o->max_rows > MAX_ROWS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "max_rows %u; at most %d", o->max_rows, MAX_ROWS);
    RY_TRY(ry_threads_choose(&o->n_threads, err));
    if (o->cache_bits != 16 && o->cache_bits != 32)
        return ry_fail(err, RENYI_ERR_ARG, -1, "cache_bits %u; 16 or 32 is allowed", o->cache_bits);
    if (o->max_rows > o->max_context) o->max_rows = o->max_context;
    o->max_rows = whole_tiles(o->max_rows);
    return RENYI_OK;
}

static renyi_status make_rule(renyi_lm_session *s, const renyi_lm_session_options *o,
                              renyi_error *err)
{
    const ry_policy_shape shape = {.n_patches = o->n_visual,
                                   .lm_layers = s->lm->model.config.n_layers};
    ry_policy policy;
    RY_TRY(ry_policy_parse(&policy, o->policy ? o->policy : "none", err));
    if (policy.rule != RY_RULE_NONE && !ry_policy_is_lm(&policy))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "policy '%.80s' acts in the image tower or behind it, not inside a language "
                       "model; fastv, pyramiddrop, dart and sparsevlm do",
                       o->policy);
    RY_TRY(ry_policy_check(&policy, &shape, err));
    ry_policy_print(s->policy_text, &policy);
    if (policy.rule == RY_RULE_NONE) return RENYI_OK;
    return ry_lm_rule_new(&s->rule, &policy, o->max_context, s->lm->model.config.dim, &s->lm->al,
                          err);
}

static renyi_status fill_lm_session(renyi_lm_session *s, const renyi_lm_session_options *o,
                                    renyi_error *err)
{
    const renyi_lm *lm = s->lm;
    s->progress = o->progress;
    s->progress_user = o->progress_user;
    RY_TRY(make_rule(s, o, err));
    const ry_llama_plan_options plan = {.level = lm->level,
                                        .max_context = o->max_context,
                                        .max_rows = o->max_rows,
                                        .n_threads = o->n_threads,
                                        .half = o->cache_bits == 16,
                                        .cuts = s->rule ? ry_lm_rule_cuts(s->rule) : NULL};
    return ry_llama_plan_new(&s->plan, &lm->model, &plan, &lm->al, err);
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
    const renyi_status st = fill_lm_session(s, &o, err);
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
    ry_lm_rule_free(s->rule, al);
    ry_free(al, s);
}

size_t renyi_lm_session_bytes(const renyi_lm_session *s)
{
    if (!s) return 0;
    return s->plan->arena_bytes + s->plan->cache_bytes + (s->rule ? ry_lm_rule_bytes(s->rule) : 0);
}

const char *renyi_lm_session_policy(const renyi_lm_session *s) { return s ? s->policy_text : ""; }

uint32_t renyi_lm_position(const renyi_lm_session *s) { return s ? s->plan->position : 0; }
uint32_t renyi_lm_max_context(const renyi_lm_session *s)
{
    return s ? s->plan->opt.max_context : 0;
}

uint32_t renyi_lm_cache_rows(const renyi_lm_session *s, uint32_t layer)
{
    if (!s || layer >= s->lm->model.config.n_layers) return 0;
    return ry_llama_stage_of(s->plan, layer)->n;
}

uint32_t renyi_lm_cache_bits(const renyi_lm_session *s)
{
    return s ? (s->plan->opt.half ? 16 : 32) : 0;
}

renyi_status renyi_lm_rewind(renyi_lm_session *s, uint32_t position, renyi_error *err)
{
    if (!s) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_rewind: NULL argument");
    if (position > s->plan->position)
        return ry_fail(err, RENYI_ERR_ARG, -1, "rewind to row %u of a sequence of %u", position,
                       s->plan->position);
    ry_llama_rewind(s->plan, position);
    if (s->rule && position <= s->cut_from) ry_lm_rule_forget(s->rule);
    return RENYI_OK;
}

int renyi_lm_session_get_cut(const renyi_lm_session *s, uint32_t i, renyi_lm_cut *out)
{
    ry_lm_trace t;
    if (!s || !out || !s->rule || !ry_lm_rule_trace(s->rule, i, &t)) return 0;
    *out = (renyi_lm_cut){t.layer, t.n_in, t.n_kept, t.kept, t.scores};
    return 1;
}

double renyi_lm_choice_macs(const renyi_lm_session *s)
{
    ry_lm_trace t;
    return s && s->rule && ry_lm_rule_trace(s->rule, 0, &t) ? s->plan->choice_macs : 0.0;
}

/* ---- feeding rows -------------------------------------------------------------------------- */

static renyi_status check_input(const renyi_lm_session *s, const renyi_lm_input *in, uint32_t n,
                                renyi_error *err)
{
    const uint32_t vocab = s->lm->model.config.vocab;
    const uint32_t position = s->plan->position, space = s->plan->opt.max_context - position;
    if (!n) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_feed: no rows");
    if (n > space)
        return ry_fail(
            err, RENYI_ERR_LIMIT, -1,
            "the context is full: it has %u rows, and %u more do not fit into %u. The model "
            "allows %u; fewer visual tokens or a shorter text would fit",
            position, n, position + space, s->lm->model.config.context);
    for (uint32_t i = 0; i < n; i++)
        if (!in[i].embedding && (in[i].token < 0 || (uint32_t)in[i].token >= vocab))
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "token %" PRId32 " in row %u; the model has 0 to %u: does the tokenizer "
                           "belong to another model?",
                           in[i].token, i, vocab - 1);
    return RENYI_OK;
}

/* Rows from the first to the last embedding; *first is the number of rows before them. */
static uint32_t count_visual(const renyi_lm_input *in, uint32_t n, uint32_t *first)
{
    uint32_t begin = 0, end = n;
    while (begin < n && !in[begin].embedding) begin++;
    while (end > begin && !in[end - 1].embedding) end--;
    *first = begin;
    return end - begin;
}

static renyi_status stopped(renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
}

/* A feed with visual rows, which the rule cuts. */
static renyi_status feed_cut(renyi_lm_session *s, const renyi_lm_input *in, uint32_t n,
                             uint32_t first, uint32_t n_visual, float *logits, renyi_error *err)
{
    RY_TRY(ry_lm_rule_check(s->rule, n_visual, n - first - n_visual, err));
    const uint32_t position = s->plan->position;
    ry_lm_rule_forget(s->rule);
    if (ry_llama_prefill(s->plan, in, n, logits, s->progress, s->progress_user)) {
        ry_lm_rule_forget(s->rule);
        return stopped(err);
    }
    s->cut_from = position + first;
    return RENYI_OK;
}

renyi_status renyi_lm_feed(renyi_lm_session *s, const renyi_lm_input *in, uint32_t n, float *logits,
                           renyi_error *err)
{
    uint32_t first;
    if (!s || !in) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lm_feed: NULL argument");
    RY_TRY(check_input(s, in, n, err));
    const uint32_t n_visual = s->rule ? count_visual(in, n, &first) : 0;
    if (n_visual) return feed_cut(s, in, n, first, n_visual, logits, err);
    for (uint32_t done = 0, count; done < n; done += count) {
        const uint32_t left = n - done, most = s->plan->opt.max_rows;
        count = left < most ? left : most;
        ry_llama_forward(s->plan, in + done, count, count == left ? logits : NULL);
        if (s->progress && s->progress(s->progress_user, done + count, n)) return stopped(err);
    }
    return RENYI_OK;
}
