/* tuning_race.c - successive halving: many candidates see few photos, few see all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/sweep/tuning.h"

#include "base/status.h"

enum {
    FACTOR = 3,        /* a third goes on, to three times the photos: every rung costs the same */
    FIRST_PHOTOS = 24, /* fewer tell nothing */
    MIN_LEFT = 4       /* so many always go on: one of them may fail to be confirmed */
};
#define HOPELESS 0.01 /* chance of keeping the bound below which nobody goes on */

uint32_t ry_tune_rungs(size_t n_candidates, size_t n_photos, size_t ends[RY_TUNE_MAX_RUNGS])
{
    size_t divisor = 1;
    uint32_t n = 1;
    while (n < RY_TUNE_MAX_RUNGS && n_candidates > MIN_LEFT &&
           n_photos / (divisor * FACTOR) >= FIRST_PHOTOS) {
        n_candidates = n_candidates / FACTOR + (n_candidates % FACTOR != 0);
        divisor *= FACTOR;
        n++;
    }
    for (uint32_t i = 0; i < n; i++, divisor /= FACTOR) ends[i] = n_photos / divisor;
    return n;
}

static int is_hopeless(const renyi_tune *t, const ry_candidate *c)
{
    return t->o.goal == RENYI_TUNE_MAX_DROP && (c->chance < HOPELESS || c->score <= 0.0);
}

/* The better third of t->alive, which is sorted, without those that have no hope. */
static void cut(renyi_tune *t)
{
    const size_t third = (t->n_alive + FACTOR - 1) / FACTOR;
    const size_t most = third > MIN_LEFT ? third : MIN_LEFT;
    size_t left = 0;
    for (size_t i = 0; i < t->n_alive; i++) {
        ry_candidate *c = &t->candidates[t->alive[i]];
        if (i < most && !is_hopeless(t, c))
            t->alive[left++] = t->alive[i];
        else
            c->fate = RENYI_TUNE_BEATEN;
    }
    t->n_alive = left;
}

renyi_status ry_tune_race(renyi_tune *t, renyi_error *err)
{
    size_t ends[RY_TUNE_MAX_RUNGS], from = 0;
    const uint32_t n = ry_tune_rungs(t->n_alive, t->n_search, ends);
    for (uint32_t r = 0; r < n && t->n_alive; r++) {
        ry_tune_stage(t, RENYI_TUNE_RUNG, t->n_alive, ends[r]);
        t->now.rung = r + 1;
        t->now.n_rungs = n;
        RY_TRY(ry_tune_judge(t, t->alive, t->n_alive, from, ends[r], err));
        from = ends[r];
        for (size_t i = 0; i < t->n_alive; i++) t->candidates[t->alive[i]].rungs++;
        ry_tune_weigh(t, t->alive, t->n_alive);
        ry_tune_rank(t, t->alive, t->n_alive);
        if (r + 1 < n) cut(t);
    }
    for (size_t i = 0; i < t->n_alive; i++) t->candidates[t->alive[i]].fate = RENYI_TUNE_FINALIST;
    return RENYI_OK;
}
