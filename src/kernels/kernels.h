/* kernels.h - the table of our own kernels for a forward pass. It is filled once per model: first
 * with plain C, then each CPU level overwrites the entries it improves. Read-only afterwards.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_KERNELS_H
#define RY_KERNELS_H

#include "kernels/attention/attention.h"
#include "kernels/attention/cached.h"
#include "kernels/attention/causal.h"
#include "renyi/renyi.h"

#include <stddef.h>

/* ---- rows ------------------------------------------------------------------------------------ */

/* y[r] = (x[r] - mean) / sqrt(var + eps) * w + b over rows of n floats; x and y may be the same. */
#define RY_DECL_LAYERNORM(fn)                                                            \
    void fn(float *y, size_t y_row, const float *x, size_t x_row, size_t rows, size_t n, \
            const float *w, const float *b, float eps)

/* y[r] = x[r] / sqrt(mean of squares + eps) * w over rows of n floats; x and y may be the same. */
#define RY_DECL_RMSNORM(fn)                                                              \
    void fn(float *y, size_t y_row, const float *x, size_t x_row, size_t rows, size_t n, \
            const float *w, float eps)

/* y[r] = silu(gate) * up. A row of x holds n floats of gate, then n of up;
 * silu(v) = v * sigmoid(v). */
#define RY_DECL_SWIGLU(fn) \
    void fn(float *y, size_t y_row, const float *x, size_t x_row, size_t rows, size_t n)

/* ---- Gram matrix: the lower triangle of Z Z^T ------------------------------------------------
 * With rows of unit length these are the cosines that merging rules compare tokens by. The unit of
 * work is a block of rows. A block is always computed in the same order, so the bits do not depend
 * on the number of threads. */

/* out[i*out_row + j] = z_i . z_j for the rows i of one block (block*R <= i < block*R + R, i < n; R
 * = gram_rows) and every j up to the last row of the block: the triangle, and the square on the
 * diagonal in full. z [n, dim], out [n, n]; scratch: ry_gram_scratch floats, 64-byte aligned. */
#define RY_DECL_GRAM(fn)                                                                    \
    void fn(float *out, size_t out_row, const float *z, size_t z_row, size_t n, size_t dim, \
            size_t block, float *scratch)

/* Columns of z per pass; the packed columns then stay in the first-level cache. */
enum { RY_GRAM_DEPTH = 384 };

/* Number of blocks for n rows, and floats of scratch for one thread; `rows` rows per block. */
size_t ry_gram_blocks(size_t n, size_t rows);
size_t ry_gram_scratch(size_t n, size_t dim, size_t rows);

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct ry_kernels {
    renyi_cpu level;
    RY_DECL_LAYERNORM((*layernorm));
    RY_DECL_RMSNORM((*rmsnorm));
    RY_DECL_SWIGLU((*swiglu));
    RY_DECL_ATTENTION((*attention));
    size_t attention_rows; /* query rows of an attention block */
    RY_DECL_CAUSAL((*causal));
    RY_DECL_CACHED((*cached));
    RY_DECL_CACHED_LOOK((*cached_look));
    RY_DECL_CACHE_ROW((*cache_row));
    RY_DECL_GRAM((*gram));
    size_t gram_rows; /* rows of a Gram block */
} ry_kernels;

void ry_kernels_init(ry_kernels *k, renyi_cpu level);

/* One function per folder and level; each writes the entries of its folder. */
void ry_attention_init_scalar(ry_kernels *k);
void ry_attention_init_vec8(ry_kernels *k);
void ry_attention_init_avx512(ry_kernels *k);
void ry_rows_init_scalar(ry_kernels *k);
void ry_rows_init_vec8(ry_kernels *k);
void ry_rows_init_avx512(ry_kernels *k);

#endif
