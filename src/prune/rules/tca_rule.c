/* tca_rule.c - Token Condensation (Wang et al. 2024, "Is Less More? Exploring Token Condensation as
 * Training-free Test-time Adaptation"): the best patches stay as they are, the next are merged
 * around four centres, the rest is fused into one row by its scores. Order of the new rows: prefix,
 * kept by score, centres, fused. The Col-Ln paper replaces the score.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/rng.h"
#include "kernels/rows/rows.h"
#include "prune/rules/metric.h"
#include "prune/rules/reduce.h"
#include "prune/rules/select.h"
#include "prune/rules/tca_centres.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- k-centres ------------------------------------------------------------------------------- */

static const float *row_of(const ry_centre_rows *r, uint32_t place)
{
    return r->x + r->list[place] * r->dim;
}

/* Assigns every row that is nearer to centre k than to the centres before it. */
static void claim(const ry_centre_rows *r, uint32_t k, uint32_t place, uint8_t *nearest,
                  float *distance)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const float far = ry_row_distance(row_of(r, i), row_of(r, place), r->dim);
        if (!(far < distance[i])) continue;
        distance[i] = far;
        nearest[i] = (uint8_t)k;
    }
}

static uint32_t farthest(const float *distance, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (distance[i] > distance[best]) best = i;
    return best;
}

void ry_centres_find(const ry_centre_rows *rows, uint32_t first, uint32_t count, uint32_t *centre,
                     uint8_t *nearest, float *distance)
{
    assert(first < rows->n);
    for (uint32_t i = 0; i < rows->n; i++) {
        distance[i] = INFINITY;
        nearest[i] = 0;
    }
    for (uint32_t k = 0; k < count; k++) {
        centre[k] = k ? farthest(distance, rows->n) : first;
        claim(rows, k, centre[k], nearest, distance);
    }
}

void ry_centres_weigh(float *weight, const float *distance, const uint8_t *nearest, uint32_t n,
                      uint32_t count)
{
    enum { MOST = 8 };
    double sum[MOST] = {0};
    assert(count <= MOST);
    (void)count;
    for (uint32_t i = 0; i < n; i++) {
        weight[i] = distance[i] > 0.0f ? 1.0f / distance[i] : 1.0f;
        sum[nearest[i]] += (double)weight[i];
    }
    for (uint32_t i = 0; i < n; i++) weight[i] = (float)((double)weight[i] / sum[nearest[i]]);
}

/* ---- the rule -------------------------------------------------------------------------------- */

/* One image's memory. N tokens enter the cut, P of them patches. */
typedef struct memory {
    uint64_t *radix;  /* [2P] */
    uint32_t *order;  /* [P] patches from the best to the worst; from the merge on: tokens */
    uint8_t *nearest; /* [P] of the merge set: its centre, 0 to 3 */
    float *share;     /* [P] and its weight there */
    float *weight;    /* [N] weights of the fused row */
} memory;

static size_t layout(const ry_pruner *p, void *base, memory *m)
{
    const size_t n = (size_t)p->shape.n_prefix + p->shape.n_patches; /* cuts only shrink it */
    ry_arena a = {base, 0, base ? p->scratch_each : 0, 0};
    m->radix = RY_TAKE(&a, 2 * n, uint64_t);
    m->order = RY_TAKE(&a, n, uint32_t);
    m->nearest = RY_TAKE(&a, n, uint8_t);
    m->share = RY_TAKE(&a, n, float);
    m->weight = RY_TAKE(&a, n, float);
    return a.overflow ? SIZE_MAX : a.used;
}

static size_t scratch(const ry_pruner *p)
{
    memory m;
    return layout(p, NULL, &m);
}

static ry_tca_split split_of(const ry_pruner *p, uint32_t cut)
{
    ry_tca_split s = {0};
    const uint32_t patches = p->tokens_in[cut] - p->shape.n_prefix;
    const int keeps = ry_policy_tca_split(&p->policy.cuts[cut], patches, &s);
    assert(keeps); /* the policy was checked against the model */
    (void)keeps;
    return s;
}

static void needs(const ry_pruner *p, uint32_t cut, ry_block_needs *out)
{
    ry_metric_needs(p, out);
    out->what |= RY_NEED_TOKENS; /* centres are chosen among the rows after attention */
    out->macs = (double)RY_TCA_CENTRES * split_of(p, cut).merge * p->dim;
}

static uint32_t tiles(const ry_pruner *p, uint32_t cut, uint32_t n_tokens, uint32_t phase)
{
    (void)p, (void)cut, (void)n_tokens;
    return phase == 0;
}

/* The index of the first centre in the merge set. */
static uint32_t first_centre(const ry_pruner *p, const ry_block_view *v, uint32_t n)
{
    if (p->policy.start == RY_START_BEST) return 0; /* it is sorted */
    ry_rng r = ry_metric_draw(p, v);
    return (uint32_t)(ry_rng_next(&r) % n);
}

/* The n tokens of `list` are merged into the rows of their centres, from `row` on. A duplicate
 * centre gets no tokens and becomes a zero row. */
static void merge(const ry_pruner *p, const memory *m, const ry_block_view *v, ry_cut *out,
                  const uint32_t *list, uint32_t n, uint32_t row)
{
    const ry_centre_rows rows = {v->x, v->dim, list, n};
    uint32_t centre[RY_TCA_CENTRES];

    ry_centres_find(&rows, first_centre(p, v, n), RY_TCA_CENTRES, centre, m->nearest, m->share);
    ry_centres_weigh(m->share, m->share, m->nearest, n, RY_TCA_CENTRES);
    for (uint32_t i = 0; i < n; i++) {
        out->target[list[i]] = row + m->nearest[i];
        out->weight[list[i]] = m->share[i];
    }
    for (uint32_t k = 0; k < RY_TCA_CENTRES; k++)
        out->source[row + k] = m->nearest[centre[k]] == k ? list[centre[k]] : RY_NO_TOKEN;
}

static void work(ry_pruner *p, uint32_t cut, const ry_block_view *v, ry_cut *out, uint32_t phase,
                 uint32_t tile)
{
    const ry_tca_split s = split_of(p, cut);
    const uint32_t first = v->n_prefix, n = v->n_tokens - first;
    memory m;

    (void)phase, (void)tile;
    (void)layout(p, ry_pruner_scratch(p, v->image), &m);
    memset(out->rescued, 0, v->n_tokens);
    ry_metric_score(p, v, out->score);
    ry_metric_weights(p, out->score, v->n_tokens, m.weight);
    ry_rank(m.order, out->score + first, n, m.radix);
    ry_reduce_drop(v, out, m.order, s.keep);
    for (uint32_t i = 0; i < s.merge; i++) m.order[s.keep + i] += first;
    merge(p, &m, v, out, m.order + s.keep, s.merge, first + s.keep);
    ry_reduce_fuse(v, out, m.weight);
}

const ry_rule_ops ry_rule_tca = {needs, tiles, work, scratch};
