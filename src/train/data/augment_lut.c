/* augment_lut.c - operations that send each level of a channel to another level.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/augment_ops.h"

#include <string.h>

typedef struct luts {
    uint8_t to[3][256];
} luts;

static void apply(uint8_t *rgb, size_t n, const luts *l)
{
    for (size_t i = 0; i < n; i++, rgb += 3) {
        rgb[0] = l->to[0][rgb[0]];
        rgb[1] = l->to[1][rgb[1]];
        rgb[2] = l->to[2][rgb[2]];
    }
}

/* The same table for the three channels. */
static void apply_one(uint8_t *rgb, size_t n, const uint8_t to[256])
{
    for (size_t i = 0; i < 3 * n; i++) rgb[i] = to[rgb[i]];
}

static void identity(uint8_t to[256])
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

static void stretch(uint8_t to[256], const uint64_t counts[256])
{
    int low = 0, high = 255;
    while (low < 255 && !counts[low]) low++;
    while (high > 0 && !counts[high]) high--;
    if (high <= low) {
        identity(to);
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
    for (int c = 0; c < 3; c++) stretch(l.to[c], counts[c]);
    apply(rgb, n, &l);
}

/* The running sum of the counts in steps of 1/255 of all pixels but those of the lightest level. */
static void flatten(uint8_t to[256], const uint64_t counts[256])
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
        identity(to);
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
    for (int c = 0; c < 3; c++) flatten(l.to[c], counts[c]);
    apply(rgb, n, &l);
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
    apply_one(rgb, n, to);
}

void ry_op_solarize_add(uint8_t *rgb, size_t n, unsigned add)
{
    uint8_t to[256];
    for (unsigned i = 0; i < 256; i++) {
        const unsigned v = i < 128 ? i + add : i;
        to[i] = (uint8_t)(v > 255 ? 255 : v);
    }
    apply_one(rgb, n, to);
}
