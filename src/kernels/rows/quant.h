/* quant.h - numbers of fewer bits: rows of activations and channels of weights.
 *
 * A row of activations:   x[k] ~ low + scale * q[k],  q in 0 .. 255, one (scale, low) a row
 * A channel of weights:   w[j][k] ~ scale[j] * q[j][k],  q in -127 .. 127
 * Their product, with integer sums:
 *   sum_k x[k] w[j][k] ~ scale[j] * (row.scale * sum_k qx qw + row.low * sum_k qw)
 * where the last sum belongs to the weights alone.
 *
 * Rows that hold NaN or infinity get scale = low = NaN: what comes of them is NaN, as with floats.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_QUANT_H
#define RY_QUANT_H

#include "kernels/linear/linear.h"

#include <stdint.h>

typedef struct ry_quant { /* of a row */
    float scale, low;
} ry_quant;

/* q [rows, q_row] and par [rows] from x [rows, x_row]; n numbers a row, bytes from n to q_row stay.
 * range NULL = each row its own. */
#define RY_DECL_QUANTISE(fn)                                                                    \
    void fn(uint8_t *q, size_t q_row, ry_quant *par, const float *x, size_t x_row, size_t rows, \
            size_t n, const ry_quant_range *range)

/* y[j] = epilogue of a row of integer sums; all but y are padded to whole vectors. */
typedef struct ry_quant_columns {
    const float *scale; /* [n] of the weights */
    const float *sum;   /* [n] scale * sum of the channel's q */
    const float *bias;  /* [n] */
} ry_quant_columns;
#define RY_DECL_QUANT_FINISH(fn)                                                              \
    void fn(float *y, const int32_t *sums, ry_quant row, const ry_quant_columns *c, size_t n, \
            ry_epilogue epilogue)

/* y [rows, y_row] = x [rows, x_row] as bfloat16, rounded to nearest, ties to even; NaN stays NaN.
 */
#define RY_DECL_TO_BF16(fn) \
    void fn(uint16_t *y, size_t y_row, const float *x, size_t x_row, size_t rows, size_t n)

typedef struct ry_quant_kernels {
    RY_DECL_QUANTISE((*quantise));
    RY_DECL_QUANT_FINISH((*finish));
    RY_DECL_TO_BF16((*to_bf16));
} ry_quant_kernels;

extern const ry_quant_kernels ry_quant_scalar, ry_quant_avx512;

/* scale = largest |w| / 127; q = w / scale, rounded to nearest, ties to even. A channel of zeros
 * (or of numbers below 1e-36, which nothing can be divided by) has scale 0. w, q: [n_in]
 *
 * With `pairs` the scale is that of the largest sum of two neighbours of one sign (2i and 2i + 1)
 * if that is larger: then 255 times two neighbours always fits in 16 bits, as the instruction of
 * AVX2 needs. The largest pair is seldom much more than the largest weight, so little is lost. */
float ry_quant_channel(int8_t *q, const float *w, size_t n_in, int pairs);

/* 1 and q if w / scale, rounded, are numbers that the function above may give; else 0. */
int ry_quant_channel_as(int8_t *q, const float *w, size_t n_in, float scale, int pairs);

/* Converted rows as an op reads them: par of all rows, then their bytes. */
static inline size_t ry_quant_offset(size_t rows)
{
    return (rows * sizeof(ry_quant) + 63) / 64 * 64;
}

#endif
