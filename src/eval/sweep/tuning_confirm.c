/* tuning_confirm.c - the best of the race, timed again and tried on photos that it never saw.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "eval/sweep/tuning.h"

#include <math.h>

enum {
    TOGETHER = 5, /* timed side by side */
    LAST_ROUNDS = 25,
    MAX_LOOKS = 3 /* the more are tried, the likelier one passes by luck */
};
#define ROUNDING 1e-9

static int is_within(const renyi_tune *t, const ry_tally *tally)
{
    return t->o.goal != RENYI_TUNE_MAX_DROP || ry_tune_drop(tally) <= t->o.bound + ROUNDING;
}

/* Does it keep the bound as far as the search can tell? */
static int is_eligible(const renyi_tune *t, ry_candidate *c)
{
    if (!ry_tune_is_cheap(t, c)) {
        c->fate = RENYI_TUNE_COSTLY; /* the longer measurement says so */
        return 0;
    }
    return is_within(t, &c->search);
}

static void choose(renyi_tune *t, uint32_t candidate)
{
    t->candidates[candidate].fate = RENYI_TUNE_CHOSEN;
    t->result.is_found = 1;
}

/* One look; dense needs none, it loses nothing against itself. */
static renyi_status look(renyi_tune *t, uint32_t candidate, renyi_error *err)
{
    ry_candidate *c = &t->candidates[candidate];
    if (candidate != 0) {
        t->result.looks++;
        ry_tune_stage(t, RENYI_TUNE_CONFIRMING, 1, t->n_photos - t->n_search);
        RY_TRY(ry_tune_judge(t, &candidate, 1, t->n_search, t->n_photos, err));
    }
    if (candidate == 0 || is_within(t, &c->confirmed))
        choose(t, candidate);
    else
        c->fate = RENYI_TUNE_REFUTED;
    return RENYI_OK;
}

/* Time these again and look at them in their new order. */
static renyi_status try_some(renyi_tune *t, uint32_t *list, size_t n, renyi_error *err)
{
    ry_tune_stage(t, RENYI_TUNE_LAST_TIMING, n, 0);
    RY_TRY(ry_tune_time(t, list, n, LAST_ROUNDS, err));
    ry_tune_rank(t, list, n);
    for (size_t i = 0; i < n && !t->result.is_found && t->result.looks < MAX_LOOKS; i++)
        if (is_eligible(t, &t->candidates[list[i]])) RY_TRY(look(t, list[i], err));
    return RENYI_OK;
}

/* ---- when nothing was found ---------------------------------------------------------------- */

/* How far a candidate is from what was wanted: smaller is nearer; infinite if nobody knows. */
static double distance(const renyi_tune *t, const ry_candidate *c)
{
    double d = c->gmacs;
    if (t->o.goal == RENYI_TUNE_TARGET_MS) d = ry_tune_ms(t, c);
    if (t->o.goal == RENYI_TUNE_MAX_DROP)
        d = c->confirmed.n ? ry_tune_drop(&c->confirmed) : c->estimate;
    return isnan(d) ? (double)INFINITY : d;
}

/* With a bound of the loss, those that got further come first: fewer photos tell less. */
static int is_nearer(const renyi_tune *t, const ry_candidate *x, const ry_candidate *y)
{
    if (t->o.goal == RENYI_TUNE_MAX_DROP) {
        if (!x->confirmed.n != !y->confirmed.n) return x->confirmed.n > 0;
        if (x->rungs != y->rungs) return x->rungs > y->rungs;
    }
    return distance(t, x) < distance(t, y);
}

static void find_nearest(renyi_tune *t)
{
    for (size_t i = 1; i < t->count; i++) {
        const ry_candidate *c = &t->candidates[i];
        if (isinf(distance(t, c))) continue;
        if (!t->result.nearest || is_nearer(t, c, &t->candidates[t->result.nearest]))
            t->result.nearest = i;
    }
}

/* ---- all of it ----------------------------------------------------------------------------- */

static renyi_status try_all(renyi_tune *t, renyi_error *err)
{
    for (size_t at = 0; at < t->n_alive && !t->result.is_found && t->result.looks < MAX_LOOKS;) {
        const size_t n = t->n_alive - at < TOGETHER ? t->n_alive - at : TOGETHER;
        RY_TRY(try_some(t, t->alive + at, n, err));
        at += n;
    }
    return RENYI_OK;
}

/* The longer measurement found the finalists, the dearest of all that were within the target, to
 * miss it: those that left the race last come back, most accurate first. */
static void revive(renyi_tune *t)
{
    uint32_t last = 0;
    t->n_alive = 0;
    for (size_t i = 1; i < t->count; i++)
        if (t->candidates[i].fate == RENYI_TUNE_BEATEN && t->candidates[i].rungs > last)
            last = t->candidates[i].rungs;
    for (size_t i = 1; i < t->count; i++)
        if (t->candidates[i].fate == RENYI_TUNE_BEATEN && t->candidates[i].rungs == last)
            t->alive[t->n_alive++] = (uint32_t)i;
    ry_tune_rank(t, t->alive, t->n_alive);
}

renyi_status ry_tune_confirm(renyi_tune *t, renyi_error *err)
{
    RY_TRY(try_all(t, err));
    if (t->o.goal == RENYI_TUNE_MAX_DROP && !t->result.is_found) choose(t, 0);
    while (!t->result.is_found) {
        revive(t);
        if (!t->n_alive) break;
        RY_TRY(try_all(t, err)); /* each is chosen or too costly: this ends */
    }
    if (t->candidates[0].fate == RENYI_TUNE_CHOSEN || !t->result.is_found) find_nearest(t);
    return RENYI_OK;
}
