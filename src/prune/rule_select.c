/* rule_select.c - the rule behind `naive` and `evit`: rank the patches by a metric, keep the best,
 * and drop, fuse or merge the rest. The two differ only in how many stay, which the policy knows.
 *
 * Phases of a cut: 0 the choice, and in tiles beside it the keys that a merge will compare; only
 * for a merge: 1 the nearest kept token of each that goes, 2 the weights.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "prune/metric.h"
#include "prune/reduce.h"
#include "prune/select.h"

#include <string.h>

enum { TILE = 32 }; /* tokens of a tile: some microseconds of work */

/* One image's memory. N tokens enter the cut, M of them patches. */
typedef struct memory {
    uint64_t *radix;               /* [2M] */
    uint32_t *order, *class_order; /* [M] rankings */
    uint32_t *kept, *gone;         /* [M] */
    uint8_t *taken;                /* [M] */
    float *floats;                 /* [N] weights of a fused token, or sums of sizes */
    ry_keys keys;                  /* [N] */
} memory;

static size_t layout(const ry_pruner *p, void *base, memory *m)
{
    const size_t n = (size_t)p->shape.n_prefix + p->shape.n_patches; /* cuts only make it less */
    ry_arena a = {base, 0, base ? p->scratch_each : 0, 0};
    m->radix = RY_TAKE(&a, uint64_t, 2 * n);
    m->order = RY_TAKE(&a, uint32_t, n);
    m->class_order = RY_TAKE(&a, uint32_t, n);
    m->kept = RY_TAKE(&a, uint32_t, n);
    m->gone = RY_TAKE(&a, uint32_t, n);
    m->taken = RY_TAKE(&a, uint8_t, n);
    m->floats = RY_TAKE(&a, float, n);
    m->keys.row = ry_keys_row(p->dim / p->n_heads);
    m->keys.unit = RY_TAKE(&a, float, n * m->keys.row);
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
    if (reduce == RY_REDUCE_FUSE && p->policy.weights == RY_FUSE_CLS)
        out->what |= RY_NEED_CLASS_ROW;
    if (reduce != RY_REDUCE_MERGE) return;
    const double kept = n_kept(p, cut), gone = p->tokens_in[cut] - p->tokens_out[cut];
    out->sizes = 1;
    out->macs = kept * gone * (p->dim / p->n_heads);
}

static uint32_t tiles_of(uint32_t n) { return (n + TILE - 1) / TILE; }

static uint32_t tiles(const ry_pruner *p, uint32_t cut, uint32_t n_tokens, uint32_t phase)
{
    const int merge = p->policy.cuts[cut].reduce == RY_REDUCE_MERGE;
    switch (phase) {
    case 0: return merge ? 1 + tiles_of(n_tokens) : 1;
    case 1: return merge ? tiles_of(n_tokens - p->tokens_out[cut]) : 0;
    case 2: return merge ? 1 : 0;
    default: return 0;
    }
}

/* Fills m->kept and m->taken, and marks who was rescued: chosen by Col-Ln after the class token
 * had chosen its share (the set R of Algorithm 2). */
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
        for (uint32_t j = v->n_prefix, g = 0; j < v->n_tokens; j++)
            if (out->target[j] == RY_NO_TOKEN) m->gone[g++] = j;
    }
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void work(ry_pruner *p, uint32_t cut, const ry_block_view *v, ry_cut *out, uint32_t phase,
                 uint32_t tile)
{
    memory m;
    (void)layout(p, ry_pruner_scratch(p, v->image), &m);
    if (phase == 0 && tile == 0) {
        decide(p, cut, &m, v, out);
    } else if (phase == 0) {
        const uint32_t from = (tile - 1) * TILE;
        ry_keys_fill(&m.keys, v, from, least(from + TILE, v->n_tokens));
    } else if (phase == 1) {
        const uint32_t from = tile * TILE, gone = v->n_tokens - out->n_out;
        ry_reduce_nearest(v, out, &m.keys, m.gone, from, least(from + TILE, gone));
    } else {
        ry_reduce_mean(v, out, m.floats);
    }
}

const ry_rule_body ry_rule_select = {needs, tiles, work, scratch};
