/* attention.h - softmax(Q K^T / sqrt(d)) V for a block of query rows and all heads, that can also
 * hand out what token pruning needs: the class token's attention row and the column norms of the
 * head-mean matrix (Col-Ln), without the N x N matrix ever being stored.
 *
 * The unit of work is (image, block of query rows), never a head, because the power of the norm
 * comes after the mean over heads. Each block writes its own partial column sums;
 * ry_attention_scores adds them in the order of the blocks, so the scores have the same bits for
 * any number of threads. SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_KERNELS_ATTENTION_H
#define RY_KERNELS_ATTENTION_H

#include <stddef.h>

typedef struct ry_attention {
    size_t n_tokens;         /* N */
    size_t n_heads, head;    /* H, and d: floats of one head */
    const float *qkv;        /* [N, 3*H*d] of one image: q, k, v of all heads, head-major in each */
    float *out;              /* [N, H*d] */
    size_t qkv_row, out_row; /* floats from one row to the next */
    const float *key_bias; /* [N] added to the logits of each key (log of merged sizes), or NULL */
    /* Scores, when somebody asked; both NULL in a dense run, which then pays nothing. */
    float *class_row;     /* [N] head mean of row 0 */
    double *column_parts; /* [blocks, N] sum (maximum for n = infinity) over the block's rows of
                             (N * mean)^n */
    double order;         /* n >= 1, or INFINITY */
} ry_attention;

/* Computes one block; scratch: ry_attention_scratch floats, 64-byte aligned. */
#define RY_DECL_ATTENTION(fn) void fn(const ry_attention *at, size_t block, float *scratch)

/* Floats of scratch for one thread, and blocks of an image, with blocks of `rows` query rows. */
size_t ry_attention_scratch(size_t n_tokens, size_t head, size_t rows);
size_t ry_attention_blocks(size_t n_tokens, size_t rows);

/* Col-Ln from the parts: scores[j] = (sum_i mean_ij^n)^(1/n), in floats. */
void ry_attention_scores(float *scores, const double *parts, size_t n_blocks, size_t n_tokens,
                         double order);

/* Adds (or, for infinity, maximises) a row of `width` head-mean values of one column into a part;
 * scaled by N so that powers neither underflow nor overflow in floats. Shared by all levels for
 * orders that have no loop of their own. */
double ry_column_power(const float *mean, size_t width, double scale, double order);

#endif
