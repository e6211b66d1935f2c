/* mosaic_behind.c - the merge of mosaic behind the tower: patches that are important and unlike all
 * more important ones stay, every other patch is merged into the one it is most similar to. What
 * mosaic does inside a tower besides (thinning the grid, sizes in later attention, memory of
 * earlier cuts) has no place here: there is one cut, and the language model knows no sizes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "prune/rules/select.h"
#include "prune/rules/visual_rule.h"

#include <math.h>
#include <string.h>

/* near[j] = the largest cosine of patch j with a more important one; -2 for the most important. */
static void find_overlaps(ry_visual_rule *a)
{
    for (uint32_t r = 0; r < a->n_patches; r++) {
        float most = -2.0f;
        for (uint32_t k = 0; k < r; k++) {
            const float c = ry_visual_rule_cosine(a, a->order[r], a->order[k]);
            if (c > most) most = c;
        }
        a->near[a->order[r]] = most;
    }
}

/* next[j] = the row that patch j is merged into; of equally similar ones the better choice.
 * ranked: the kept patches, the best first; place: [P] the row of a kept patch. */
static void find_rows(ry_visual_rule *a, const uint32_t *ranked, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) a->next[a->kept[i]] = i;
    for (uint32_t j = 0; j < a->n_patches; j++) {
        if (a->taken[j]) continue;
        uint32_t best = ranked[0];
        for (uint32_t i = 1; i < n; i++)
            if (ry_visual_rule_cosine(a, j, ranked[i]) > ry_visual_rule_cosine(a, j, best))
                best = ranked[i];
        a->next[j] = a->next[best];
    }
}

/* The weight of a patch in a merge: importance^omega. */
static void choose(ry_visual_rule *a, const ry_visual_rule_view *v)
{
    const ry_policy *p = &a->policy;
    const uint32_t P = a->n_patches, n = ry_policy_visual_count(p, P);
    ry_visual_rule_score(a, v->class_row, v->columns, 1.0);
    find_overlaps(a);
    for (uint32_t j = 0; j < P; j++) {
        const double important = (double)a->score[j], far = 1.0 - (double)a->near[j];
        a->weight[j] = p->omega == 0.0 ? 1.0f : (float)pow(important + 1e-9, p->omega);
        a->score[j] = (float)(pow(important, p->alpha) * fmax(far, 1e-6));
    }
    ry_rank(a->order, a->score, P, a->rank);
    ry_select_correct(a->list, a->taken, NULL, 0, a->order, n, P);
    ry_visual_rule_keep_taken(a);
    find_rows(a, a->list, n);
}

/* The weighted mean of the members, as long as their mean or their longest. */
static void make_row(const ry_visual_rule *a, const ry_visual_rule_view *v, float *row, uint32_t i,
                     const ry_visual_scratch *h)
{
    const size_t C = a->dim;
    double weights = 0.0, lengths = 0.0, longest = 0.0;
    uint32_t count = 0;
    (void)h;
    for (uint32_t j = 0; j < a->n_patches; j++) {
        if (a->next[j] != i) continue;
        const double length = (double)ry_row_length(v->x + j * C, C);
        weights += (double)a->weight[j];
        lengths += length;
        longest = fmax(longest, length);
        count++;
    }
    if (count == 1) { /* exactly the patch itself */
        memcpy(row, v->x + a->kept[i] * C, C * sizeof *row);
        return;
    }
    memset(row, 0, C * sizeof *row);
    for (uint32_t j = 0; j < a->n_patches; j++)
        if (a->next[j] == i)
            ry_row_add(row, v->x + j * C, (float)((double)a->weight[j] / weights), C);
    ry_row_to_length(row, C, a->policy.longest ? longest : lengths / count);
}

const ry_visual_ops ry_visual_mosaic = {.reads = RY_READS_SCORES,
                                        .pairs = RY_PAIRS_CENTRED,
                                        .has_scores = 1,
                                        .choose = choose,
                                        .row = make_row};
