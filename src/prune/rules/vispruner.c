/* vispruner.c - VisPruner (Zhang et al. 2024) as in its published code: keeps the important
 * tokens, and of the others the least similar ones, by removing duplicates in rounds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/select.h"
#include "prune/rules/visual_rule.h"

/* The tokens not taken yet, by score (with metric=correct the class token's) or by position. */
static uint32_t list_residual(ry_visual_rule *a)
{
    const uint32_t *order = a->policy.metric == RY_METRIC_CORRECT ? a->class_order : a->order;
    uint32_t n = 0;
    for (uint32_t k = 0; k < a->n_patches; k++) {
        const uint32_t j = a->policy.residual == RY_ORDER_POSITION ? k : order[k];
        if (!a->taken[j]) a->list[n++] = j;
    }
    return n;
}

/* Largest cosine of the token at an even position with one at an odd position. */
static float similarity(const ry_visual_rule *a, uint32_t place, uint32_t n)
{
    float most = -2.0f;
    for (uint32_t b = 1; b < n; b += 2) {
        const float c = ry_visual_rule_cosine(a, a->list[place], a->list[b]);
        if (c > most) most = c;
    }
    return most;
}

/* One round: removes the `remove` tokens at even positions that are most similar to one at an
 * odd position. The other even ones come first, by similarity, then the odd ones in their order.
 * n >= 2; returns how many are left. */
static uint32_t remove_duplicates(ry_visual_rule *a, uint32_t n, uint32_t remove)
{
    const uint32_t even = (n + 1) / 2;
    const ry_visual_scratch *h = &a->scratch[0];
    uint32_t left = 0;
    for (uint32_t i = 0; i < even; i++) h->near[i] = similarity(a, 2 * i, n);
    ry_rank(h->order, h->near, even, h->rank);
    for (uint32_t k = remove; k < even; k++) a->next[left++] = a->list[2 * h->order[k]];
    for (uint32_t b = 1; b < n; b += 2) a->next[left++] = a->list[b];
    uint32_t *const swap = a->list;
    a->list = a->next;
    a->next = swap;
    return left;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void choose(ry_visual_rule *a, const ry_visual_rule_view *v)
{
    const ry_policy *p = &a->policy;
    const uint32_t total = ry_policy_visual_count(p, a->n_patches);
    const uint32_t important = (uint32_t)((double)total * p->important);
    const uint32_t diverse = total - important;
    ry_visual_rule_score(a, v->class_row, v->columns, 1.0);
    ry_visual_rule_choose(a, important);
    uint32_t n = list_residual(a);
    while (diverse && n > diverse)
        n = remove_duplicates(a, n, least(least(p->round, n - diverse), (n + 1) / 2));
    for (uint32_t k = 0; k < diverse; k++) a->taken[a->list[k]] = 1;
    ry_visual_rule_keep_taken(a);
}

const ry_visual_ops ry_visual_vispruner = {
    .reads = RY_READS_SCORES, .pairs = RY_PAIRS_FEATURES, .has_scores = 1, .choose = choose};
