/* tuning_score.c - from what candidates answered to who goes on.
 *
 * Few photos tell little about a loss: of 30 photos a policy that loses two points answers perhaps
 * five otherwise than dense, and whether three of those were right before is luck. But how often it
 * answers otherwise is known much better, and what such a photo costs is much the same for all
 * candidates. So a loss is estimated as
 *
 *   (share answered otherwise) x (what one of those costs)
 *
 * where the second factor is the candidate's own mean, drawn towards the mean of all candidates by
 * as many photos as PRIOR says. With many photos its own labels decide.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/tuning.h"

#include <math.h>

#define PRIOR 8.0      /* photos that the mean of all candidates stands for */
#define USUAL_COST 0.5 /* before anything is known: half of what changes was right */
#define MIN_VARIANCE 0.02
#define HALF_PHOTO 0.5 /* Jeffreys: nothing seen in n photos is not never */

ry_pooled ry_tune_pool(const ry_candidate *candidates, const uint32_t *list, size_t n)
{
    double sum = PRIOR * USUAL_COST, squares = PRIOR * USUAL_COST, other = PRIOR;
    for (size_t i = 0; i < n; i++) {
        const ry_tally *t = &candidates[list[i]].search;
        sum += (double)t->only_dense - (double)t->only_it;
        squares += (double)t->only_dense + (double)t->only_it;
        other += (double)t->other;
    }
    const double cost = sum / other;
    return (ry_pooled){cost, fmax(MIN_VARIANCE, squares / other - cost * cost)};
}

void ry_tune_estimate(const ry_tally *t, const ry_pooled *pooled, double *mean, double *deviation)
{
    const double n = (double)t->n + 2 * HALF_PHOTO, other = (double)t->other + HALF_PHOTO;
    const double share = other / n, weight = (double)t->other + PRIOR;
    const double cost =
        ((double)t->only_dense - (double)t->only_it + PRIOR * pooled->cost) / weight;
    const double share_variance = share * (1 - share) / n;
    const double cost_variance = pooled->variance / weight;
    *mean = 100 * share * cost;
    *deviation = 100 * sqrt(cost * cost * share_variance + share * share * cost_variance);
}

double ry_tune_drop(const ry_tally *t)
{
    return t->n ? 100 * ((double)t->only_dense - (double)t->only_it) / (double)t->n : (double)NAN;
}

/* That a normal number is below `bound`. */
static double chance_below(double bound, double mean, double deviation)
{
    return 0.5 * erfc((mean - bound) / (deviation * sqrt(2.0)));
}

void ry_tune_weigh(renyi_tune *t, const uint32_t *list, size_t n)
{
    const ry_pooled pooled = ry_tune_pool(t->candidates, list, n);
    for (size_t i = 0; i < n; i++) {
        ry_candidate *c = &t->candidates[list[i]];
        double deviation = 0.0;
        c->estimate = 0.0; /* of dense, by definition */
        c->chance = t->o.goal == RENYI_TUNE_MAX_DROP ? 1.0 : (double)NAN;
        if (list[i] == 0) continue;
        ry_tune_estimate(&c->search, &pooled, &c->estimate, &deviation);
        if (t->o.goal == RENYI_TUNE_MAX_DROP)
            c->chance = chance_below(t->o.bound, c->estimate, deviation);
    }
}

/* Larger scores first, then fewer MACs, then as they were listed. */
static int is_before(const ry_candidate *x, const ry_candidate *y)
{
    if (x->score != y->score) return x->score > y->score;
    if (x->gmacs != y->gmacs) return x->gmacs < y->gmacs;
    return x->place < y->place;
}

/* A bound of the loss: the time that may be expected to be saved, as a share of dense's. A bound of
 * the cost: the less is lost the better. */
void ry_tune_rank(renyi_tune *t, uint32_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ry_candidate *c = &t->candidates[list[i]];
        c->score = t->o.goal == RENYI_TUNE_MAX_DROP ? (1.0 - c->ratio) * c->chance : -c->estimate;
    }
    for (size_t i = 1; i < n; i++) { /* by insertion: thousands at most */
        const uint32_t moved = list[i];
        size_t at = i;
        for (; at && is_before(&t->candidates[moved], &t->candidates[list[at - 1]]); at--)
            list[at] = list[at - 1];
        list[at] = moved;
    }
}
