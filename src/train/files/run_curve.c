/* run_curve.c - train.h: a quantity of a run over time, smoothed and thinned for drawing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "train/files/run_log.h"

#include <math.h>
#include <string.h>

enum { MOST_POINTS = 1000 };

static int is_of_steps(renyi_run_quantity what)
{
    return what == RENYI_RUN_LOSS || what == RENYI_RUN_LR || what == RENYI_RUN_KEEP ||
           what == RENYI_RUN_SPEED;
}

static double value_of(const renyi_run_log *r, renyi_run_quantity what, size_t i)
{
    switch (what) {
    case RENYI_RUN_LOSS: return r->steps[i].loss;
    case RENYI_RUN_LR: return r->steps[i].lr;
    case RENYI_RUN_KEEP: return r->steps[i].keep;
    case RENYI_RUN_SPEED: return r->steps[i].speed;
    case RENYI_RUN_EPOCH_LOSS: return r->epochs[i].train_loss;
    case RENYI_RUN_VAL_LOSS: return r->epochs[i].val_loss;
    case RENYI_RUN_TOP1: return r->epochs[i].top1;
    case RENYI_RUN_TOP5: return r->epochs[i].top5;
    case RENYI_RUN_EMA_TOP1: return r->epochs[i].ema_top1;
    }
    return NAN;
}

static double place_of(const ry_run_when *when, renyi_run_axis axis)
{
    if (axis == RENYI_RUN_BY_STEP) return when->step;
    return axis == RENYI_RUN_BY_SECONDS ? when->seconds : when->epoch;
}

/* y[i] becomes the mean of the values around it: the window's sum is kept up while it moves. It is
 * added anew now and then, so that a million roundings do not show. */
static void smooth_into(double *to, const double *y, size_t n, size_t window)
{
    const size_t left = (window - 1) / 2, right = window / 2;
    size_t from = 0, end = 0;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t low = i > left ? i - left : 0, high = right < n - 1 - i ? i + right + 1 : n;
        if (i % 4096 == 0) from = end = low, sum = 0;
        for (; end < high; end++) sum += y[end];
        for (; from < low; from++) sum -= y[from];
        to[i] = sum / (double)(high - low);
    }
}

/* Neighbours are averaged until `most` are left. */
static size_t thin(double *v, size_t n, size_t most)
{
    if (n <= most) return n;
    for (size_t k = 0; k < most; k++) {
        const size_t from = k * n / most, end = (k + 1) * n / most; /* n is below 2^22 */
        double sum = 0;
        for (size_t i = from; i < end; i++) sum += v[i];
        v[k] = sum / (double)(end - from);
    }
    return most;
}

static size_t collect(const renyi_run_log *r, renyi_run_quantity what, renyi_run_axis axis,
                      double *x, double *y)
{
    const size_t n = is_of_steps(what) ? r->n_steps : r->n_epochs;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = value_of(r, what, i);
        if (!isfinite(v)) continue;
        x[used] = place_of(is_of_steps(what) ? &r->steps[i].when : &r->epochs[i].when, axis);
        y[used++] = v;
    }
    return used;
}

renyi_status renyi_run_log_get_curve(renyi_run_curve *out, const renyi_run_log *r,
                                     renyi_run_quantity what, renyi_run_axis axis, uint64_t smooth,
                                     size_t most, renyi_error *err)
{
    if (!out || !r)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_run_log_get_curve: NULL argument");
    *out = (renyi_run_curve){.allocator = r->al};
    if ((unsigned)what > RENYI_RUN_EMA_TOP1 || (unsigned)axis > RENYI_RUN_BY_SECONDS)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_run_log_get_curve: there is no quantity %d by %d", (int)what,
                       (int)axis);
    const size_t n = is_of_steps(what) ? r->n_steps : r->n_epochs;
    double *x = ry_alloc(&r->al, n, sizeof *x), *y = ry_alloc(&r->al, n, sizeof *y);
    double *raw = ry_alloc(&r->al, n, sizeof *raw);
    if (!x || !y || !raw) {
        ry_free(&r->al, x);
        ry_free(&r->al, y);
        ry_free(&r->al, raw);
        return ry_fail_nomem(err, n * sizeof *x);
    }
    const size_t used = collect(r, what, axis, x, raw);
    const size_t window = is_of_steps(what) && smooth > 1 ? (size_t)smooth : 1;
    if (used) smooth_into(y, raw, used, window < used ? window : used);
    ry_free(&r->al, raw);
    thin(x, used, most ? most : MOST_POINTS);
    out->n = thin(y, used, most ? most : MOST_POINTS);
    out->x = x;
    out->y = y;
    return RENYI_OK;
}

void renyi_run_curve_free(renyi_run_curve *c)
{
    if (!c) return;
    const renyi_allocator al = c->allocator;
    ry_free(&al, c->x);
    ry_free(&al, c->y);
    *c = (renyi_run_curve){0};
}
