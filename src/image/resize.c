/* resize.c - the two passes, and their plain form that every other variant must equal.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/resize.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"

#include <assert.h>
#include <string.h>

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
    return renyi_cpu_detect() >= RENYI_CPU_AVX2 ? &ry_resize_avx2 : &ry_resize_scalar;
}

static ry_pixels rows_of(const ry_pixels *in, uint32_t first, uint32_t n)
{
    return (ry_pixels){in->at + first * in->stride, in->stride, in->width, n};
}

/* Inputs [first, last) are all that these taps look at. */
static void span_of(const ry_taps *taps, uint32_t *first, uint32_t *last)
{
    *first = taps->first[0];
    *last = taps->first[taps->n - 1] + taps->count[taps->n - 1];
}

/* Count from `origin` on: the input has been cut off before it. */
static void shift(ry_taps *taps, uint32_t origin)
{
    for (uint32_t i = 0; i < taps->n; i++) taps->first[i] -= origin;
}

static void all_down(uint8_t *out, size_t out_stride, const ry_pixels *in, const ry_taps *down,
                     const ry_resize_kernels *kernels)
{
    for (uint32_t i = 0; i < down->n; i++)
        kernels->down(out + i * out_stride, in->at + down->first[i] * in->stride, in->stride,
                      3 * (size_t)in->width, down, i);
}

/* The order matters because bytes are rounded between the passes. Pillow goes across first, and
 * since 13.0 down first where the height loses more than twice the pixels that the width does. */
static int goes_down_first(const ry_resize_spec *spec)
{
    const int64_t height_lost = (int64_t)spec->y.in_size - spec->y.out_size;
    const int64_t width_lost = (int64_t)spec->x.in_size - spec->x.out_size;
    return height_lost > 0 && height_lost > 2 * width_lost;
}

static renyi_status both(uint8_t *out, size_t out_stride, const ry_pixels *in,
                         const ry_resize_spec *spec, ry_taps *right, ry_taps *down,
                         const ry_resize_kernels *kernels, const renyi_allocator *al,
                         renyi_error *err)
{
    const int down_first = goes_down_first(spec);
    uint32_t x0, x1, y0, y1;
    span_of(right, &x0, &x1);
    span_of(down, &y0, &y1);
    const uint32_t width = down_first ? x1 - x0 : right->n;
    const uint32_t rows = down_first ? down->n : y1 - y0;
    const size_t stride = (3 * (size_t)width + 63) / 64 * 64;
    uint8_t *between = ry_alloc(al, rows, stride);
    if (!between) return ry_fail_nomem(err, rows * stride);
    const ry_pixels half_way = {between, stride, width, rows};
    if (down_first) {
        const ry_pixels seen = {in->at + 3 * (size_t)x0, in->stride, width, in->rows};
        all_down(between, stride, &seen, down, kernels);
        shift(right, x0);
        kernels->across(out, out_stride, &half_way, right);
    } else {
        const ry_pixels seen = rows_of(in, y0, rows);
        kernels->across(between, stride, &seen, right);
        shift(down, y0);
        all_down(out, out_stride, &half_way, down, kernels);
    }
    ry_free(al, between);
    return RENYI_OK;
}

/* A side that keeps its size needs no pass at all: its pixels are taken as they are. */
static renyi_status one_or_none(uint8_t *out, size_t out_stride, const ry_pixels *in,
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
        all_down(out, out_stride, &columns, down, kernels);
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
        st = right.n && down.n ? both(out, out_stride, in, spec, &right, &down, kernels, al, err)
                               : one_or_none(out, out_stride, in, spec, &right, &down, kernels);
    ry_taps_free(&right, al);
    ry_taps_free(&down, al);
    return st;
}
