/* quant4.h - weights of 4 bits in groups of RY_GROUP inputs, and the rows that they meet.
 *
 * A channel of weights:   w[j][k] ~ scale[j] * step[j][g] * (q[j][k] - 8),  g = k / 32
 *                         q in 0 .. 15, step in 0 .. 255: 4.25 bits a weight
 * A row of activations:   x[k] ~ step[g] * q[k],  q in -127 .. 127, one step a group
 * Their product, with integer sums inside a group:
 *   sum_k x[k] w[j][k] ~ scale[j] * sum_g step[j][g] * (step[g] * sum_k qx (qw - 8))
 *
 * Why steps of a byte where others keep 16 bits: numbers are rounded to the steps that there are,
 * so a coarser step costs no accuracy to speak of, and a product of one row is bound by the bytes
 * that it reads. Why the row has a step a group: language models have channels that are a hundred
 * times larger than the rest; they leave the other groups alone.
 *
 * 2 x 15 x 127 x 8 fits in 16 bits: a group is summed there, pair by pair, without a loss. The 8
 * that is taken off every number is taken off the sum before it begins: `offset`.
 *
 * Groups that hold NaN or infinity have the step NaN: what comes of them is NaN, as with floats.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_QUANT4_H
#define RY_QUANT4_H

#include "kernels/linear/linear.h"

#include <stdint.h>

enum { RY_GROUP = 32, RY_INT4_ZERO = 8 };

/* Smaller numbers are as good as 0: products and quotients of it are still normal. */
#define RY_QUANT4_SMALLEST 0x1p-100f

/* Returns the scale. q: [n_in]; step: [groups of n_in], whole numbers 0 .. 255. Of each group the
 * step is the one of a few that loses least; a channel that holds NaN or infinity has that scale.
 */
float ry_quant4_channel(uint8_t *q, float *step, const float *w, size_t n_in);

typedef struct ry_group { /* of a row of activations */
    float step;
    int16_t offset[2]; /* -8 times the sum of inputs 0, 1 of every four, and of inputs 2, 3 */
} ry_group;

/* Converted rows as an op reads them: groups [rows, depth / RY_GROUP], then bytes [rows, depth];
 * depth is that of panels.h, zeros behind n_in. */
static inline size_t ry_quant4_offset(size_t rows, size_t depth)
{
    return (rows * (depth / RY_GROUP) * sizeof(ry_group) + 63) / 64 * 64;
}

/* One row: groups [depth / RY_GROUP] and q [depth] from x [n_in]. The specification. */
void ry_quant4_row(ry_group *groups, int8_t *q, const float *x, size_t n_in, size_t depth);

#endif
