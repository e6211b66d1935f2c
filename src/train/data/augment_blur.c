/* augment_blur.c - Pillow's GaussianBlur: three box blurs across, three down. A box of fractional
 * radius r weighs its 2 floor(r) + 1 inner pixels alike and the two outermost less, in 24
 * fractional bits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/augment_ops.h"

#include <math.h>
#include <string.h>

enum { PASSES = 3 };

typedef struct box {
    int64_t radius; /* whole pixels to either side */
    uint32_t inner, outer;
} box;

/* Gwosdek et al. 2011, equations 7, 11 and 14: boxes whose variances add up to the Gaussian's. In
 * float, as there. */
static box box_of(double radius)
{
    const float r = (float)radius, variance = r * r / PASSES;
    const float length = (float)sqrt(12.0 * (double)variance + 1.0);
    const float whole = (float)floor(((double)length - 1.0) / 2.0);
    float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
    part /= 6 * (variance - (whole + 1) * (whole + 1));
    const float full = whole + part;
    box b = {(int64_t)full, (uint32_t)((float)(1 << 24) / (full * 2 + 1)), 0};
    b.outer = ((1u << 24) - (uint32_t)(2 * b.radius + 1) * b.inner) / 2;
    return b;
}

static int64_t clip(int64_t i, int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }

/* One line of n values, `step` bytes apart; the ends go on as they are. */
static void blur_line(uint8_t *out, const uint8_t *in, int64_t n, size_t step, const box *b)
{
    const int64_t r = b->radius;
    uint32_t sum = 0; /* of the inner pixels round x - 1 */
    for (int64_t i = -r - 1; i < r; i++) sum += in[(size_t)clip(i, n) * step];
    for (int64_t x = 0; x < n; x++) {
        const uint32_t left = in[(size_t)clip(x - r - 1, n) * step];
        sum += in[(size_t)clip(x + r, n) * step] - left;
        const uint32_t far = left + in[(size_t)clip(x + r + 1, n) * step];
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
