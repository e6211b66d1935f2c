/* hiprune.c - HiPrune (Liu et al. 2025) as in its published code: anchors by the attention of a
 * middle block, their neighbours on the grid, and for the rest the best by the last block.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/visual_rule.h"

#include <math.h>
#include <string.h>

enum { CROSS = 5 }; /* an anchor and its four neighbours */

/* As many anchors as fit with all their neighbours. */
static uint32_t anchor_count(const ry_visual_rule *a, uint32_t n)
{
    const uint32_t want = (uint32_t)nearbyint(n * a->policy.anchors / (double)CROSS);
    return want < n / CROSS ? want : n / CROSS;
}

/* A neighbour is the patch one place before or after in raster order, or one row; beyond the first
 * and the last patch these stand in, as in the published code. */
static void take_cross(ry_visual_rule *a, uint32_t anchor)
{
    const int64_t g = a->grid, step[CROSS] = {0, -1, 1, -g, g}, last = (int64_t)a->n_patches - 1;
    for (int i = 0; i < CROSS; i++) {
        const int64_t j = (int64_t)anchor + step[i];
        a->taken[j < 0 ? 0 : j > last ? last : j] = 1;
    }
}

/* The first `count` of `order` that are not taken yet. */
static void take_best(ry_visual_rule *a, const uint32_t *order, uint32_t count)
{
    for (uint32_t k = 0; count && k < a->n_patches; k++) {
        if (a->taken[order[k]]) continue;
        a->taken[order[k]] = 1;
        count--;
    }
}

static void choose(ry_visual_rule *a, const ry_visual_rule_view *v)
{
    const uint32_t P = a->n_patches, n = ry_policy_visual_count(&a->policy, P);
    const uint32_t anchors = anchor_count(a, n);
    uint32_t left = n, by_class, by_column;
    ry_visual_rule_score(a, v->early_class_row, v->early_columns, 1.0);
    ry_visual_rule_choose(a, anchors);
    memset(a->taken, 0, P);
    for (uint32_t i = 0; i < anchors; i++) take_cross(a, a->kept[i]);
    for (uint32_t j = 0; j < P; j++) left -= a->taken[j];
    ry_visual_rule_score(a, v->class_row, v->columns, 1.0);
    ry_policy_split(&a->policy, left, &by_class, &by_column);
    if (a->policy.metric == RY_METRIC_CORRECT) take_best(a, a->class_order, by_class);
    take_best(a, a->order, a->policy.metric == RY_METRIC_CORRECT ? by_column : left);
    ry_visual_rule_keep_taken(a);
}

const ry_visual_ops ry_visual_hiprune = {
    .reads = RY_READS_SCORES | RY_READS_EARLY, .has_scores = 1, .choose = choose};
