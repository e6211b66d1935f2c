/* own_rules.c - rules of the caller's own: shows them a block, calls them and checks what they
 * answer. After a fault the cut keeps the first tokens, so that the run can reach its next stop.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/own_rules.h"

#include "base/alloc.h"
#include "base/status.h"
#include "prune/rules/metric.h"
#include "prune/rules/reduce.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)RENYI_NEED_CLASS_ROW == (int)RY_NEED_CLASS_ROW &&
                   (int)RENYI_NEED_COLUMNS == (int)RY_NEED_COLUMNS &&
                   (int)RENYI_NEED_TOKENS == (int)RY_NEED_TOKENS,
               "needs are passed on as they are");
_Static_assert(RENYI_NONE == RY_NO_TOKEN, "a choice is written into a cut");

/* ---- memory -------------------------------------------------------------------------------- */

static size_t most_tokens(const ry_pruner *p)
{
    return (size_t)p->shape.n_prefix + p->shape.n_patches; /* cuts only shrink it */
}

renyi_status ry_own_new(ry_pruner *p, const renyi_allocator *al, renyi_error *err)
{
    const size_t each = 2 * most_tokens(p);
    p->own = ry_calloc(al, p->max_batch, sizeof *p->own);
    if (!p->own) return ry_fail_nomem(err, p->max_batch * sizeof *p->own);
    p->own[0].position = ry_alloc(al, p->max_batch, each * sizeof *p->own->position);
    if (!p->own[0].position) return ry_fail_nomem(err, each * sizeof *p->own->position);
    for (uint32_t i = 1; i < p->max_batch; i++) p->own[i].position = p->own[0].position + i * each;
    return RENYI_OK;
}

void ry_own_free(ry_pruner *p, const renyi_allocator *al)
{
    if (p->own) ry_free(al, p->own[0].position);
    ry_free(al, p->own);
}

/* ---- faults -------------------------------------------------------------------------------- */

void ry_pruner_begin(ry_pruner *p)
{
    for (uint32_t i = 0; p->own && i < p->max_batch; i++) p->own[i].fault.code = RENYI_OK;
}

/* A run stops after the block of the first fault, so all faults are of one block. */
renyi_status ry_pruner_fault(const ry_pruner *p, renyi_error *err)
{
    for (uint32_t i = 0; p->own && i < p->max_batch; i++) {
        const renyi_error *fault = &p->own[i].fault;
        if (fault->code == RENYI_OK) continue;
        if (err) *err = *fault;
        return fault->code;
    }
    return RENYI_OK;
}

/* ---- what a rule sees ---------------------------------------------------------------------- */

void ry_own_needs(const ry_pruner *p, ry_block_needs *needs)
{
    needs->what |= p->policy.own->rule.needs & ~(uint32_t)RENYI_NEED_SIZES;
    needs->sizes |= ry_policy_own_needs(&p->policy, RENYI_NEED_SIZES);
}

/* The cut of this block. */
static uint32_t cut_at(const ry_pruner *p, uint32_t block)
{
    uint32_t i = 0;
    while (p->policy.cuts[i].layer != block) i++;
    return i;
}

static renyi_rule_view show(const ry_pruner *p, const ry_block_view *v)
{
    const uint32_t needs = p->policy.own->rule.needs;
    int32_t *position = p->own[v->image].position;
    if (v->n_tokens == most_tokens(p)) /* the first cut */
        for (uint32_t j = 0; j < v->n_tokens; j++)
            position[j] = j < v->n_prefix ? RENYI_PREFIX : (int32_t)(j - v->n_prefix);
    return (renyi_rule_view){.block = v->block,
                             .image = v->image,
                             .n_tokens = v->n_tokens,
                             .n_prefix = v->n_prefix,
                             .n_out = p->tokens_out[cut_at(p, v->block)],
                             .dim = v->dim,
                             .n_heads = v->n_heads,
                             .grid = p->shape.grid,
                             .qkv_row = v->qkv_row,
                             .queries = v->qkv,
                             .keys = v->qkv + v->dim,
                             .values = v->qkv + 2 * (size_t)v->dim,
                             .class_row = needs & RENYI_NEED_CLASS_ROW ? v->class_row : NULL,
                             .columns = needs & RENYI_NEED_COLUMNS ? v->columns : NULL,
                             .tokens = needs & RENYI_NEED_TOKENS ? v->x : NULL,
                             .sizes = v->sizes,
                             .position = position};
}

void ry_own_follow(const ry_pruner *p, const ry_block_view *v, const ry_cut *cut)
{
    int32_t *now = p->own[v->image].position, *next = now + most_tokens(p);
    for (uint32_t r = 0; r < cut->n_out; r++)
        next[r] = cut->source[r] == RY_NO_TOKEN ? RENYI_FUSED : now[cut->source[r]];
    memcpy(now, next, cut->n_out * sizeof *now);
}

/* ---- rules that score ---------------------------------------------------------------------- */

static renyi_status stopped(const ry_pruner *p, const ry_block_view *v, int answer)
{
    return ry_fail(&p->own[v->image].fault, RENYI_ERR_ABORTED, -1,
                   "rule '%s' returned %d in block %u, image %u", p->policy.own->name, answer,
                   v->block, v->image);
}

/* Puts "rule 'mine', block 3, image 0" in front of the fault's message, if there is one. */
static renyi_status wrong_answer(const ry_pruner *p, const ry_block_view *v, renyi_status st)
{
    char where[RY_OWN_NAME + 64];
    snprintf(where, sizeof where, "rule '%s', block %u, image %u", p->policy.own->name, v->block,
             v->image);
    return st ? ry_fail_in(&p->own[v->image].fault, st, where) : RENYI_OK;
}

/* Weights of a fused token are shares of the sum. */
static renyi_status check_shares(const float *score, uint32_t n, renyi_error *err)
{
    for (uint32_t j = 0; j < n; j++)
        if (!isfinite(score[j]) || score[j] < 0.0f)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "score[%u] is %g; with weights=score the weights of a fused token are "
                           "shares of the scores, which must be finite and not negative",
                           j, (double)score[j]);
    return RENYI_OK;
}

static renyi_status take_scores(const ry_pruner *p, const ry_block_view *v, float *score)
{
    const renyi_rule *rule = &p->policy.own->rule;
    const renyi_rule_view view = show(p, v);
    memset(score, 0, v->n_tokens * sizeof *score);
    const int answer = rule->score(rule->user, &view, score);
    if (answer) return stopped(p, v, answer);
    const int fuses = p->policy.cuts[cut_at(p, v->block)].reduce == RY_REDUCE_FUSE;
    if (!fuses || p->policy.weights != RY_FUSE_SCORE) return RENYI_OK;
    return wrong_answer(p, v, check_shares(score, v->n_tokens, &p->own[v->image].fault));
}

void ry_own_score(const ry_pruner *p, const ry_block_view *v, float *score)
{
    if (take_scores(p, v, score)) memset(score, 0, v->n_tokens * sizeof *score);
}

/* ---- rules that decide --------------------------------------------------------------------- */

static size_t scratch(const ry_pruner *p) { return most_tokens(p) * sizeof(uint32_t); }

static void needs(const ry_pruner *p, uint32_t cut, ry_block_needs *out)
{
    (void)cut;
    ry_metric_needs(p, out);
    out->any_weights = 1;
}

static uint32_t tiles(const ry_pruner *p, uint32_t cut, uint32_t n_tokens, uint32_t phase)
{
    (void)p;
    (void)cut;
    (void)n_tokens;
    return phase == 0;
}

/* Drops everything but the prefix. */
static void prepare(const ry_block_view *v, ry_cut *out)
{
    for (uint32_t r = 0; r < out->n_out; r++) out->source[r] = r < v->n_prefix ? r : RY_NO_TOKEN;
    for (uint32_t j = 0; j < v->n_tokens; j++) {
        out->target[j] = j < v->n_prefix ? j : RY_NO_TOKEN;
        out->weight[j] = 1.0f;
        out->score[j] = 0.0f;
    }
    memset(out->rescued, 0, v->n_tokens);
}

/* Kept tokens are patches, none is kept twice, and each goes to the row that it continues. row_of:
 * [N] scratch. */
static renyi_status check_kept(const ry_block_view *v, ry_cut *out, uint32_t *row_of,
                               renyi_error *err)
{
    memset(row_of, 0, v->n_tokens * sizeof *row_of);
    for (uint32_t r = v->n_prefix; r < out->n_out; r++) {
        const uint32_t j = out->source[r], i = r - v->n_prefix;
        if (j == RY_NO_TOKEN) continue;
        if (j >= v->n_tokens)
            return ry_fail(err, RENYI_ERR_ARG, -1, "keep[%u] is %u, and %u tokens enter", i, j,
                           v->n_tokens);
        if (j < v->n_prefix)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "keep[%u] is %u, a class or distillation token: these always stay", i,
                           j);
        if (row_of[j])
            return ry_fail(err, RENYI_ERR_ARG, -1, "keep[%u] and keep[%u] are both %u",
                           row_of[j] - v->n_prefix, i, j);
        row_of[j] = r;
        if (out->target[j] == RY_NO_TOKEN) out->target[j] = r;
        if (out->target[j] != r)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "keep[%u] is %u, but target[%u] is row %u, not %u", i, j, j,
                           out->target[j], r);
    }
    return RENYI_OK;
}

static renyi_status check_target(const ry_block_view *v, const ry_cut *out, uint32_t j,
                                 renyi_error *err)
{
    const uint32_t r = out->target[j];
    if (j < v->n_prefix && (r != j || out->weight[j] != 1.0f))
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "token %u is a class or distillation token: it stays in row %u with weight 1", j, j);
    if (j < v->n_prefix || r == RY_NO_TOKEN) return RENYI_OK;
    if (r >= out->n_out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "target[%u] is %u, and %u rows leave", j, r,
                       out->n_out);
    if (r < v->n_prefix)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "target[%u] is %u, the row of a class or distillation token", j, r);
    if (!isfinite(out->weight[j]))
        return ry_fail(err, RENYI_ERR_ARG, -1, "weight[%u] is %g", j, (double)out->weight[j]);
    return RENYI_OK;
}

/* Every token has a row or none, and every row a token. has_token: [n_out] scratch. */
static renyi_status check_targets(const ry_block_view *v, ry_cut *out, uint32_t *has_token,
                                  renyi_error *err)
{
    memset(has_token, 0, v->n_tokens * sizeof *has_token);
    for (uint32_t j = 0; j < v->n_tokens; j++) {
        RY_TRY(check_target(v, out, j, err));
        if (out->target[j] == RY_NO_TOKEN)
            out->weight[j] = 0.0f;
        else
            has_token[out->target[j]] = 1;
    }
    for (uint32_t r = v->n_prefix; r < out->n_out; r++)
        if (!has_token[r])
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "no token goes to row %u: set keep[%u], or a target", r,
                           r - v->n_prefix);
    return RENYI_OK;
}

static renyi_status take_choice(const ry_pruner *p, const ry_block_view *v, ry_cut *out,
                                uint32_t *list)
{
    const renyi_rule *rule = &p->policy.own->rule;
    const renyi_rule_view view = show(p, v);
    renyi_error *err = &p->own[v->image].fault;
    renyi_rule_choice choice = {out->source + v->n_prefix, out->target, out->weight, out->score};
    prepare(v, out);
    const int answer = rule->cut(rule->user, &view, &choice);
    if (answer) return stopped(p, v, answer);
    const renyi_status st = check_kept(v, out, list, err);
    return wrong_answer(p, v, st ? st : check_targets(v, out, list, err));
}

static void work(ry_pruner *p, uint32_t cut, const ry_block_view *v, ry_cut *out, uint32_t phase,
                 uint32_t tile)
{
    uint32_t *list = ry_pruner_scratch(p, v->image);
    (void)cut;
    (void)phase;
    (void)tile;
    if (take_choice(p, v, out, list)) {
        const uint32_t kept = out->n_out - v->n_prefix;
        for (uint32_t i = 0; i < kept; i++) list[i] = i;
        ry_reduce_drop(v, out, list, kept);
    }
    ry_own_follow(p, v, out);
}

const ry_rule_ops ry_rule_own_cut = {needs, tiles, work, scratch};
