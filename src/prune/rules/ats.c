/* ats.c - Adaptive Token Sampling (Fayyaz et al. 2022), a baseline: the tokens that equal steps of
 * the scores' cumulative distribution fall on. Where few tokens hold most of the score, many steps
 * fall on the same one, so an easy image keeps fewer tokens; never more than the budget.
 *
 * Score of a patch: class attention (head mean) times the length of its value vector (all heads),
 * as a share of all patches. Scores that are not finite or not positive count as 0.
 *
 * levels=budget, ours: as in its paper, the budget is the number of steps. An image of which no
 * more tokens arrive than the budget allows keeps them all. levels=196, its published code: always
 * as many steps as an image of 224 pixels has patches, however many tokens arrive. The budget only
 * limits the result, to the best of the tokens that were hit; published is keep=1 (its code runs
 * with no other budget).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "kernels/rows/rows.h"
#include "prune/rules/reduce.h"
#include "prune/rules/rule.h"
#include "prune/rules/select.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* One image's memory; M patches. */
typedef struct memory {
    uint64_t *radix; /* [2M] */
    uint32_t *order; /* [M] best first */
    uint32_t *kept;  /* [M] */
    uint8_t *taken;  /* [M] */
    double *sum;     /* [M] cumulative scores */
} memory;

static size_t layout(const ry_pruner *p, void *base, memory *m)
{
    const size_t n = p->shape.n_patches;
    ry_arena a = {base, 0, base ? p->scratch_each : 0, 0};
    m->radix = RY_TAKE(&a, 2 * n, uint64_t);
    m->order = RY_TAKE(&a, n, uint32_t);
    m->kept = RY_TAKE(&a, n, uint32_t);
    m->taken = RY_TAKE(&a, n, uint8_t);
    m->sum = RY_TAKE(&a, n, double);
    return a.overflow ? SIZE_MAX : a.used;
}

static size_t scratch(const ry_pruner *p)
{
    memory m;
    return layout(p, NULL, &m);
}

static void needs(const ry_pruner *p, uint32_t cut, ry_block_needs *out)
{
    out->what = ry_pruner_row_need(p);
    out->drops = 1;
    out->adaptive = 1;
    out->macs = (double)p->tokens_in[cut] * p->dim; /* lengths of the values */
}

static uint32_t tiles(const ry_pruner *p, uint32_t cut, uint32_t n_tokens, uint32_t phase)
{
    (void)p;
    (void)cut;
    (void)n_tokens;
    return phase == 0;
}

/* score: [N] shares of the patches, 0 for the prefix */
static void fill_scores(const ry_block_view *v, float *score)
{
    double sum = 0.0;
    memset(score, 0, v->n_prefix * sizeof *score);
    for (uint32_t j = v->n_prefix; j < v->n_tokens; j++) {
        const float *value = v->qkv + j * v->qkv_row + 2 * (size_t)v->dim;
        const float s = v->class_row[j] * ry_row_length(value, v->dim);
        score[j] = s > 0.0f && s <= FLT_MAX ? s : 0.0f;
        sum += (double)score[j];
    }
    for (uint32_t j = v->n_prefix; sum > 0.0 && j < v->n_tokens; j++)
        score[j] = (float)((double)score[j] / sum);
}

/* m->taken of the patches that `steps` levels choose, given shares of the score [n]; without any
 * score the first `most`. */
static void sample(const memory *m, const float *share, uint32_t n, uint32_t steps, uint32_t most)
{
    double total = 0.0, *const sum = m->sum;
    memset(m->taken, 0, n);
    ry_rank(m->order, share, n, m->radix);
    for (uint32_t i = 0; i < n; i++) sum[i] = total += (double)share[m->order[n - 1 - i]];
    const double least = sum[0], span = total - least;
    if (!(span > 0.0)) { /* no positive score: by position */
        for (uint32_t i = 0; i < most; i++) m->taken[m->order[i]] = 1;
        return;
    }
    for (uint32_t i = 0; i < n; i++) sum[i] = (sum[i] - least) / span;

    uint32_t at = 0;
    while (sum[at] == 0.0) at++; /* from here on every share is positive: the sums rise */
    const double step = steps > 1 ? (1.0 - sum[at]) / (steps - 1) : 0.0;
    for (uint32_t k = 0; k < steps; k++) {
        const double level = 1.0 - step * (steps - 1 - k);
        while (at + 1 < n && fabs(sum[at + 1] - level) < fabs(sum[at] - level)) at++;
        m->taken[m->order[n - 1 - at]] = 1;
    }
}

/* Leaves the best `most` of the taken; returns how many are left. */
static uint32_t limit(const memory *m, uint32_t n, uint32_t most)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *taken = &m->taken[m->order[i]];
        if (kept == most) *taken = 0;
        kept += *taken;
    }
    return kept;
}

static void work(ry_pruner *p, uint32_t cut, const ry_block_view *v, ry_cut *out, uint32_t phase,
                 uint32_t tile)
{
    const uint32_t n = v->n_tokens - v->n_prefix;
    const uint32_t budget = ry_policy_tokens_after(&p->policy, cut, v->n_tokens, v->n_prefix);
    const uint32_t most = budget - v->n_prefix, levels = p->policy.levels;
    uint32_t kept = n;
    memory m;
    (void)phase;
    (void)tile;
    (void)layout(p, ry_pruner_scratch(p, v->image), &m);
    memset(out->rescued, 0, v->n_tokens);
    fill_scores(v, out->score);
    if (budget < v->n_tokens) {
        sample(&m, out->score + v->n_prefix, n, levels ? levels : most, most);
        kept = limit(&m, n, most);
    } else {
        memset(m.taken, 1, n);
    }
    ry_select_ascending(m.kept, m.taken, n);
    out->n_out = v->n_prefix + kept;
    ry_reduce_drop(v, out, m.kept, kept);
}

const ry_rule_ops ry_rule_ats = {needs, tiles, work, scratch};
