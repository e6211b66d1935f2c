/* kernels.h - the table of our own kernels. Scalar first, then each CPU level overwrites what it
 * improves; the table is filled once per model and read-only after.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_KERNELS_H
#define RY_KERNELS_H

#include "kernels/attention/attention.h"
#include "kernels/attention/cached.h"
#include "kernels/attention/causal.h"
#include "kernels/attention/gram.h"
#include "renyi/renyi.h"

#include <stddef.h>

/* y[r] = (x[r] - mean) / sqrt(var + eps) * w + b over rows of n floats; x and y may be the same. */
#define RY_DECL_LAYERNORM(fn)                                                            \
    void fn(float *y, size_t y_row, const float *x, size_t x_row, size_t rows, size_t n, \
            const float *w, const float *b, float eps)

/* y[r] = x[r] / sqrt(mean of squares + eps) * w over rows of n floats; x and y may be the same. */
#define RY_DECL_RMSNORM(fn)                                                              \
    void fn(float *y, size_t y_row, const float *x, size_t x_row, size_t rows, size_t n, \
            const float *w, float eps)

/* y[r] = silu(gate) * up over rows of x that hold n floats of gate, then n of up; silu(v) = v *
 * sigmoid(v). */
#define RY_DECL_SWIGLU(fn) \
    void fn(float *y, size_t y_row, const float *x, size_t x_row, size_t rows, size_t n)

typedef struct ry_kernels {
    renyi_cpu level;
    RY_DECL_LAYERNORM((*layernorm));
    RY_DECL_ATTENTION((*attention));
    size_t attention_rows; /* query rows of an attention block */
    RY_DECL_CAUSAL((*causal));
    RY_DECL_RMSNORM((*rmsnorm));
    RY_DECL_SWIGLU((*swiglu));
    RY_DECL_CACHED((*cached));
    RY_DECL_CACHE_ROW((*cache_row));
    RY_DECL_GRAM((*gram));
    size_t gram_rows; /* rows of a block of dot products */
} ry_kernels;

void ry_kernels_init(ry_kernels *k, renyi_cpu level);

/* The exported symbols of the files in kernels/. */
void ry_layernorm_init(ry_kernels *k);
void ry_layernorm_init_avx2(ry_kernels *k);
void ry_layernorm_init_avx512(ry_kernels *k);
void ry_attention_init(ry_kernels *k);
void ry_attention_init_avx2(ry_kernels *k);
void ry_attention_init_avx512(ry_kernels *k);
void ry_causal_init(ry_kernels *k);
void ry_causal_init_avx2(ry_kernels *k);
void ry_causal_init_avx512(ry_kernels *k);
void ry_rmsnorm_init(ry_kernels *k);
void ry_rmsnorm_init_avx2(ry_kernels *k);
void ry_rmsnorm_init_avx512(ry_kernels *k);
void ry_swiglu_init(ry_kernels *k);
void ry_swiglu_init_avx2(ry_kernels *k);
void ry_swiglu_init_avx512(ry_kernels *k);
void ry_cached_init(ry_kernels *k);
void ry_cached_init_avx2(ry_kernels *k);
void ry_cached_init_avx512(ry_kernels *k);
void ry_gram_init(ry_kernels *k);
void ry_gram_init_avx512(ry_kernels *k);
void ry_gram_init_avx2(ry_kernels *k);

#endif
