/* augment_affine.c - Image.transform with an affine map: every output pixel looks up one place of
 * the input, between pixels by two or four neighbours in each direction. Doubles in Pillow's order,
 * so that a pixel is never one level off. SPDX-License-Identifier: Apache-2.0
 */
#define _DEFAULT_SOURCE /* M_PI */
#include "train/augment_ops.h"

#include <math.h>
#include <string.h>

typedef struct colour {
    double c[3];
} colour;

static colour load(const uint8_t *rgb) { return (colour){{rgb[0], rgb[1], rgb[2]}}; }

static colour linear(colour a, colour b, double d)
{
    for (int c = 0; c < 3; c++) a.c[c] += (b.c[c] - a.c[c]) * d;
    return a;
}

/* Through v[1] and v[2] with the slopes of their neighbours: Keys' cubic with a = -1, where a
 * resize has a = -1/2. */
static colour cubic(const colour v[4], double d)
{
    colour out;
    for (int c = 0; c < 3; c++) {
        const double p2 = v[2].c[c] - v[0].c[c];
        const double p3 = 2 * (v[0].c[c] - v[1].c[c]) + v[2].c[c] - v[3].c[c];
        const double p4 = v[1].c[c] - v[0].c[c] - v[2].c[c] + v[3].c[c];
        out.c[c] = v[1].c[c] + d * (p2 + d * (p3 + d * p4));
    }
    return out;
}

typedef struct source {
    const uint8_t *in;
    int64_t width, height;
} source;

static size_t clip(int64_t i, int64_t n) { return (size_t)(i < 0 ? 0 : i < n ? i : n - 1); }

static const uint8_t *pixel(const source *s, int64_t x, int64_t y)
{
    return s->in + 3 * (clip(y, s->height) * (size_t)s->width + clip(x, s->width));
}

/* A place between pixels: the one before it and how far beyond. */
typedef struct place {
    int64_t at;
    double part; /* [0, 1) */
} place;

static place place_of(double x)
{
    const double from_centre = x - 0.5;
    place p = {(int64_t)from_centre, 0.0};
    if (from_centre < (double)p.at) p.at--;
    p.part = from_centre - (double)p.at;
    return p;
}

/* A part of 0 gives the pixel or row itself, in all bits; shears and shifts have many. */
static colour row_linear(const source *s, place x, int64_t y)
{
    const colour first = load(pixel(s, x.at, y));
    return x.part == 0.0 ? first : linear(first, load(pixel(s, x.at + 1, y)), x.part);
}

static colour row_cubic(const source *s, place x, int64_t y)
{
    colour v[4];
    if (x.part == 0.0) return load(pixel(s, x.at, y));
    if (x.at >= 1 && x.at + 2 < s->width) { /* the common case: no clipping across */
        const uint8_t *p = pixel(s, x.at - 1, y);
        for (int i = 0; i < 4; i++) v[i] = load(p + 3 * i);
    } else {
        for (int i = 0; i < 4; i++) v[i] = load(pixel(s, x.at - 1 + i, y));
    }
    return cubic(v, x.part);
}

/* Rows above the first are the first, rows below the last the last; so clipping does what Pillow's
 * "take the row before" does. */
static colour look_up(const source *s, place x, place y, int is_linear)
{
    if (is_linear) {
        const colour first = row_linear(s, x, y.at);
        return y.part == 0.0 ? first : linear(first, row_linear(s, x, y.at + 1), y.part);
    }
    if (y.part == 0.0) return row_cubic(s, x, y.at);
    colour rows[4];
    for (int i = 0; i < 4; i++) rows[i] = row_cubic(s, x, y.at - 1 + i);
    return cubic(rows, y.part);
}

static void store(uint8_t *rgb, const colour *v)
{
    for (int c = 0; c < 3; c++) {
        const double level = v->c[c] > 0.0 ? v->c[c] : 0.0;
        rgb[c] = (uint8_t)(int)(level < 255.0 ? level : 255.0);
    }
}

void ry_op_affine(uint8_t *out, const uint8_t *in, ry_op_size size, const ry_op_affine_spec *spec)
{
    const source s = {in, size.width, size.height};
    const double *m = spec->m, width = size.width, height = size.height;
    const int is_linear = spec->filter == RENYI_BILINEAR;
    for (uint32_t y = 0; y < size.height; y++)
        for (uint32_t x = 0; x < size.width; x++, out += 3) {
            const double xin = x + 0.5, yin = y + 0.5;
            const double u = m[0] * xin + m[1] * yin + m[2], v = m[3] * xin + m[4] * yin + m[5];
            if (u >= 0.0 && u < width && v >= 0.0 && v < height) {
                const colour seen = look_up(&s, place_of(u), place_of(v), is_linear);
                store(out, &seen);
            } else {
                memcpy(out, spec->fill, 3);
            }
        }
}

/* Pillow rounds cosine and sine to 15 decimals. */
static double round15(double x) { return nearbyint(x * 1e15) / 1e15; }

void ry_op_rotation(double m[6], ry_op_size size, double degrees)
{
    double turn = fmod(degrees, 360.0);
    if (turn < 0.0) turn += 360.0;
    const double angle = -(turn * (M_PI / 180.0)), cx = size.width / 2.0, cy = size.height / 2.0;
    m[0] = m[4] = round15(cos(angle));
    m[1] = round15(sin(angle));
    m[3] = round15(-sin(angle));
    m[2] = m[0] * -cx + m[1] * -cy + cx;
    m[5] = m[3] * -cx + m[4] * -cy + cy;
}
