/* resize.c - Pillow's resampling: the weights of its filters, the two passes, and the plain C
 * kernels that define the result of every other level.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* M_PI */
#include "image/resize.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- weights of one axis ------------------------------------------------------------------- */

/* Every double is computed in the same steps as in Pillow. Another order could change a weight by
 * one unit and a pixel by one level. */

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

typedef struct filter {
    double (*at)(double x);
    double support;
} filter;

static filter filter_of(renyi_interpolation kind)
{
    switch (kind) {
    case RENYI_BILINEAR: return (filter){bilinear, 1.0};
    case RENYI_LANCZOS: return (filter){lanczos, 3.0};
    case RENYI_BICUBIC: break;
    }
    return (filter){bicubic, 2.0};
}

static int32_t fixed_point(double w)
{
    const double scaled = w * (1 << RY_TAP_BITS);
    return (int32_t)(w < 0 ? scaled - 0.5 : scaled + 0.5); /* halves away from zero */
}

/* Inputs [*first, *last) of an output centered at `center`. */
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
static void fill_weights(ry_taps *t, uint32_t i, const filter *f, double center,
                         double filter_scale, double *w)
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

renyi_status ry_taps_new(ry_taps *out, const ry_axis *axis, renyi_interpolation kind,
                         const renyi_allocator *al, renyi_error *err)
{
    const filter f = filter_of(kind);
    const double scale = (axis->span > 0.0 ? axis->span : axis->in_size) / axis->out_size;
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
        const double center = axis->origin + (axis->from + i + 0.5) * scale;
        uint32_t last;
        window(center, support, axis->in_size, &t.first[i], &last);
        t.count[i] = last - t.first[i];
        assert(t.count[i] <= t.width);
        fill_weights(&t, i, &f, center, filter_scale, scratch);
    }
    *out = t;
    return RENYI_OK;
}

void ry_taps_free(ry_taps *taps, const renyi_allocator *al)
{
    ry_free(al, taps->block);
    *taps = (ry_taps){0};
}

/* ---- plain C kernels ----------------------------------------------------------------------- */

#define HALF (1 << (RY_TAP_BITS - 1))

static uint8_t clip8(int32_t sum)
{
    const int32_t v = sum >> RY_TAP_BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void across_scalar(uint8_t *out, size_t out_stride, const ry_pixels *in, const ry_taps *taps)
{
    for (uint32_t y = 0; y < in->rows; y++) {
        for (uint32_t i = 0; i < taps->n; i++) {
            const uint8_t *p = in->at + y * in->stride + 3 * (size_t)taps->first[i];
            const int32_t *k = taps->k + (size_t)i * taps->width;
            int32_t r = HALF, g = HALF, b = HALF;
            for (uint32_t x = 0; x < taps->count[i]; x++, p += 3) {
                r += p[0] * k[x];
                g += p[1] * k[x];
                b += p[2] * k[x];
            }
            uint8_t *to = out + y * out_stride + 3 * (size_t)i;
            to[0] = clip8(r);
            to[1] = clip8(g);
            to[2] = clip8(b);
        }
    }
}

static void down_scalar(uint8_t *out, const uint8_t *in, size_t stride, size_t n_bytes,
                        const ry_taps *taps, uint32_t i)
{
    const int32_t *k = taps->k + (size_t)i * taps->width;
    for (size_t x = 0; x < n_bytes; x++) {
        int32_t sum = HALF;
        for (uint32_t y = 0; y < taps->count[i]; y++) sum += in[y * stride + x] * k[y];
        out[x] = clip8(sum);
    }
}

const ry_resize_kernels ry_resize_scalar = {across_scalar, down_scalar};

const ry_resize_kernels *ry_resize_best(void)
{
    return renyi_cpu_detect() >= RY_CPU_VEC8 ? &ry_resize_vec8 : &ry_resize_scalar;
}

/* ---- the two passes ------------------------------------------------------------------------ */

static ry_pixels rows_of(const ry_pixels *in, uint32_t first, uint32_t n)
{
    return (ry_pixels){in->at + first * in->stride, in->stride, in->width, n};
}

void ry_taps_span(const ry_taps *taps, uint32_t *first, uint32_t *last)
{
    *first = taps->first[0];
    *last = taps->first[taps->n - 1] + taps->count[taps->n - 1];
}

/* Number the inputs from `origin` on: those before it have been cut off. */
static void shift_inputs(ry_taps *taps, uint32_t origin)
{
    for (uint32_t i = 0; i < taps->n; i++) taps->first[i] -= origin;
}

static void resize_down(uint8_t *out, size_t out_stride, const ry_pixels *in, const ry_taps *down,
                        const ry_resize_kernels *kernels)
{
    for (uint32_t i = 0; i < down->n; i++)
        kernels->down(out + i * out_stride, in->at + down->first[i] * in->stride, in->stride,
                      3 * (size_t)in->width, down, i);
}

int ry_resize_down_first(const ry_resize_spec *spec)
{
    const int64_t height_lost = (int64_t)spec->y.in_size - spec->y.out_size;
    const int64_t width_lost = (int64_t)spec->x.in_size - spec->x.out_size;
    return height_lost > 0 && height_lost > 2 * width_lost;
}

static renyi_status resize_both(uint8_t *out, size_t out_stride, const ry_pixels *in,
                                const ry_resize_spec *spec, ry_taps *right, ry_taps *down,
                                const ry_resize_kernels *kernels, const renyi_allocator *al,
                                renyi_error *err)
{
    const int down_first = ry_resize_down_first(spec);
    uint32_t x0, x1, y0, y1;
    ry_taps_span(right, &x0, &x1);
    ry_taps_span(down, &y0, &y1);
    const uint32_t width = down_first ? x1 - x0 : right->n;
    const uint32_t rows = down_first ? down->n : y1 - y0;
    const size_t stride = (3 * (size_t)width + 63) / 64 * 64;
    uint8_t *between = ry_alloc(al, rows, stride);
    if (!between) return ry_fail_nomem(err, rows * stride);
    const ry_pixels half_way = {between, stride, width, rows};
    if (down_first) {
        const ry_pixels seen = {in->at + 3 * (size_t)x0, in->stride, width, in->rows};
        resize_down(between, stride, &seen, down, kernels);
        shift_inputs(right, x0);
        kernels->across(out, out_stride, &half_way, right);
    } else {
        const ry_pixels seen = rows_of(in, y0, rows);
        kernels->across(between, stride, &seen, right);
        shift_inputs(down, y0);
        resize_down(out, out_stride, &half_way, down, kernels);
    }
    ry_free(al, between);
    return RENYI_OK;
}

/* A side that keeps its size needs no pass: its pixels are copied. */
static renyi_status resize_one_or_none(uint8_t *out, size_t out_stride, const ry_pixels *in,
                                       const ry_resize_spec *spec, const ry_taps *right,
                                       const ry_taps *down, const ry_resize_kernels *kernels)
{
    if (right->n) {
        const ry_pixels wanted = rows_of(in, spec->y.from, spec->y.n);
        kernels->across(out, out_stride, &wanted, right);
        return RENYI_OK;
    }
    const ry_pixels columns = {in->at + 3 * (size_t)spec->x.from, in->stride, spec->x.n, in->rows};
    if (down->n) {
        resize_down(out, out_stride, &columns, down, kernels);
        return RENYI_OK;
    }
    for (uint32_t y = 0; y < spec->y.n; y++)
        memcpy(out + y * out_stride, columns.at + (spec->y.from + y) * in->stride,
               3 * (size_t)spec->x.n);
    return RENYI_OK;
}

renyi_status ry_resize(uint8_t *out, size_t out_stride, const ry_pixels *in,
                       const ry_resize_spec *spec, const ry_resize_kernels *kernels,
                       const renyi_allocator *al, renyi_error *err)
{
    ry_taps right = {0}, down = {0};
    renyi_status st = RENYI_OK;
    assert(in->width == spec->x.in_size && in->rows == spec->y.in_size);
    if (spec->x.in_size != spec->x.out_size)
        st = ry_taps_new(&right, &spec->x, spec->filter, al, err);
    if (st == RENYI_OK && spec->y.in_size != spec->y.out_size)
        st = ry_taps_new(&down, &spec->y, spec->filter, al, err);
    if (st == RENYI_OK)
        st = right.n && down.n
                 ? resize_both(out, out_stride, in, spec, &right, &down, kernels, al, err)
                 : resize_one_or_none(out, out_stride, in, spec, &right, &down, kernels);
    ry_taps_free(&right, al);
    ry_taps_free(&down, al);
    return st;
}
