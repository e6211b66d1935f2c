/* attention.h - softmax(Q K^T / sqrt(d)) V for a block of query rows and all heads. It also
 * computes what token pruning needs, without storing the N x N matrix: the attention row of the
 * class token and the column norms of the head-mean matrix (Col-Ln).
 *
 * The unit of work is (image, block of query rows), never a head, because the power of the norm is
 * taken after the mean over heads. Each block writes its own partial column sums;
 * ry_attention_scores adds them in the order of the blocks, so the scores have the same bits for
 * any number of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ATTENTION_H
#define RY_ATTENTION_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* How a token is scored from its column: the attention it receives from every row. */
typedef enum ry_column_kind {
    RY_COLUMN_NORM,   /* (sum_i a^n)^(1/n); the largest entry for n = infinity */
    RY_COLUMN_POWER,  /* sum_i a^n, without the root; as NORM for infinity */
    RY_COLUMN_ENTROPY /* Renyi entropy of order n of a / sum a; Shannon's for n = 1, min-entropy for
                         infinity */
} ry_column_kind;

typedef struct ry_column_spec {
    ry_column_kind kind;
    double order;      /* n >= 1, or INFINITY */
    int each_head;     /* score every head, then take the mean; 0 = mean of the heads first */
    size_t skip_rows;  /* leading query rows that do not count: the prefix, or 0 */
    int skip_diagonal; /* a token's attention to itself does not count */
    int row_weights;   /* each row counts ry_attention.row_weight times */
    size_t count_rows; /* of the skip_rows the first ones, which count: the class token before
                          registers, or 0 */
} ry_column_spec;

typedef struct ry_attention {
    size_t n_tokens;         /* N */
    size_t n_heads, head;    /* H, and d: floats of one head */
    const float *qkv;        /* [N, 3*H*d] of one image: q, k, v of all heads, head-major in each */
    float *out;              /* [rows, H*d]; NULL = only the scores are wanted */
    size_t qkv_row, out_row; /* floats from one row to the next */
    const float *key_bias; /* [N] added to the logits of each key (log of merged sizes), or NULL */
    float logit_factor;    /* the products of queries and keys times this; 0 = 1 */
    /* The query rows to compute, in the order of their output; NULL = all N of them. */
    const uint32_t *rows; /* [n_rows] */
    size_t n_rows;
    /* Scores; both NULL in a dense run, which then costs nothing extra. */
    float *class_row;        /* [N] head mean of row 0, which must be the first row */
    double *column_parts;    /* [blocks, ry_column_sets, N] sums over the rows of each block */
    ry_column_spec columns;  /* what is summed in column_parts */
    const float *row_weight; /* [N] with columns.row_weights */
} ry_attention;

/* What a product of a query and a key is multiplied by. */
static inline float ry_logit_scale(size_t head, float factor)
{
    return (factor != 0.0f ? factor : 1.0f) / sqrtf((float)head);
}

/* Computes one block; scratch: ry_attention_scratch floats, 64-byte aligned. */
#define RY_DECL_ATTENTION(fn) void fn(const ry_attention *at, size_t block, float *scratch)

/* Floats of scratch for one thread, and number of blocks for n_rows queries; `rows` per block. */
size_t ry_attention_scratch(size_t n_tokens, size_t head, size_t rows);
size_t ry_attention_blocks(size_t n_rows, size_t rows);

/* Sums that a block writes per column: one or two, for the mean of the heads or for each head. */
size_t ry_column_sets(const ry_column_spec *spec, size_t n_heads);

/* The scores of all columns from the parts of n_blocks blocks, added in order. A column that no row
 * attends to scores 0, or the largest possible entropy; a column with a NaN scores NaN. */
void ry_attention_scores(float *scores, const ry_attention *at, size_t n_blocks);

#endif
