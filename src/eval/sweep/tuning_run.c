/* tuning_run.c - renyi_tune_run: who is cheap enough, then the race, then the confirmation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/sweep/tuning.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"

#include <math.h>

enum { FIRST_ROUNDS = 5 };
#define MAC_DOUBT                                                                     \
    0.7 /* of the time that its MACs suggest a candidate may take: cut rows are idle, \
           and a smaller picture leaves more of the cache */

/* ---- where we are -------------------------------------------------------------------------- */

void ry_tune_stage(renyi_tune *t, renyi_tune_stage stage, size_t n_candidates, size_t images)
{
    t->now = (renyi_tune_progress){
        .stage = stage, .n_candidates = (uint32_t)n_candidates, .images = images};
}

renyi_status ry_tune_tell(renyi_tune *t, uint64_t done, renyi_error *err)
{
    t->now.done = done < t->now.total ? done : t->now.total;
    if (t->o.progress && t->o.progress(t->o.user, &t->now))
        return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    return RENYI_OK;
}

/* ---- costs --------------------------------------------------------------------------------- */

int ry_tune_is_cheap(const renyi_tune *t, const ry_candidate *c)
{
    switch (t->o.goal) {
    case RENYI_TUNE_MAX_DROP: return !(c->ratio >= 1.0);
    case RENYI_TUNE_TARGET_MS: return !(ry_tune_ms(t, c) > t->o.bound);
    case RENYI_TUNE_TARGET_GMACS: break;
    }
    return c->gmacs <= t->o.bound;
}

/* Before anything is timed but dense. */
static int may_be_cheap(const renyi_tune *t, const ry_candidate *c, double least)
{
    const double share = c->gmacs / t->candidates[0].gmacs;
    switch (t->o.goal) {
    case RENYI_TUNE_MAX_DROP: return share < 1.0;
    case RENYI_TUNE_TARGET_MS: /* the least is timed in any case: it may come nearest */
        return c->gmacs <= least || share * t->dense_ms * MAC_DOUBT <= t->o.bound;
    case RENYI_TUNE_TARGET_GMACS: break;
    }
    return ry_tune_is_cheap(t, c);
}

static void filter_by_macs(renyi_tune *t)
{
    double least = (double)INFINITY;
    for (size_t i = 1; i < t->count; i++) least = fmin(least, t->candidates[i].gmacs);
    t->n_alive = 0;
    for (size_t i = 1; i < t->count; i++) {
        ry_candidate *c = &t->candidates[i];
        if (c->fate == RENYI_TUNE_MISFIT) continue;
        if (may_be_cheap(t, c, least))
            t->alive[t->n_alive++] = (uint32_t)i;
        else
            c->fate = RENYI_TUNE_COSTLY;
    }
}

static void filter_by_time(renyi_tune *t)
{
    size_t left = 0;
    for (size_t i = 0; i < t->n_alive; i++) {
        ry_candidate *c = &t->candidates[t->alive[i]];
        if (ry_tune_is_cheap(t, c))
            t->alive[left++] = t->alive[i];
        else
            c->fate = RENYI_TUNE_COSTLY;
    }
    t->n_alive = left;
}

/* Who is worth a photo. With a bound of the cost dense may be, too. */
static renyi_status find_cheap(renyi_tune *t, renyi_error *err)
{
    if (t->o.goal == RENYI_TUNE_TARGET_MS) {
        ry_tune_stage(t, RENYI_TUNE_TIMING, 1, 0);
        RY_TRY(ry_tune_time(t, NULL, 0, FIRST_ROUNDS, err));
    }
    filter_by_macs(t);
    if (t->o.goal != RENYI_TUNE_TARGET_GMACS && t->n_alive) {
        ry_tune_stage(t, RENYI_TUNE_TIMING, t->n_alive, 0);
        RY_TRY(ry_tune_time(t, t->alive, t->n_alive, FIRST_ROUNDS, err));
        filter_by_time(t);
    }
    if (t->o.goal != RENYI_TUNE_MAX_DROP) {
        if (ry_tune_is_cheap(t, &t->candidates[0]))
            t->alive[t->n_alive++] = 0;
        else
            t->candidates[0].fate = RENYI_TUNE_COSTLY;
    }
    return RENYI_OK;
}

/* ---- running ------------------------------------------------------------------------------- */

/* How far a fate is from being chosen. */
static int fate_order(renyi_tune_fate fate)
{
    static const renyi_tune_fate order[] = {RENYI_TUNE_CHOSEN,   RENYI_TUNE_REFUTED,
                                            RENYI_TUNE_FINALIST, RENYI_TUNE_BEATEN,
                                            RENYI_TUNE_OPEN,     RENYI_TUNE_COSTLY};
    int i = 0;
    while (i < (int)(sizeof order / sizeof *order) && order[i] != fate) i++;
    return i;
}

static int is_before(const ry_candidate *x, const ry_candidate *y)
{
    const int a = fate_order(x->fate), b = fate_order(y->fate);
    if (a != b) return a < b;
    if (x->rungs != y->rungs) return x->rungs > y->rungs;
    if (x->rungs && x->score != y->score) return x->score > y->score;
    return x->place < y->place;
}

/* Dense stays first; indices of the result are turned to the new places. */
static void order_candidates(renyi_tune *t)
{
    const uint32_t nearest = t->candidates[t->result.nearest].place;
    for (size_t i = 2; i < t->count; i++) {
        const ry_candidate moved = t->candidates[i];
        size_t at = i;
        for (; at > 1 && is_before(&moved, &t->candidates[at - 1]); at--)
            t->candidates[at] = t->candidates[at - 1];
        t->candidates[at] = moved;
    }
    for (size_t i = 0; i < t->count; i++) {
        if (t->candidates[i].fate == RENYI_TUNE_CHOSEN) t->result.chosen = i;
        if (t->candidates[i].place == nearest) t->result.nearest = i;
    }
}

static renyi_status run_stages(renyi_tune *t, renyi_error *err)
{
    RY_TRY(find_cheap(t, err));
    RY_TRY(ry_tune_race(t, err));
    return ry_tune_confirm(t, err);
}

renyi_status renyi_tune_run(renyi_tune *t, renyi_error *err)
{
    if (!t) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tune_run: NULL argument");
    if (t->alive) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tune_run: it has run already");
    const double started = ry_clock();
    t->alive = ry_calloc(&t->al, t->count, sizeof *t->alive);
    if (!t->alive) return ry_fail_nomem(err, t->count * sizeof *t->alive);
    const renyi_status st = run_stages(t, err);
    order_candidates(t);
    t->result.seconds = ry_clock() - started;
    return st;
}
