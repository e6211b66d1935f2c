/* token_rows.h - what cuts and pooling do to the token rows of one image: new rows as sums of old
 * ones, lengths and sizes of merged rows, the mean. Plain functions on lists of rows, for the
 * engine's passes and for training's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TOKEN_ROWS_H
#define RY_TOKEN_ROWS_H

#include "model/common/hook.h"

/* Most new rows of one call below. */
enum { RY_TOKEN_CHUNK = 16 };

/* One list of rows and the list it becomes. */
typedef struct ry_row_lists {
    const float *from; /* [N, row] */
    float *to;         /* [n_out, row] */
    size_t row, width; /* floats from one row to the next, and those that count */
} ry_row_lists;

/* New rows first .. last-1: each the token it continues times its weight, plus those that join. */
void ry_token_reduce(const ry_row_lists *l, const ry_cut *cut, uint32_t n_tokens, uint32_t first,
                     uint32_t last);

/* Rows that several tokens went into: to the mean length of these, as the mean of vectors that do
 * not point the same way is shorter than each. */
void ry_token_lengths(const ry_row_lists *l, const ry_cut *cut, uint32_t n_tokens, uint32_t first,
                      uint32_t last);

/* The sum of the weights of all tokens that go to row r. */
float ry_token_weight_sum(const ry_cut *cut, uint32_t n_tokens, uint32_t r);

/* Patches that the new rows stand for, and their logarithms; a fused token counts as one.
 * from: [N], NULL = 1 each; to, log_to: [n_out]. */
void ry_token_sizes(float *to, float *log_to, const float *from, const ry_cut *cut,
                    uint32_t n_tokens);

/* to [width] = mean of the rows first .. n_tokens-1, each counted sizes[j] times (NULL = once);
 * always in the same order. */
void ry_token_mean(float *to, const float *rows, size_t row, size_t width, const float *sizes,
                   size_t first, size_t n_tokens);

#endif
