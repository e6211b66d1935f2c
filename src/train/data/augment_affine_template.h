/* augment_affine_template.h - the loop of ry_op_affine, compiled once for every CPU and once for
 * AVX2: red, green and blue are lanes of one vector of doubles. The same operations in the same
 * order, so the same bits. Included by augment_ops.c and augment_affine_vec8.c alone.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_AUGMENT_AFFINE_TEMPLATE_H
#define RY_AUGMENT_AFFINE_TEMPLATE_H

#include "train/data/augment_ops.h"

#include <string.h>

/* Red, green, blue, unused. Always passed by pointer: as arguments these would need AVX. */
typedef double lanes __attribute__((vector_size(32)));
typedef int32_t lanes_int __attribute__((vector_size(16)));

static inline void load_pixel(lanes *out, const uint8_t *rgb)
{
    const lanes_int levels = {rgb[0], rgb[1], rgb[2], 0};
    *out = __builtin_convertvector(levels, lanes);
}

/* *a + (b - a) * d in place of *a */
static inline void mix_linear(lanes *a, const lanes *b, double d) { *a += (*b - *a) * d; }

/* Through v[1] and v[2] with the slopes of their neighbours: Keys' cubic with a = -1, where a
 * resize has a = -1/2. */
static inline void mix_cubic(lanes *out, const lanes v[4], double d)
{
    const lanes p2 = v[2] - v[0];
    const lanes p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
    const lanes p4 = v[1] - v[0] - v[2] + v[3];
    *out = v[1] + d * (p2 + d * (p3 + d * p4));
}

typedef struct source {
    const uint8_t *in;
    int64_t width, height;
} source;

static inline size_t clip_index(int64_t i, int64_t n)
{
    return (size_t)(i < 0 ? 0 : i < n ? i : n - 1);
}

static inline const uint8_t *pixel_at(const source *s, int64_t x, int64_t y)
{
    return s->in + 3 * (clip_index(y, s->height) * (size_t)s->width + clip_index(x, s->width));
}

/* A position between pixels: the pixel before it and the distance from there. */
typedef struct place {
    int64_t at;
    double part; /* [0, 1) */
} place;

static inline place place_of(double x)
{
    const double from_centre = x - 0.5;
    place p = {(int64_t)from_centre, 0.0};
    if (from_centre < (double)p.at) p.at--;
    p.part = from_centre - (double)p.at;
    return p;
}

/* A part of 0 gives exactly the pixel or row; frequent with shears and shifts. */
static inline void row_linear(lanes *out, const source *s, place x, int64_t y)
{
    lanes right;
    load_pixel(out, pixel_at(s, x.at, y));
    if (x.part == 0.0) return;
    load_pixel(&right, pixel_at(s, x.at + 1, y));
    mix_linear(out, &right, x.part);
}

static inline void row_cubic(lanes *out, const source *s, place x, int64_t y)
{
    lanes v[4];
    if (x.part == 0.0) {
        load_pixel(out, pixel_at(s, x.at, y));
        return;
    }
    if (x.at >= 1 && x.at + 2 < s->width) { /* the common case: no clipping across */
        const uint8_t *p = pixel_at(s, x.at - 1, y);
        for (int i = 0; i < 4; i++) load_pixel(&v[i], p + 3 * i);
    } else {
        for (int i = 0; i < 4; i++) load_pixel(&v[i], pixel_at(s, x.at - 1 + i, y));
    }
    mix_cubic(out, v, x.part);
}

/* Rows outside the image repeat the first or last row, which is what Pillow's "take the row before"
 * does. */
static inline void look_up_linear(lanes *out, const source *s, place x, place y)
{
    lanes below;
    row_linear(out, s, x, y.at);
    if (y.part == 0.0) return;
    row_linear(&below, s, x, y.at + 1);
    mix_linear(out, &below, y.part);
}

static inline void look_up_cubic(lanes *out, const source *s, place x, place y)
{
    lanes rows[4];
    if (y.part == 0.0) {
        row_cubic(out, s, x, y.at);
        return;
    }
    for (int i = 0; i < 4; i++) row_cubic(&rows[i], s, x, y.at - 1 + i);
    mix_cubic(out, rows, y.part);
}

static inline void store_pixel(uint8_t *rgb, const lanes *v)
{
    for (int c = 0; c < 3; c++) {
        const double level = (*v)[c] > 0.0 ? (*v)[c] : 0.0;
        rgb[c] = (uint8_t)(int)(level < 255.0 ? level : 255.0);
    }
}

static inline void transform_affine(uint8_t *out, const uint8_t *in, ry_op_size size,
                                    const ry_op_affine_spec *spec)
{
    const source s = {in, size.width, size.height};
    const double *m = spec->m, width = size.width, height = size.height;
    const int is_linear = spec->filter == RENYI_BILINEAR;
    for (uint32_t y = 0; y < size.height; y++)
        for (uint32_t x = 0; x < size.width; x++, out += 3) {
            const double xin = x + 0.5, yin = y + 0.5;
            const double u = m[0] * xin + m[1] * yin + m[2], v = m[3] * xin + m[4] * yin + m[5];
            if (!(u >= 0.0 && u < width && v >= 0.0 && v < height)) {
                memcpy(out, spec->fill, 3);
                continue;
            }
            lanes seen;
            if (is_linear)
                look_up_linear(&seen, &s, place_of(u), place_of(v));
            else
                look_up_cubic(&seen, &s, place_of(u), place_of(v));
            store_pixel(out, &seen);
        }
}

#endif
