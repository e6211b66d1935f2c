/* resize_neon.c - the resize kernels with NEON, with the same bits as the plain ones in resize.c:
 * 32-bit products and sums, four at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/resize.h"

#include <arm_neon.h>
#include <string.h>

#define HALF (1 << (RY_TAP_BITS - 1))

/* Four sums without their fraction, bounded to bytes (in 16 bits). */
static uint16x4_t four_bytes(int32x4_t sums)
{
    const uint16x4_t v = vqmovun_s32(vshrq_n_s32(sums, RY_TAP_BITS));
    return vmin_u16(v, vdup_n_u16(255));
}

/* ---- across: a pixel is a vector of red, green, blue and one byte more that does not count ----
 */

enum { ROWS = 4 }; /* at a time, so that weights are loaded once for all of them */

static int32x4_t pixel(const uint8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    const uint16x8_t words = vmovl_u8(vcreate_u8(four));
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(words)));
}

static void store_pixel(uint8_t *out, int32x4_t sums)
{
    const uint16x4_t v = four_bytes(sums);
    out[0] = (uint8_t)vget_lane_u16(v, 0);
    out[1] = (uint8_t)vget_lane_u16(v, 1);
    out[2] = (uint8_t)vget_lane_u16(v, 2);
}

/* One output column of n <= ROWS rows; the loads of pixels read one byte after the last. */
static void column_of_rows(uint8_t *out, size_t out_stride, const ry_pixels *in,
                           const ry_taps *taps, uint32_t i)
{
    const uint8_t *p = in->at + 3 * (size_t)taps->first[i];
    const int32_t *k = taps->k + (size_t)i * taps->width;
    int32x4_t sums[ROWS];
    for (int r = 0; r < ROWS; r++) sums[r] = vdupq_n_s32(HALF);
    for (uint32_t x = 0; x < taps->count[i]; x++, p += 3)
        for (int r = 0; r < ROWS; r++)
            sums[r] = vmlaq_n_s32(sums[r], pixel(p + (size_t)r * in->stride), k[x]);
    for (int r = 0; r < ROWS; r++) store_pixel(out + (size_t)r * out_stride, sums[r]);
}

static void across_neon(uint8_t *out, size_t out_stride, const ry_pixels *in, const ry_taps *taps)
{
    /* Outputs that read the last pixel of a row are left to the plain kernel, and so are the last
     * rows. */
    uint32_t inside = 0;
    while (inside < taps->n && taps->first[inside] + taps->count[inside] < in->width) inside++;
    ry_taps rest = *taps;
    rest.n -= inside, rest.first += inside, rest.count += inside;
    rest.k += (size_t)inside * taps->width;
    uint32_t y = 0;
    for (; y + ROWS <= in->rows; y += ROWS, out += ROWS * out_stride) {
        const ry_pixels four = {in->at + y * in->stride, in->stride, in->width, ROWS};
        for (uint32_t i = 0; i < inside; i++)
            column_of_rows(out + 3 * (size_t)i, out_stride, &four, taps, i);
        ry_resize_scalar.across(out + 3 * (size_t)inside, out_stride, &four, &rest);
    }
    const ry_pixels last = {in->at + y * in->stride, in->stride, in->width, in->rows - y};
    ry_resize_scalar.across(out, out_stride, &last, taps);
}

/* ---- down: 16 bytes of a row at a time ------------------------------------------------------- */

static void down_neon(uint8_t *out, const uint8_t *in, size_t stride, size_t n_bytes,
                      const ry_taps *taps, uint32_t i)
{
    const int32_t *k = taps->k + (size_t)i * taps->width;
    size_t x = 0;
    for (; x + 16 <= n_bytes; x += 16) {
        int32x4_t s[4];
        for (int q = 0; q < 4; q++) s[q] = vdupq_n_s32(HALF);
        for (uint32_t y = 0; y < taps->count[i]; y++) {
            const uint8x16_t bytes = vld1q_u8(in + y * stride + x);
            const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
            const uint32x4_t v[4] = {vmovl_u16(vget_low_u16(low)), vmovl_high_u16(low),
                                     vmovl_u16(vget_low_u16(high)), vmovl_high_u16(high)};
            for (int q = 0; q < 4; q++) s[q] = vmlaq_n_s32(s[q], vreinterpretq_s32_u32(v[q]), k[y]);
        }
        const uint16x8_t low = vcombine_u16(four_bytes(s[0]), four_bytes(s[1]));
        const uint16x8_t high = vcombine_u16(four_bytes(s[2]), four_bytes(s[3]));
        vst1q_u8(out + x, vcombine_u8(vmovn_u16(low), vmovn_u16(high)));
    }
    if (x < n_bytes) ry_resize_scalar.down(out + x, in + x, stride, n_bytes - x, taps, i);
}

const ry_resize_kernels ry_resize_vec8 = {across_neon, down_neon};
