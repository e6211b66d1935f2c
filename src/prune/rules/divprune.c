/* divprune.c - DivPrune (Alvar et al. 2025): the patches whose smallest distance to each other is
 * large, chosen one after the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/visual_rule.h"

#include <string.h>

/* near[j] = cosine of patch j to the one that is nearest to it. */
static void find_nearest(ry_visual_rule *a)
{
    for (uint32_t j = 0; j < a->n_patches; j++) a->near[j] = -2.0f;
    for (uint32_t i = 1; i < a->n_patches; i++)
        for (uint32_t j = 0; j < i; j++) {
            const float c = ry_visual_rule_cosine(a, i, j);
            if (c > a->near[i]) a->near[i] = c;
            if (c > a->near[j]) a->near[j] = c;
        }
}

/* The patch that is farthest from its nearest one; equal ones: the lower index. */
static uint32_t farthest(const ry_visual_rule *a)
{
    uint32_t best = RENYI_NONE;
    for (uint32_t j = 0; j < a->n_patches; j++)
        if (!a->taken[j] && (best == RENYI_NONE || a->near[j] < a->near[best])) best = j;
    return best;
}

/* Distances are 1 - cosine of projected rows. The first patch is the one whose nearest other is
 * farthest; every next one is the one whose nearest chosen is farthest. */
static void choose(ry_visual_rule *a, const ry_visual_rule_view *v)
{
    const uint32_t P = a->n_patches, n = ry_policy_visual_count(&a->policy, P);
    (void)v;
    find_nearest(a);
    for (uint32_t j = 0; j < P; j++) a->score[j] = 1.0f - a->near[j];
    memset(a->taken, 0, P);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t next = farthest(a);
        a->taken[next] = 1;
        for (uint32_t j = 0; j < P; j++) {
            const float c = ry_visual_rule_cosine(a, next, j);
            if (!k || c > a->near[j]) a->near[j] = c;
        }
    }
    ry_visual_rule_keep_taken(a);
}

const ry_visual_ops ry_visual_divprune = {
    .reads = RY_READS_PROJECTED, .pairs = RY_PAIRS_PROJECTED, .has_scores = 1, .choose = choose};
