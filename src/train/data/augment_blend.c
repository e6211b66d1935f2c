/* augment_blend.c - ImageEnhance: a picture is moved away from a plainer version of itself (black,
 * its mean grey, its own greys, its smoothed self), factor 1 being the picture and 0 the other one.
 * Floats, in Pillow's order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/augment_ops.h"

#include <string.h>

/* A factor of exactly 1 or 0 gives the picture or the plain one through the same arithmetic. */
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

/* The plain version has one level everywhere: 256 results are all there are. */
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
