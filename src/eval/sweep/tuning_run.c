/* tuning_run.c - renyi_tune_run: drops candidates that cost too much, lets the others compete on
 * more and more images, and confirms the best on images that the search did not use.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "eval/sweep/tuning.h"

#include <math.h>

enum { FIRST_ROUNDS = 5 };
/* A candidate may take this share of the time that its MACs suggest: a smaller image leaves more of
 * the cache. */
#define MAC_DOUBT 0.7

/* ---- progress ------------------------------------------------------------------------------ */

static void begin_stage(renyi_tune *t, renyi_tune_stage stage, size_t n_candidates, size_t images)
{
    t->now = (renyi_tune_progress){
        .stage = stage, .n_candidates = (uint32_t)n_candidates, .images = images};
}

renyi_status ry_tune_report(renyi_tune *t, uint64_t done, renyi_error *err)
{
    t->now.done = done < t->now.total ? done : t->now.total;
    if (t->o.progress && t->o.progress(t->o.user, &t->now))
        return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    return RENYI_OK;
}

/* ---- costs --------------------------------------------------------------------------------- */

/* Is its cost within the goal, as far as it is known? */
static int is_cheap(const renyi_tune *t, const ry_candidate *c)
{
    switch (t->o.goal) {
    case RENYI_TUNE_MAX_DROP: return !(c->ratio >= 1.0);
    case RENYI_TUNE_TARGET_MS: return !(ry_tune_ms(t, c) > t->o.bound);
    case RENYI_TUNE_TARGET_GMACS: break;
    }
    return c->gmacs <= t->o.bound;
}

/* Before any candidate is timed. MACs say nothing about the time of another dtype. */
static int may_be_cheap(const renyi_tune *t, const ry_candidate *c, double least)
{
    if (c->dtype != t->info.dtype && t->o.goal != RENYI_TUNE_TARGET_GMACS) return 1;
    const double share = c->gmacs / t->candidates[0].gmacs;
    switch (t->o.goal) {
    case RENYI_TUNE_MAX_DROP: return share < 1.0;
    case RENYI_TUNE_TARGET_MS: /* the cheapest is always timed: it may come nearest */
        return c->gmacs <= least || share * t->dense_ms * MAC_DOUBT <= t->o.bound;
    case RENYI_TUNE_TARGET_GMACS: break;
    }
    return is_cheap(t, c);
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

/* Drops what costs too much, by times, or by the means of cascades. */
static void filter_costly(renyi_tune *t)
{
    size_t left = 0;
    for (size_t i = 0; i < t->n_alive; i++) {
        ry_candidate *c = &t->candidates[t->alive[i]];
        if (is_cheap(t, c))
            t->alive[left++] = t->alive[i];
        else
            c->fate = RENYI_TUNE_COSTLY;
    }
    t->n_alive = left;
}

/* Which candidates are evaluated. With a bound of the cost that may include dense. */
static renyi_status find_cheap(renyi_tune *t, renyi_error *err)
{
    if (t->o.goal == RENYI_TUNE_TARGET_MS) {
        begin_stage(t, RENYI_TUNE_TIMING, 1, 0);
        RY_TRY(ry_tune_time(t, NULL, 0, FIRST_ROUNDS, err));
    }
    filter_by_macs(t);
    if (t->o.goal != RENYI_TUNE_TARGET_GMACS && t->n_alive) {
        begin_stage(t, RENYI_TUNE_TIMING, t->n_alive, 0);
        RY_TRY(ry_tune_time(t, t->alive, t->n_alive, FIRST_ROUNDS, err));
        filter_costly(t);
    }
    if (t->o.goal != RENYI_TUNE_MAX_DROP) {
        if (is_cheap(t, &t->candidates[0]))
            t->alive[t->n_alive++] = 0;
        else
            t->candidates[0].fate = RENYI_TUNE_COSTLY;
    }
    return RENYI_OK;
}

/* ---- successive halving -------------------------------------------------------------------- */

enum {
    FACTOR = 3,        /* a third stays, with three times the images: every rung costs the same */
    FIRST_IMAGES = 24, /* fewer show nothing */
    MIN_LEFT = 4       /* at least so many stay: one may fail to be confirmed */
};
#define HOPELESS 0.01 /* candidates with a smaller chance of keeping the bound are dropped */

uint32_t ry_tune_rungs(size_t n_candidates, size_t n_images, size_t ends[RY_TUNE_MAX_RUNGS])
{
    size_t divisor = 1;
    uint32_t n = 1;
    while (n < RY_TUNE_MAX_RUNGS && n_candidates > MIN_LEFT &&
           n_images / (divisor * FACTOR) >= FIRST_IMAGES) {
        n_candidates = n_candidates / FACTOR + (n_candidates % FACTOR != 0);
        divisor *= FACTOR;
        n++;
    }
    for (uint32_t i = 0; i < n; i++, divisor /= FACTOR) ends[i] = n_images / divisor;
    return n;
}

static int is_hopeless(const renyi_tune *t, const ry_candidate *c)
{
    return t->o.goal == RENYI_TUNE_MAX_DROP && (c->chance < HOPELESS || c->score <= 0.0);
}

/* Keeps the best third of t->alive, which is sorted, without hopeless ones. */
static void keep_best(renyi_tune *t)
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

static renyi_status run_rungs(renyi_tune *t, renyi_error *err)
{
    size_t ends[RY_TUNE_MAX_RUNGS], from = 0;
    const uint32_t n = ry_tune_rungs(t->n_alive, t->n_search, ends);
    for (uint32_t r = 0; r < n && t->n_alive; r++) {
        begin_stage(t, RENYI_TUNE_RUNG, t->n_alive, ends[r]);
        t->now.rung = r + 1;
        t->now.n_rungs = n;
        RY_TRY(ry_tune_judge(t, t->alive, t->n_alive, from, ends[r], err));
        from = ends[r];
        for (size_t i = 0; i < t->n_alive; i++) t->candidates[t->alive[i]].rungs++;
        ry_tune_weigh(t, t->alive, t->n_alive);
        ry_tune_rank(t, t->alive, t->n_alive);
        filter_costly(t); /* cascades, by their means */
        if (r + 1 < n) keep_best(t);
    }
    for (size_t i = 0; i < t->n_alive; i++) t->candidates[t->alive[i]].fate = RENYI_TUNE_FINALIST;
    return RENYI_OK;
}

/* ---- confirming ---------------------------------------------------------------------------- */

enum {
    TOGETHER = 5, /* timed side by side */
    LAST_ROUNDS = 25,
    MAX_LOOKS = 3 /* the more are tried, the more likely one passes by chance */
};
#define ROUNDING 1e-9

static int is_within(const renyi_tune *t, const ry_tally *tally)
{
    return t->o.goal != RENYI_TUNE_MAX_DROP || ry_tune_drop(tally) <= t->o.bound + ROUNDING;
}

/* Does it keep the bound on the images of the search? */
static int is_eligible(const renyi_tune *t, ry_candidate *c)
{
    if (!is_cheap(t, c)) {
        c->fate = RENYI_TUNE_COSTLY; /* by the longer measurement */
        return 0;
    }
    return is_within(t, &c->search);
}

static void choose_candidate(renyi_tune *t, uint32_t candidate)
{
    t->candidates[candidate].fate = RENYI_TUNE_CHOSEN;
    t->result.is_found = 1;
}

/* Tries one on the images that confirm. Dense needs none: it loses nothing against itself. */
static renyi_status try_candidate(renyi_tune *t, uint32_t candidate, renyi_error *err)
{
    ry_candidate *c = &t->candidates[candidate];
    if (candidate != 0) {
        t->result.looks++;
        begin_stage(t, RENYI_TUNE_CONFIRMING, 1, t->n_images - t->n_search);
        RY_TRY(ry_tune_judge(t, &candidate, 1, t->n_search, t->n_images, err));
    }
    if (candidate == 0 || is_within(t, &c->confirmed))
        choose_candidate(t, candidate);
    else
        c->fate = RENYI_TUNE_REFUTED;
    return RENYI_OK;
}

/* Times these again and tries them in their new order. */
static renyi_status try_some(renyi_tune *t, uint32_t *list, size_t n, renyi_error *err)
{
    begin_stage(t, RENYI_TUNE_LAST_TIMING, n, 0);
    RY_TRY(ry_tune_time(t, list, n, LAST_ROUNDS, err));
    ry_tune_rank(t, list, n);
    for (size_t i = 0; i < n && !t->result.is_found && t->result.looks < MAX_LOOKS; i++)
        if (is_eligible(t, &t->candidates[list[i]])) RY_TRY(try_candidate(t, list[i], err));
    return RENYI_OK;
}

/* If nothing is found: how far a candidate is from the goal; infinite = unknown. */
static double goal_distance(const renyi_tune *t, const ry_candidate *c)
{
    double d = c->gmacs;
    if (t->o.goal == RENYI_TUNE_TARGET_MS) d = ry_tune_ms(t, c);
    if (t->o.goal == RENYI_TUNE_MAX_DROP)
        d = c->confirmed.n ? ry_tune_drop(&c->confirmed) : c->estimate;
    return isnan(d) ? (double)INFINITY : d;
}

/* With a bound of the loss, those with more rungs come first: they were measured on more images. */
static int is_nearer(const renyi_tune *t, const ry_candidate *x, const ry_candidate *y)
{
    if (t->o.goal == RENYI_TUNE_MAX_DROP) {
        if (!x->confirmed.n != !y->confirmed.n) return x->confirmed.n > 0;
        if (x->rungs != y->rungs) return x->rungs > y->rungs;
    }
    return goal_distance(t, x) < goal_distance(t, y);
}

static void find_nearest(renyi_tune *t)
{
    for (size_t i = 1; i < t->count; i++) {
        const ry_candidate *c = &t->candidates[i];
        if (isinf(goal_distance(t, c))) continue;
        if (!t->result.nearest || is_nearer(t, c, &t->candidates[t->result.nearest]))
            t->result.nearest = i;
    }
}

static renyi_status try_all(renyi_tune *t, renyi_error *err)
{
    for (size_t at = 0; at < t->n_alive && !t->result.is_found && t->result.looks < MAX_LOOKS;) {
        const size_t n = t->n_alive - at < TOGETHER ? t->n_alive - at : TOGETHER;
        RY_TRY(try_some(t, t->alive + at, n, err));
        at += n;
    }
    return RENYI_OK;
}

/* The finalists, the most expensive candidates within the target, missed it in the longer
 * measurement. Those that were dropped last come back, most accurate first. */
static void revive_dropped(renyi_tune *t)
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

static renyi_status confirm_best(renyi_tune *t, renyi_error *err)
{
    RY_TRY(try_all(t, err));
    if (t->o.goal == RENYI_TUNE_MAX_DROP && !t->result.is_found) choose_candidate(t, 0);
    while (!t->result.is_found) {
        revive_dropped(t);
        if (!t->n_alive) break;
        RY_TRY(try_all(t, err)); /* each is then chosen or too costly, so this ends */
    }
    if (t->candidates[0].fate == RENYI_TUNE_CHOSEN || !t->result.is_found) find_nearest(t);
    return RENYI_OK;
}

/* ---- running ------------------------------------------------------------------------------- */

/* 0 = chosen; larger is further from it. */
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

/* Dense stays first. Indices in the result are changed to the new places. */
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
    RY_TRY(run_rungs(t, err));
    return confirm_best(t, err);
}

renyi_status renyi_tune_run(renyi_tune *t, renyi_error *err)
{
    if (!t) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tune_run: NULL argument");
    if (t->alive)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tune_run: this tuning has already run");
    const double started = ry_clock();
    t->alive = ry_calloc(&t->al, t->count, sizeof *t->alive);
    if (!t->alive) return ry_fail_nomem(err, t->count * sizeof *t->alive);
    const renyi_status st = run_stages(t, err);
    order_candidates(t);
    t->result.seconds = ry_clock() - started;
    return st;
}
