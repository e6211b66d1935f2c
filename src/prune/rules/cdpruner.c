/* cdpruner.c - CDPruner (Zhang et al. 2025): the patches that are diverse and relevant to the
 * question, as the most probable set of a determinantal point process, chosen one after the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/select.h"
#include "prune/rules/visual_rule.h"

#include <math.h>
#include <string.h>

/* Below this share of the most that was new at first, what is new in a patch is rounding. */
#define NOTHING_NEW 1e-6

/* Scores to 0..1, plus 1e-6 / range so that none is 0; equal scores all become 1. */
static void scale_scores(ry_visual_rule *a)
{
    float low = a->score[a->order[a->n_patches - 1]], high = a->score[a->order[0]];
    for (uint32_t j = 0; j < a->n_patches; j++)
        a->score[j] = high > low ? (a->score[j] - low + 1e-6f) / (high - low) : 1.0f;
}

static uint32_t most_new(const ry_visual_rule *a)
{
    uint32_t best = RENYI_NONE;
    for (uint32_t j = 0; j < a->n_patches; j++)
        if (!a->taken[j] && (best == RENYI_NONE || a->spread[j] > a->spread[best])) best = j;
    return best;
}

/* Patch j is chosen as number k: its row of the Cholesky factor of the kernel q_i cos_ij q_j, and
 * what is left that is new in every other patch. */
static void add_factor(ry_visual_rule *a, uint32_t k, uint32_t j)
{
    const uint32_t P = a->n_patches;
    double *row = a->factors + (size_t)k * P;
    const double root = sqrt(a->spread[j]), q = (double)a->score[j];
    for (uint32_t i = 0; i < P; i++)
        row[i] = i == j ? q * q : q * (double)ry_visual_rule_cosine(a, i, j) * (double)a->score[i];
    for (uint32_t t = 0; t < k; t++) {
        const double *other = a->factors + (size_t)t * P, f = other[j];
        for (uint32_t i = 0; i < P; i++) row[i] -= f * other[i];
    }
    for (uint32_t i = 0; i < P; i++) {
        row[i] /= root;
        a->spread[i] -= row[i] * row[i];
    }
}

static void choose(ry_visual_rule *a, const ry_visual_rule_view *v)
{
    const uint32_t P = a->n_patches, n = ry_policy_visual_count(&a->policy, P);
    const float *by = a->policy.metric == RY_METRIC_TEXT ? v->relevance : v->columns;
    uint32_t k = 0;
    ry_visual_rule_score(a, v->class_row, by, 1.0);
    scale_scores(a);
    memset(a->taken, 0, P);
    for (uint32_t j = 0; j < P; j++) a->spread[j] = (double)a->score[j] * (double)a->score[j];
    const double least = NOTHING_NEW * a->spread[a->order[0]];
    for (uint32_t j; k < n && a->spread[j = most_new(a)] > least; k++) {
        add_factor(a, k, j);
        a->taken[j] = 1;
    }
    for (uint32_t i = 0; k < n; i++) { /* nothing new is left: the best of the others */
        k += !a->taken[a->order[i]];
        a->taken[a->order[i]] = 1;
    }
    ry_visual_rule_keep_taken(a);
}

static double macs(const ry_visual_rule *a)
{
    const double K = a->n_factors;
    return 0.5 * K * K * a->n_patches;
}

const ry_visual_ops ry_visual_cdpruner = {.reads = RY_READS_SCORES | RY_READS_PROJECTED,
                                          .pairs = RY_PAIRS_PROJECTED,
                                          .has_scores = 1,
                                          .choose = choose,
                                          .macs = macs};
