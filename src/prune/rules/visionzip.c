/* visionzip.c - VisionZip (Yang et al. 2024) as in its published code: the class token, the patches
 * with the best scores, and a few rows into which the other patches are merged.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "prune/rules/select.h"
#include "prune/rules/visual_rule.h"

#include <string.h>

/* Rows that merge others; the class token and the dominant patches are the rest of the budget. */
static uint32_t contextual_rows(const ry_visual_rule *a)
{
    const ry_policy *p = &a->policy;
    const uint32_t n = ry_policy_visual_count(p, a->n_patches);
    const uint32_t most = n - (p->class_token != 0), want = (uint32_t)(n * p->contextual);
    return want < most ? want : most;
}

/* The row, from 0, of the target with the keys nearest to those of patch j; equal ones: the
 * earlier. targets: [n] patches. */
static uint32_t nearest_target(const ry_visual_rule *a, const uint32_t *targets, uint32_t n,
                               uint32_t j)
{
    uint32_t best = 0;
    for (uint32_t t = 1; t < n; t++)
        if (ry_visual_rule_cosine(a, j, targets[t]) > ry_visual_rule_cosine(a, j, targets[best]))
            best = t;
    return best;
}

/* Of the patches that are left, every step-th is a target; next[j] is the target row that patch j
 * joins, RENYI_NONE for patches that are rows themselves. */
static void find_targets(ry_visual_rule *a, uint32_t *targets, uint32_t n)
{
    uint32_t left = 0;
    for (uint32_t j = 0; j < a->n_patches; j++) {
        a->next[j] = RENYI_NONE;
        if (!a->taken[j]) a->list[left++] = j;
    }
    const uint32_t step = n && left / n > 1 ? left / n : 1;
    for (uint32_t t = 0; t < n; t++) targets[t] = a->list[t * step];
    for (uint32_t i = 0; n && i < left; i++)
        if (i % step || i / step >= n)
            a->next[a->list[i]] = nearest_target(a, targets, n, a->list[i]);
}

static void choose(ry_visual_rule *a, const ry_visual_rule_view *v)
{
    const uint32_t n = ry_policy_visual_count(&a->policy, a->n_patches);
    const uint32_t first = a->policy.class_token != 0, contextual = contextual_rows(a);
    const uint32_t dominant = n - first - contextual;
    ry_visual_rule_score(a, v->class_row, v->columns, 1.0);
    ry_visual_rule_choose(a, dominant);
    if (first) a->kept[0] = RENYI_NONE;
    ry_select_ascending(a->kept + first, a->taken, a->n_patches);
    find_targets(a, a->kept + first + dominant, contextual);
    a->n_kept = dominant + contextual;
    a->n_rows = n;
}

/* A target plus the mean of the patches that join it. */
static void merge(const ry_visual_rule *a, const ry_visual_rule_view *v, float *row, uint32_t i,
                  uint32_t target)
{
    const size_t C = a->dim;
    const float *x = v->x + a->kept[i] * C;
    uint32_t count = 0;
    memset(row, 0, C * sizeof *row);
    for (uint32_t j = 0; j < a->n_patches; j++) {
        if (a->next[j] != target) continue;
        ry_row_add(row, v->x + j * C, 1.0f, C);
        count++;
    }
    for (size_t k = 0; k < C; k++) row[k] = x[k] + (count ? row[k] / (float)count : 0.0f);
}

static void make_row(const ry_visual_rule *a, const ry_visual_rule_view *v, float *row, uint32_t i,
                     const ry_visual_scratch *h)
{
    const size_t C = a->dim;
    const uint32_t merged = a->n_rows - contextual_rows(a); /* rows before the merged ones */
    (void)h;
    if (i >= merged)
        merge(a, v, row, i, i - merged);
    else /* the class token's row is before those of the patches */
        memcpy(row, a->kept[i] == RENYI_NONE ? v->x - C : v->x + a->kept[i] * C, C * sizeof *row);
}

const ry_visual_ops ry_visual_visionzip = {.reads = RY_READS_SCORES | RY_READS_KEYS,
                                           .pairs = RY_PAIRS_KEYS,
                                           .has_scores = 1,
                                           .choose = choose,
                                           .row = make_row};
