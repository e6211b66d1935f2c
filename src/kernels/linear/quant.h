/* quant.h - numbers of 8 and 4 bits: rows of activations and channels of weights (a channel is the
 * row of W that makes one output).
 *
 * int8   activations   x[k] ~ low + scale * q[k],  q in 0 .. 255, one (scale, low) per row
 *        weights       w[j][k] ~ scale[j] * q[j][k],  q in -127 .. 127
 *        product       sum_k x[k] w[j][k] ~ scale[j] * (row.scale * sum_k qx qw + row.low * sum_k
 * qw) where the last sum depends on the weights alone
 *
 * int4   weights       w[j][k] ~ scale[j] * step[j][g] * (q[j][k] - 8),  g = k / 32
 *                      q in 0 .. 15, step in 0 .. 255: 4.25 bits per weight
 *        activations   x[k] ~ step[g] * q[k],  q in -127 .. 127, one step per group
 *        product       sum_k x[k] w[j][k] ~ scale[j] * sum_g step[j][g] * (step[g] * sum_k qx
 * (qw-8))
 *
 * Q4_0   weights       w[j][k] = d[j][g] * q[j][k],  d a half float, q in -8 .. 7 (Q4_0) or
 * Q8_0                 -128 .. 127 (Q8_0): blocks of GGUF as they are, with the activations and
 *                      products of int4
 *
 * Why a step of one byte where others use 16 bits: weights are rounded to the step that is stored,
 * so a coarser step costs little accuracy, and a product of one row is limited by the bytes it
 * reads. Why activations have one step per group: language models have channels a hundred times
 * larger than the rest; groups keep them from spoiling the others.
 *
 * NaN or infinity in a row (int8) or a group (int4) makes its scale or step NaN, so the outputs are
 * NaN, as with floats.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_QUANT_H
#define RY_QUANT_H

#include "kernels/linear/linear.h"

#include <stdint.h>

/* ---- int8: rows ------------------------------------------------------------------------------ */

typedef struct ry_quant { /* of a row */
    float scale, low;
} ry_quant;

/* q [rows, q_row] and par [rows] from x [rows, x_row]; n numbers per row, the bytes from n to q_row
 * stay. range NULL = each row has its own. */
#define RY_DECL_QUANTIZE(fn)                                                                    \
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
    RY_DECL_QUANTIZE((*quantize));
    RY_DECL_QUANT_FINISH((*finish));
    RY_DECL_TO_BF16((*to_bf16));
} ry_quant_kernels;

extern const ry_quant_kernels ry_quant_scalar, ry_quant_avx512;

/* Converted rows as an op reads them: par of all rows, then their bytes from this offset on. */
static inline size_t ry_quant_offset(size_t rows)
{
    return (rows * sizeof(ry_quant) + 63) / 64 * 64;
}

/* ---- int8: weights --------------------------------------------------------------------------- */

/* scale = largest |w| / 127; q = w / scale, rounded to nearest, ties to even. A channel of zeros,
 * or of numbers below 1e-36, whose inverse is infinite, has scale 0. w, q: [n_in]
 *
 * With `pairs` the scale is that of the largest sum of two neighbours of one sign (2i and 2i + 1)
 * if it is larger: then 255 times two neighbours always fits in 16 bits, as the AVX2 instruction
 * needs. The largest pair is seldom much more than the largest weight, so little is lost. */
float ry_quant_channel(int8_t *q, const float *w, size_t n_in, int pairs);

/* 1 and q if w / scale, rounded, are numbers that the function above may return; else 0. */
int ry_quant_channel_as(int8_t *q, const float *w, size_t n_in, float scale, int pairs);

/* ---- int4: weights --------------------------------------------------------------------------- */

enum { RY_GROUP = 32, RY_INT4_ZERO = 8 };

/* Smaller numbers count as 0: its products and ratios are still normal floats. */
#define RY_QUANT4_SMALLEST 0x1p-100f

/* Returns the scale. q: [n_in]; step: [groups of n_in], whole numbers 0 .. 255. The step of a group
 * is the one of a few candidates that loses least. NaN or infinity in a channel: the scale is NaN.
 */
float ry_quant4_channel(uint8_t *q, float *step, const float *w, size_t n_in);

/* ---- int4: rows ------------------------------------------------------------------------------ */

/* 2 x 15 x 127 x 8 fits in 16 bits, so a group is summed in 16 bits without loss. `offset` is where
 * these sums start: it subtracts the 8 of every weight at once. */
typedef struct ry_group { /* of a row of activations */
    float step;
    int16_t offset[2]; /* -8 times the sum of inputs 0, 1 of every four, and of inputs 2, 3 */
} ry_group;

/* Converted rows as an op reads them: groups [rows, depth / RY_GROUP], then bytes [rows, depth]
 * from this offset on. depth: ry_int4_depth, with zeros after n_in. */
static inline size_t ry_quant4_offset(size_t rows, size_t depth)
{
    return (rows * (depth / RY_GROUP) * sizeof(ry_group) + 63) / 64 * 64;
}

/* One row: groups [depth / RY_GROUP] and q [depth] from x [n_in]. The specification. */
void ry_quant4_row(ry_group *groups, int8_t *q, const float *x, size_t n_in, size_t depth);

#endif
