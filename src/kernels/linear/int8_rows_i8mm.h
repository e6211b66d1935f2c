/* int8_rows_i8mm.h - product_rows of linear_int8_template.h with usmmla, which multiplies two rows
 * by two outputs, eight bytes each: twice the products of usdot per instruction. The weights of two
 * outputs are put together as they are loaded.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_INT8_ROWS_I8MM_H
#define RY_INT8_ROWS_I8MM_H

/* Sums of two rows: 2 x 2 numbers in each register. */
typedef struct sums_of_two {
    int32x4_t of[PANEL / 2];
} sums_of_two;

/* x: bytes of two rows, eight each; w: four bytes for each output, twice */
RY_INLINE sums_of_two add_eight(sums_of_two sums, uint8x16_t x, const int32x4_t first[4],
                                const int32x4_t second[4])
{
    RY_UNROLL
    for (int q = 0; q < 4; q++) {
        const int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(first[q], second[q]));
        const int8x16_t high = vreinterpretq_s8_s32(vzip2q_s32(first[q], second[q]));
        sums.of[2 * q] = vusmmlaq_s32(sums.of[2 * q], x, low);
        sums.of[2 * q + 1] = vusmmlaq_s32(sums.of[2 * q + 1], x, high);
    }
    return sums;
}

RY_INLINE uint8x8_t load_four(const uint8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vcreate_u8(four);
}

/* Row 2p and the one after it; the last of an odd number of rows is its own partner. */
RY_INLINE void product_rows(const int mr, const uint8_t *x, size_t x_row, const int8_t *w,
                            size_t depth, const int32_t *from, size_t from_row, int32_t *sums)
{
    sums_of_two acc[(MR + 1) / 2];
    const int pairs = (mr + 1) / 2;
    RY_UNROLL
    for (int p = 0; p < pairs; p++) RY_UNROLL
    for (int c = 0; c < PANEL / 2; c++) {
        const size_t a = 2 * (size_t)p, b = 2 * p + 1 < mr ? a + 1 : a;
        acc[p].of[c] = vcombine_s32(vld1_s32(from + a * from_row + 2 * c),
                                    vld1_s32(from + b * from_row + 2 * c));
    }
    for (size_t k = 0; k < depth; k += 8, w += 8 * PANEL) {
        const int eight = depth - k >= 8;
        int32x4_t first[4], second[4];
        RY_UNROLL
        for (int q = 0; q < 4; q++) {
            first[q] = vld1q_s32((const int32_t *)(const void *)(w + 16 * q));
            second[q] = eight ? vld1q_s32((const int32_t *)(const void *)(w + 4 * PANEL + 16 * q))
                              : vdupq_n_s32(0);
        }
        RY_UNROLL
        for (int p = 0; p < pairs; p++) {
            const uint8_t *a = x + 2 * (size_t)p * x_row + k;
            const uint8_t *b = 2 * p + 1 < mr ? a + x_row : a;
            const uint8x16_t both = eight ? vcombine_u8(vld1_u8(a), vld1_u8(b))
                                          : vcombine_u8(load_four(a), load_four(b));
            acc[p] = add_eight(acc[p], both, first, second);
        }
    }
    RY_UNROLL
    for (int i = 0; i < mr; i++) RY_UNROLL
    for (int c = 0; c < PANEL / 2; c++) {
        const int32x4_t two = acc[i / 2].of[c];
        vst1_s32(sums + i * PANEL + 2 * c, i % 2 ? vget_high_s32(two) : vget_low_s32(two));
    }
}

#endif
