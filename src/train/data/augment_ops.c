/* augment_ops.c - Pillow's operations on 8-bit RGB images, bit for bit.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* M_PI */
#include "train/data/augment_ops.h"

#include "train/data/augment_affine_template.h"

#include <math.h>
#include <string.h>

/* ---- a level becomes another one ------------------------------------------------------------- */

typedef struct luts {
    uint8_t to[3][256];
} luts;

static void apply_luts(uint8_t *rgb, size_t n, const luts *l)
{
    for (size_t i = 0; i < n; i++, rgb += 3) {
        rgb[0] = l->to[0][rgb[0]];
        rgb[1] = l->to[1][rgb[1]];
        rgb[2] = l->to[2][rgb[2]];
    }
}

/* The same table for the three channels. */
static void apply_lut(uint8_t *rgb, size_t n, const uint8_t to[256])
{
    for (size_t i = 0; i < 3 * n; i++) rgb[i] = to[rgb[i]];
}

static void set_identity(uint8_t to[256])
{
    for (int i = 0; i < 256; i++) to[i] = (uint8_t)i;
}

static void count_levels(uint64_t counts[3][256], const uint8_t *rgb, size_t n)
{
    memset(counts, 0, 3 * 256 * sizeof counts[0][0]);
    for (size_t i = 0; i < n; i++, rgb += 3) {
        counts[0][rgb[0]]++;
        counts[1][rgb[1]]++;
        counts[2][rgb[2]]++;
    }
}

static void stretch_levels(uint8_t to[256], const uint64_t counts[256])
{
    int low = 0, high = 255;
    while (low < 255 && !counts[low]) low++;
    while (high > 0 && !counts[high]) high--;
    if (high <= low) {
        set_identity(to);
        return;
    }
    const double scale = 255.0 / (high - low), offset = -low * scale;
    for (int i = 0; i < 256; i++) {
        const int v = (int)(i * scale + offset);
        to[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

void ry_op_auto_contrast(uint8_t *rgb, size_t n)
{
    uint64_t counts[3][256];
    luts l;
    count_levels(counts, rgb, n);
    for (int c = 0; c < 3; c++) stretch_levels(l.to[c], counts[c]);
    apply_luts(rgb, n, &l);
}

/* The running sum of the counts in steps of 1/255 of all pixels but those of the lightest level. */
static void flatten_levels(uint8_t to[256], const uint64_t counts[256])
{
    uint64_t sum = 0, lightest = 0;
    int levels = 0;
    for (int i = 0; i < 256; i++) {
        if (!counts[i]) continue;
        levels++;
        sum += counts[i];
        lightest = counts[i];
    }
    const uint64_t step = (sum - lightest) / 255;
    if (levels <= 1 || !step) {
        set_identity(to);
        return;
    }
    uint64_t running = step / 2;
    for (int i = 0; i < 256; i++) {
        const uint64_t v = running / step;
        to[i] = (uint8_t)(v > 255 ? 255 : v);
        running += counts[i];
    }
}

void ry_op_equalize(uint8_t *rgb, size_t n)
{
    uint64_t counts[3][256];
    luts l;
    count_levels(counts, rgb, n);
    for (int c = 0; c < 3; c++) flatten_levels(l.to[c], counts[c]);
    apply_luts(rgb, n, &l);
}

void ry_op_invert(uint8_t *rgb, size_t n)
{
    for (size_t i = 0; i < 3 * n; i++) rgb[i] = (uint8_t)(255 - rgb[i]);
}

void ry_op_posterize(uint8_t *rgb, size_t n, unsigned bits)
{
    const uint8_t mask = (uint8_t)(bits >= 8 ? 255 : 255 << (8 - bits));
    for (size_t i = 0; i < 3 * n; i++) rgb[i] &= mask;
}

void ry_op_solarize(uint8_t *rgb, size_t n, unsigned threshold)
{
    uint8_t to[256];
    for (unsigned i = 0; i < 256; i++) to[i] = (uint8_t)(i < threshold ? i : 255 - i);
    apply_lut(rgb, n, to);
}

void ry_op_solarize_add(uint8_t *rgb, size_t n, unsigned add)
{
    uint8_t to[256];
    for (unsigned i = 0; i < 256; i++) {
        const unsigned v = i < 128 ? i + add : i;
        to[i] = (uint8_t)(v > 255 ? 255 : v);
    }
    apply_lut(rgb, n, to);
}

/* ---- blends ---------------------------------------------------------------------------------- */

/* ImageEnhance moves an image away from a plainer version of itself (black, its mean grey, its
 * greys, its smoothed self): factor 1 is the image, 0 the plain version. Floats, as in Pillow. */
static uint8_t blend(int plain, int value, float factor)
{
    const float v = (float)plain + factor * (float)(value - plain);
    const float low = v > 0.0f ? v : 0.0f;
    return (uint8_t)(int)(low < 255.0f ? low : 255.0f);
}

/* ITU-R 601 in 16 fractional bits. */
static int grey_of(const uint8_t *rgb)
{
    return (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16;
}

/* The plain version has one level everywhere, so a table of 256 results is enough. */
static void blend_with_level(uint8_t *rgb, size_t n, int level, double factor)
{
    uint8_t to[256];
    for (int i = 0; i < 256; i++) to[i] = blend(level, i, (float)factor);
    for (size_t i = 0; i < 3 * n; i++) rgb[i] = to[rgb[i]];
}

void ry_op_brightness(uint8_t *rgb, size_t n, double factor)
{
    blend_with_level(rgb, n, 0, factor);
}

void ry_op_contrast(uint8_t *rgb, size_t n, double factor)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += (uint64_t)grey_of(rgb + 3 * i);
    blend_with_level(rgb, n, n ? (int)((double)sum / (double)n + 0.5) : 0, factor);
}

void ry_op_color(uint8_t *rgb, size_t n, double factor)
{
    const float f = (float)factor;
    for (size_t i = 0; i < n; i++, rgb += 3) {
        const int grey = grey_of(rgb);
        for (int c = 0; c < 3; c++) rgb[c] = blend(grey, rgb[c], f);
    }
}

void ry_op_grey(uint8_t *rgb, size_t n)
{
    for (size_t i = 0; i < n; i++, rgb += 3) memset(rgb, grey_of(rgb), 3);
}

/* A row of Pillow's SMOOTH filter, 1/13 each and 5/13 in the middle, blended with the row itself;
 * the first and last pixel have no neighbours and stay. */
static void sharpen_row(uint8_t *restrict out, const uint8_t *restrict in, size_t stride,
                        uint32_t width, float factor)
{
    const float side = 1.0f / 13.0f, middle = 5.0f / 13.0f;
    const uint8_t *below = in + stride, *above = in - stride;
    memcpy(out, in, 3);
    for (size_t i = 3; i < 3 * ((size_t)width - 1); i++) {
        float sum = 0.5f;
        sum += (float)below[i - 3] * side + (float)below[i] * side + (float)below[i + 3] * side;
        sum += (float)in[i - 3] * side + (float)in[i] * middle + (float)in[i + 3] * side;
        sum += (float)above[i - 3] * side + (float)above[i] * side + (float)above[i + 3] * side;
        const int smooth = (int)(sum > 255.0f ? 255.0f : sum);
        out[i] = blend(smooth, in[i], factor);
    }
    memcpy(out + 3 * ((size_t)width - 1), in + 3 * ((size_t)width - 1), 3);
}

void ry_op_sharpness(uint8_t *out, const uint8_t *in, ry_op_size size, double factor)
{
    const size_t stride = 3 * (size_t)size.width;
    if (size.width < 3 || size.height < 3) { /* nothing but border */
        memcpy(out, in, size.height * stride);
        return;
    }
    memcpy(out, in, stride);
    for (size_t y = 1; y + 1 < size.height; y++)
        sharpen_row(out + y * stride, in + y * stride, stride, size.width, (float)factor);
    memcpy(out + (size.height - 1) * stride, in + (size.height - 1) * stride, stride);
}

/* ---- blur ------------------------------------------------------------------------------------ */

enum { PASSES = 3 };

typedef struct box {
    int64_t radius; /* whole pixels to either side */
    uint32_t inner, outer;
} box;

/* Pillow's GaussianBlur is three box blurs across and three down. A box of fractional radius r
 * weighs its 2 floor(r) + 1 inner pixels equally and the two outermost less, in 24 fractional bits.
 * Gwosdek et al. 2011, equations 7, 11 and 14: boxes whose variances add up to the Gaussian's. In
 * float, as in Pillow. */
static box box_of(double radius)
{
    const float r = (float)radius, variance = r * r / (float)PASSES;
    const float length = (float)sqrt(12.0 * (double)variance + 1.0);
    const float whole = (float)floor(((double)length - 1.0) / 2.0);
    float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
    part /= 6 * (variance - (whole + 1) * (whole + 1));
    const float full = whole + part;
    box b = {(int64_t)full, (uint32_t)((float)(1 << 24) / (full * 2 + 1)), 0};
    b.outer = ((1u << 24) - (uint32_t)(2 * b.radius + 1) * b.inner) / 2;
    return b;
}

static int64_t nearest_inside(int64_t i, int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }

/* One line of n values, `step` bytes apart; beyond its ends the end values repeat. */
static void blur_line(uint8_t *out, const uint8_t *in, int64_t n, size_t step, const box *b)
{
    const int64_t r = b->radius;
    uint32_t sum = 0; /* of the inner pixels round x - 1 */
    for (int64_t i = -r - 1; i < r; i++) sum += in[(size_t)nearest_inside(i, n) * step];
    for (int64_t x = 0; x < n; x++) {
        const uint32_t left = in[(size_t)nearest_inside(x - r - 1, n) * step];
        sum += in[(size_t)nearest_inside(x + r, n) * step] - left;
        const uint32_t far = left + in[(size_t)nearest_inside(x + r + 1, n) * step];
        out[(size_t)x * step] = (uint8_t)((sum * b->inner + far * b->outer + (1u << 23)) >> 24);
    }
}

void ry_op_blur(uint8_t *rgb, uint8_t *scratch, ry_op_size size, double radius)
{
    const box b = box_of(radius);
    const size_t stride = 3 * (size_t)size.width;
    uint8_t *from = rgb, *to = scratch;
    for (int pass = 0; pass < 2 * PASSES; pass++) {
        if (pass < PASSES)
            for (size_t y = 0; y < size.height; y++)
                for (size_t c = 0; c < 3; c++)
                    blur_line(to + y * stride + c, from + y * stride + c, size.width, 3, &b);
        else
            for (size_t x = 0; x < stride; x++)
                blur_line(to + x, from + x, size.height, stride, &b);
        uint8_t *const swap = from;
        from = to;
        to = swap;
    }
}

/* ---- affine maps ----------------------------------------------------------------------------- */

/* Image.transform: every output pixel is looked up at one point of the input and interpolated from
 * two or four neighbors in each direction. Doubles in Pillow's order, for the same bits. */
void ry_op_affine_plain(uint8_t *out, const uint8_t *in, ry_op_size size,
                        const ry_op_affine_spec *spec)
{
    transform_affine(out, in, size, spec);
}

void ry_op_affine(uint8_t *out, const uint8_t *in, ry_op_size size, const ry_op_affine_spec *spec)
{
    if (renyi_cpu_detect() >= RENYI_CPU_AVX2)
        ry_op_affine_vec8(out, in, size, spec);
    else
        ry_op_affine_plain(out, in, size, spec);
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
