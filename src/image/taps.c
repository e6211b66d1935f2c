/* taps.c - Pillow's resampling filters and the order of its arithmetic. Every double below is
 * computed in the same steps as there: a different order would move a weight by one unit and some
 * pixel by one level.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* M_PI */
#include "image/taps.h"

#include "base/alloc.h"
#include "base/status.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static double bilinear(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

/* Keys 1981, a = -0.5. */
static double bicubic(double x)
{
    x = fabs(x);
    if (x < 1.0) return (1.5 * x - 2.5) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * -0.5;
    return 0.0;
}

static double sinc(double x)
{
    if (x == 0.0) return 1.0;
    x *= M_PI;
    return sin(x) / x;
}

static double lanczos(double x) { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

typedef struct kernel {
    double (*at)(double x);
    double support;
} kernel;

static kernel kernel_of(renyi_interpolation filter)
{
    switch (filter) {
    case RENYI_BILINEAR: return (kernel){bilinear, 1.0};
    case RENYI_LANCZOS: return (kernel){lanczos, 3.0};
    case RENYI_BICUBIC: break;
    }
    return (kernel){bicubic, 2.0};
}

static int32_t fixed_point(double w)
{
    const double scaled = w * (1 << RY_TAP_BITS);
    return (int32_t)(w < 0 ? scaled - 0.5 : scaled + 0.5); /* halves away from zero */
}

/* Inputs [*first, *last) that an output centred at `center` sees. */
static void window(double center, double support, uint32_t in_size, uint32_t *first, uint32_t *last)
{
    const double low = center - support + 0.5, high = center + support + 0.5;
    *first = low > 0.0 ? (uint32_t)low : 0;
    *last = high < (double)in_size ? (uint32_t)high : in_size;
    assert(*first < *last);
}

static void layout(ry_arena *a, ry_taps *t)
{
    const size_t all = (size_t)t->n * t->width;
    t->first = RY_TAKE(a, t->n, uint32_t);
    t->count = RY_TAKE(a, t->n, uint32_t);
    t->k = RY_TAKE(a, all, int32_t);
    t->hi = RY_TAKE(a, all, int16_t);
    t->lo = RY_TAKE(a, all, int16_t);
}

/* Weights of output i; `w` is scratch of t->width doubles. */
static void fill(ry_taps *t, uint32_t i, const kernel *f, double center, double filter_scale,
                 double *w)
{
    const uint32_t first = t->first[i], count = t->count[i];
    const double inverse = 1.0 / filter_scale;
    const size_t row = (size_t)i * t->width;
    double sum = 0.0;
    for (uint32_t x = 0; x < count; x++) {
        w[x] = f->at(((double)(x + first) - center + 0.5) * inverse);
        sum += w[x];
    }
    for (uint32_t x = 0; x < count; x++) {
        const int32_t k = fixed_point(sum != 0.0 ? w[x] / sum : w[x]);
        t->k[row + x] = k;
        t->hi[row + x] = (int16_t)(k >> RY_TAP_LOW_BITS);
        t->lo[row + x] = (int16_t)(k & ((1 << RY_TAP_LOW_BITS) - 1));
    }
    for (uint32_t x = count; x < t->width; x++) t->k[row + x] = t->hi[row + x] = t->lo[row + x] = 0;
}

renyi_status ry_taps_new(ry_taps *out, const ry_axis *axis, renyi_interpolation filter,
                         const renyi_allocator *al, renyi_error *err)
{
    const kernel f = kernel_of(filter);
    const double scale = (double)axis->in_size / axis->out_size;
    const double filter_scale = scale < 1.0 ? 1.0 : scale;
    const double support = f.support * filter_scale;
    ry_taps t = {.n = axis->n};
    ry_arena a = {0};
    assert(axis->n >= 1 && axis->from + axis->n <= axis->out_size);

    const double widest = ceil(support) * 2 + 1;
    t.width = widest < (double)axis->in_size ? (uint32_t)widest : axis->in_size;
    t.width = (t.width + 3) / 4 * 4;
    layout(&a, &t);
    double *scratch = RY_TAKE(&a, t.width, double);
    if (a.overflow) return ry_fail_nomem(err, SIZE_MAX);
    a = (ry_arena){.base = ry_alloc(al, 1, a.used), .cap = a.used};
    if (!a.base) return ry_fail_nomem(err, a.cap);
    t.block = a.base;
    layout(&a, &t);
    scratch = RY_TAKE(&a, t.width, double);

    for (uint32_t i = 0; i < t.n; i++) {
        const double center = (axis->from + i + 0.5) * scale;
        uint32_t last;
        window(center, support, axis->in_size, &t.first[i], &last);
        t.count[i] = last - t.first[i];
        assert(t.count[i] <= t.width);
        fill(&t, i, &f, center, filter_scale, scratch);
    }
    *out = t;
    return RENYI_OK;
}

void ry_taps_free(ry_taps *taps, const renyi_allocator *al)
{
    ry_free(al, taps->block);
    *taps = (ry_taps){0};
}
