/* prumerge.c - PruMerge (Shang et al. 2024) as in its published code: keeps the best tokens,
 * merges into each its nearest ones by the cosine of keys, and fuses the rest into one more
 * token.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "prune/rules/select.h"
#include "prune/rules/visual_rule.h"

#include <math.h>
#include <string.h>

/* ---- which stay ---------------------------------------------------------------------------- */

/* Quantile of the scores, interpolated. */
static double quantile(const ry_visual_rule *a, double share)
{
    const uint32_t P = a->n_patches;
    const double place = share * (double)(P - 1);
    const uint32_t low = (uint32_t)floor(place), high = low + 1 < P ? low + 1 : low;
    const double x = (double)a->score[a->order[P - 1 - low]]; /* order goes down */
    const double y = (double)a->score[a->order[P - 1 - high]];
    return x + (y - x) * (place - (double)low);
}

/* Outliers: scores more than 1.5 interquartile ranges above the upper quartile. */
static uint32_t outliers(const ry_visual_rule *a)
{
    const double q1 = quantile(a, 0.25), q3 = quantile(a, 0.75), above = q3 + 1.5 * (q3 - q1);
    uint32_t n = 0;
    for (uint32_t j = 0; j < a->n_patches; j++) n += (double)a->score[j] > above;
    return n;
}

/* PruMerge+: adds patches at equal distances; the last patch is never one of them. */
static void add_spaced(ry_visual_rule *a, uint32_t stride)
{
    for (uint32_t j = 0; stride && j + 1 < a->n_patches; j += stride) {
        if (a->taken[j]) continue;
        a->taken[j] = 1;
        a->kept[a->n_kept++] = j;
    }
}

/* Column norms are divided by their sum over all tokens, class token included. */
static void score(ry_visual_rule *a, const ry_visual_rule_view *v)
{
    const ry_metric m = a->policy.metric;
    const uint32_t P = a->n_patches;
    double sum = (double)v->class_column + 1e-6;
    for (uint32_t j = 0; m != RY_METRIC_CLS && j < P; j++) sum += (double)v->columns[j];
    ry_visual_rule_score(a, v->class_row, v->columns, sum);
    memcpy(a->weight, m == RY_METRIC_COL ? a->score : v->class_row, P * sizeof *a->weight);
}

static void choose(ry_visual_rule *a, const ry_visual_rule_view *v)
{
    const ry_policy *p = &a->policy;
    const uint32_t P = a->n_patches;
    score(a, v);
    const int adaptive = p->budget == RY_BUDGET_ADAPTIVE;
    const uint32_t n = adaptive ? outliers(a) : ry_policy_visual_count(p, P);
    /* via the share and back, as in the published code: this may lose one */
    ry_visual_rule_choose(a, adaptive ? (uint32_t)((double)P * ((double)n / (double)P)) : n);
    if (p->plus) add_spaced(a, ry_policy_plus_stride(n, P));
    a->n_rows = a->n_kept;
    if (a->n_kept < P) a->kept[a->n_rows++] = RENYI_NONE;
}

/* ---- what they become ---------------------------------------------------------------------- */

/* All tokens but `self`: the other kept ones in their order, then the rest. Returns how many. */
static uint32_t list_others(const ry_visual_rule *a, uint32_t self, uint32_t *list)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < a->n_kept; k++)
        if (a->kept[k] != self) list[n++] = a->kept[k];
    for (uint32_t j = 0; j < a->n_patches; j++)
        if (!a->taken[j]) list[n++] = j;
    return n;
}

static void make_row(const ry_visual_rule *a, const ry_visual_rule_view *v, float *row, uint32_t i,
                     const ry_visual_scratch *h)
{
    const size_t C = a->dim;
    const uint32_t self = a->kept[i];
    if (self == RENYI_NONE) { /* all that were not kept */
        memset(row, 0, C * sizeof *row);
        for (uint32_t j = 0; j < a->n_patches; j++)
            if (!a->taken[j]) ry_row_add(row, v->x + j * C, a->weight[j], C);
        return;
    }
    const uint32_t n = list_others(a, self, h->list);
    const uint32_t most = a->policy.neighbours < n ? a->policy.neighbours : n;
    for (uint32_t k = 0; k < n; k++) h->near[k] = ry_visual_rule_cosine(a, self, h->list[k]);
    ry_rank(h->order, h->near, n, h->rank);
    memcpy(row, v->x + self * C, C * sizeof *row);
    for (uint32_t k = 0; k < most; k++) {
        const uint32_t j = h->list[h->order[k]];
        ry_row_add(row, v->x + j * C, a->weight[j], C); /* a sum, not a mean, as in the published
                                                         * code */
    }
}

const ry_visual_ops ry_visual_prumerge = {.reads = RY_READS_SCORES | RY_READS_BEHIND,
                                          .pairs = RY_PAIRS_KEYS,
                                          .has_scores = 1,
                                          .choose = choose,
                                          .row = make_row};
