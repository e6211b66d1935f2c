/* rule_select.c - the rule behind `naive`, `evit` and rules of the caller's own that score: rank
 * the patches by a metric, keep the best, and drop, fuse or merge the rest. They differ only in the
 * scores and in how many stay, which the policy knows.
 *
 * Phases of a cut: the choice; and only for a merge the keys of all patches, the nearest kept
 * patch of each removed one, the weights.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "prune/rules/metric.h"
#include "prune/rules/own_rules.h"
#include "prune/rules/reduce.h"
#include "prune/rules/select.h"

#include <string.h>

enum { PHASE_CHOOSE, PHASE_KEYS, PHASE_NEAREST, PHASE_WEIGHTS };

/* One image's memory. N tokens enter the cut, M of them patches. */
typedef struct memory {
    uint64_t *radix;               /* [2M] */
    uint32_t *order, *class_order; /* [M] rankings */
    uint32_t *kept;                /* [M] */
    uint8_t *taken;                /* [M] */
    float *floats;                 /* [N] weights of a fused token, or sums of sizes */
    ry_keys keys;                  /* for a merge: of the patches, kept ones first */
} memory;

static int merges(const ry_pruner *p)
{
    for (uint32_t i = 0; i < p->policy.n_cuts; i++)
        if (p->policy.cuts[i].reduce == RY_REDUCE_MERGE) return 1;
    return 0;
}

static size_t layout(const ry_pruner *p, void *base, memory *m)
{
    const size_t n = (size_t)p->shape.n_prefix + p->shape.n_patches; /* cuts only shrink it */
    ry_arena a = {base, 0, base ? p->scratch_each : 0, 0};
    m->radix = RY_TAKE(&a, 2 * n, uint64_t);
    m->order = RY_TAKE(&a, n, uint32_t);
    m->class_order = RY_TAKE(&a, n, uint32_t);
    m->kept = RY_TAKE(&a, n, uint32_t);
    m->taken = RY_TAKE(&a, n, uint8_t);
    m->floats = RY_TAKE(&a, n, float);
    if (merges(p)) m->keys = ry_keys_layout(&a, &p->kernels, n, p->dim / p->n_heads);
    return a.overflow ? SIZE_MAX : a.used;
}

static size_t scratch(const ry_pruner *p)
{
    memory m;
    return layout(p, NULL, &m);
}

static uint32_t n_kept(const ry_pruner *p, uint32_t cut)
{
    return p->tokens_out[cut] - p->shape.n_prefix -
           (p->policy.cuts[cut].reduce == RY_REDUCE_FUSE ? 1 : 0);
}

static void needs(const ry_pruner *p, uint32_t cut, ry_block_needs *out)
{
    const ry_reduce reduce = p->policy.cuts[cut].reduce;
    ry_metric_needs(p, out);
    out->drops = reduce == RY_REDUCE_DROP;
    if (reduce == RY_REDUCE_FUSE && p->policy.weights != RY_FUSE_SCORE)
        out->what |= ry_pruner_row_need(p);
    if (reduce != RY_REDUCE_MERGE) return;
    const double kept = n_kept(p, cut), gone = p->tokens_in[cut] - p->tokens_out[cut];
    out->sizes = 1;
    out->macs = kept * gone * (p->dim / p->n_heads);
}

static uint32_t tiles(const ry_pruner *p, uint32_t cut, uint32_t n_tokens, uint32_t phase)
{
    const uint32_t n = n_tokens - p->shape.n_prefix;
    if (phase == PHASE_CHOOSE) return 1;
    if (p->policy.cuts[cut].reduce != RY_REDUCE_MERGE) return 0;
    switch (phase) {
    case PHASE_KEYS: return ry_keys_fill_tiles(n);
    case PHASE_NEAREST: return ry_keys_match_tiles(&p->kernels, n, n_kept(p, cut));
    case PHASE_WEIGHTS: return 1;
    default: return 0;
    }
}

/* Fills m->kept and m->taken and marks the rescued tokens: those that Col-Ln chooses after the
 * class token has chosen its share (set R of Algorithm 2). */
static void choose(const ry_pruner *p, const memory *m, const ry_block_view *v, ry_cut *out,
                   uint32_t kept)
{
    const uint32_t first = v->n_prefix, n = v->n_tokens - first;
    uint32_t by_class = 0, by_score = kept;
    ry_metric_score(p, v, out->score);
    ry_rank(m->order, out->score + first, n, m->radix);
    memset(out->rescued, 0, v->n_tokens);
    if (p->policy.metric == RY_METRIC_CORRECT) {
        ry_policy_split(&p->policy, kept, &by_class, &by_score);
        ry_rank(m->class_order, v->class_row + first, n, m->radix);
    }
    ry_select_correct(m->kept, m->taken, m->class_order, by_class, m->order, by_score, n);
    if (p->policy.metric == RY_METRIC_CORRECT)
        for (uint32_t i = by_class; i < kept; i++) out->rescued[first + m->kept[i]] = 1;
    if (p->policy.order == RY_ORDER_POSITION) ry_select_ascending(m->kept, m->taken, n);
}

static void decide(const ry_pruner *p, uint32_t cut, const memory *m, const ry_block_view *v,
                   ry_cut *out)
{
    const uint32_t kept = n_kept(p, cut);
    choose(p, m, v, out, kept);
    ry_reduce_drop(v, out, m->kept, kept);
    if (p->policy.cuts[cut].reduce == RY_REDUCE_FUSE) {
        const int by_score = p->policy.weights == RY_FUSE_SCORE;
        if (by_score) ry_metric_weights(p, out->score, v->n_tokens, m->floats);
        ry_reduce_fuse(v, out, by_score ? m->floats : v->class_row);
    } else if (p->policy.cuts[cut].reduce == RY_REDUCE_MERGE) {
        uint32_t k = kept;
        memcpy(m->keys.list, out->source + v->n_prefix, kept * sizeof *m->keys.list);
        for (uint32_t j = v->n_prefix; j < v->n_tokens; j++)
            if (out->target[j] == RY_NO_TOKEN) m->keys.list[k++] = j;
    }
    if (p->own) ry_own_follow(p, v, out); /* a merge changes no source */
}

/* Every removed patch joins its partner. */
static void merge(const memory *m, const ry_block_view *v, ry_cut *out)
{
    const uint32_t kept = out->n_out - v->n_prefix, gone = v->n_tokens - out->n_out;
    for (uint32_t i = 0; i < gone; i++)
        out->target[m->keys.list[kept + i]] = v->n_prefix + m->keys.partner[i];
    ry_reduce_mean(v, out, m->floats);
}

static void work(ry_pruner *p, uint32_t cut, const ry_block_view *v, ry_cut *out, uint32_t phase,
                 uint32_t tile)
{
    const uint32_t n = v->n_tokens - v->n_prefix;
    memory m;
    (void)layout(p, ry_pruner_scratch(p, v->image), &m);
    switch (phase) {
    case PHASE_CHOOSE: decide(p, cut, &m, v, out); break;
    case PHASE_KEYS: ry_keys_fill(&m.keys, v, n, tile); break;
    case PHASE_NEAREST: ry_keys_match(&m.keys, &p->kernels, n, n_kept(p, cut), tile); break;
    default: merge(&m, v, out); break;
    }
}

const ry_rule_ops ry_rule_select = {needs, tiles, work, scratch};
