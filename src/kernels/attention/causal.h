/* causal.h - attention in which a token sees itself and the tokens before it, or all tokens of its
 * text, for texts that share one list of rows. A text is a list of row numbers, so texts with the
 * same first tokens share these rows.
 *
 * The unit of work is a text. The bits of a row depend only on the rows it sees, not on the number
 * of queries computed together.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CAUSAL_H
#define RY_CAUSAL_H

#include <stddef.h>
#include <stdint.h>

typedef struct ry_causal {
    size_t n_heads, head;    /* H, and d: floats of one head */
    const float *qkv;        /* [tokens of all texts, 3*H*d]: q, k, v of all heads */
    size_t qkv_row, out_row; /* floats from one row to the next */
    const uint32_t *rows;    /* [n_tokens] row of each token of the text */
    size_t n_tokens;
    size_t first, end; /* queries: the tokens from `first` to the one before `end` */
    int sees_all;      /* 1 = every query sees all tokens, not only those before it */
    float *out;        /* [end - first, H*d] */
} ry_causal;

/* scratch: ry_causal_scratch floats, 64-byte aligned. */
#define RY_DECL_CAUSAL(fn) void fn(const ry_causal *at, float *scratch)

/* Floats of scratch for one thread, at every CPU level. */
size_t ry_causal_scratch(size_t n_tokens, size_t head);

#endif
