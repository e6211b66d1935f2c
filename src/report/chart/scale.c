/* scale.c - see scale.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/scale.h"

#include <assert.h>
#include <math.h>

/* The smallest of 1, 2, 2.5, 5 x 10^k that cuts `span` into at most `pieces`. */
static double round_step(double span, int pieces)
{
    static const double steps[] = {1, 2, 2.5, 5, 10};
    const double rough = span / pieces, ten = pow(10, floor(log10(rough)));
    for (int i = 0; i < 4; i++)
        if (steps[i] * ten >= rough * (1 - 1e-9)) return steps[i] * ten;
    return 10 * ten;
}

static int decimals_of(double step)
{
    int decimals = 0;
    while (decimals < 6 && fabs(step - rint(step)) > 1e-6 * step) {
        step *= 10;
        decimals++;
    }
    return decimals;
}

static void linear_ticks(ry_scale *s, int most_ticks)
{
    const double step = round_step(s->high - s->low, most_ticks - 1);
    const double first = ceil(s->low / step - 1e-9);
    s->step = step;
    for (int i = 0; s->n_ticks < most_ticks && (first + i) * step <= s->high + 1e-9 * step; i++)
        s->ticks[s->n_ticks++] = (first + i) * step;
}

/* 1, 2, 5 x 10^k; every second or third of them where they are too many. */
static void log_ticks(ry_scale *s, int most_ticks)
{
    static const double steps[] = {1, 2, 5};
    const int first = (int)floor(log10(s->low)), last = (int)ceil(log10(s->high));
    for (int stride = 1; stride <= 3; stride += 2) {
        s->n_ticks = 0;
        for (int i = 3 * first; i <= 3 * last && s->n_ticks < most_ticks; i += stride) {
            const int decade = i >= 0 ? i / 3 : -((2 - i) / 3);
            const double v = steps[i - 3 * decade] * pow(10, decade);
            if (v >= s->low && v <= s->high) s->ticks[s->n_ticks++] = v;
        }
        if (s->n_ticks < most_ticks) break;
    }
}

ry_scale ry_scale_of(double least, double most, int may_be_log, int most_ticks)
{
    ry_scale s = {.from = 0, .to = 1};
    assert(most_ticks >= 2 && most_ticks <= RY_MAX_TICKS);
    if (!isfinite(least) || !isfinite(most) || most < least) least = 0, most = 1;
    const double size = fmax(fabs(least), fabs(most));
    if (size > 1e300) least /= 4, most /= 4; /* room for the margins */
    if (!(most - least > 1e-6 * size)) {
        const double around = size > 1e-12 ? 0.1 * size : 1;
        least -= around;
        most += around;
    }
    s.is_log = may_be_log && least > 0 && most > 6 * least && most < 1e9 * least;
    const double margin = s.is_log ? pow(most / least, 0.06) : 0.06 * (most - least);
    s.low = s.is_log ? least / margin : least - margin;
    s.high = s.is_log ? most * margin : most + margin;
    if (s.is_log)
        log_ticks(&s, most_ticks);
    else
        linear_ticks(&s, most_ticks);
    return s;
}

int ry_scale_decimals(const ry_scale *s, int tick)
{
    return decimals_of(s->is_log ? s->ticks[tick] : s->step);
}

double ry_scale_at(const ry_scale *s, double v)
{
    const double clamped = fmin(fmax(v, s->low), s->high);
    const double share = s->is_log ? log(clamped / s->low) / log(s->high / s->low)
                                   : (clamped - s->low) / (s->high - s->low);
    return s->from + share * (s->to - s->from);
}
