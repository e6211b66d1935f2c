/* attention_body.h - attention with scores for any vector width.
 *
 * Everything is kept transposed: a block has BLOCK query rows, one per lane, and row j of the
 * probabilities holds key j for all of them. So the softmax runs down the lanes without a
 * horizontal step or a tail, keys and values are read where the qkv product left them, and a column
 * norm is the sum over one such row. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/micro.h"
#include "kernels/simd.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 2 * VL };

typedef struct block_view {
    const ry_attention *at;
    size_t row0, rows; /* query rows of this block */
    size_t width;      /* lanes in use: VL or 2 VL */
    float *q;          /* [d, width] queries, scaled and transposed */
    float *p;          /* [N, width] logits, then exponentials */
    float *mean;       /* [N, width] head mean of the probabilities */
    float *inverse;    /* [width] 1 / sum of the exponentials */
} block_view;

/* q[c, i] = query row i, column c, times 1/sqrt(d); lanes without a row are 0 */
static void pack_queries(const block_view *b, size_t h)
{
    const ry_attention *at = b->at;
    const float scale = 1.0f / sqrtf((float)at->head);
    const float *rows[BLOCK];

    for (size_t i = 0; i < b->width;
         i++) /* a lane too many repeats the last row: never read back */
        rows[i] =
            at->qkv + (b->row0 + (i < b->rows ? i : b->rows - 1)) * at->qkv_row + h * at->head;
    for (size_t c = 0; c < at->head; c++) {
        float *q = b->q + c * b->width;
        for (size_t i = 0; i < b->width; i++) q[i] = rows[i][c] * scale;
    }
}

/* p[j .. j+mr, :] = k_j . q + bias_j */
RY_INLINE void logits_of_keys(const int mr, const int nv, const block_view *b, const float *k,
                              size_t j)
{
    const ry_attention *at = b->at;
    const ry_operands op = {k, at->qkv_row, 1, b->q, (size_t)nv * VL, at->head};
    vf acc[RY_MR][2];
    RY_UNROLL
    for (int i = 0; i < mr; i++)
        acc[i][0] = acc[i][1] = at->key_bias ? vf_bcast(at->key_bias + j + i) : vf_zero();
    ry_micro_sum(mr, nv, &op, VL, acc);
    RY_UNROLL
    for (int i = 0; i < mr; i++) RY_UNROLL
    for (int v = 0; v < nv; v++) vf_store(b->p + (j + (size_t)i) * nv * VL + v * VL, acc[i][v]);
}

RY_INLINE void logits(const int nv, const block_view *b, size_t h)
{
    const ry_attention *at = b->at;
    const size_t C = at->n_heads * at->head;
    const float *k = at->qkv + C + h * at->head;
    size_t j = 0;
    for (; j + RY_MR <= at->n_tokens; j += RY_MR)
        logits_of_keys(RY_MR, nv, b, k + j * at->qkv_row, j);
    for (; j < at->n_tokens; j++) logits_of_keys(1, nv, b, k + j * at->qkv_row, j);
}

/* p = exp(p - max over keys); inverse = 1 / sum over keys */
RY_INLINE void exponentials(const int nv, const block_view *b)
{
    const size_t N = b->at->n_tokens;
    vf top[2], sum[2];
    RY_UNROLL
    for (int v = 0; v < nv; v++) {
        top[v] = vf_load(b->p + v * VL);
        sum[v] = vf_zero();
    }
    for (size_t j = 1; j < N; j++) RY_UNROLL
    for (int v = 0; v < nv; v++) top[v] = vf_max(top[v], vf_load(b->p + (j * nv + v) * VL));
    for (size_t j = 0; j < N; j++) RY_UNROLL
    for (int v = 0; v < nv; v++) {
        float *at = b->p + (j * nv + v) * VL;
        const vf e = vf_exp(vf_sub(vf_load(at), top[v]));
        sum[v] = vf_add(sum[v], e);
        vf_store(at, e);
    }
    RY_UNROLL
    for (int v = 0; v < nv; v++) vf_store(b->inverse + v * VL, vf_div(vf_set1(1.0f), sum[v]));
}

/* mean += p / (sum * H) */
RY_INLINE void add_to_mean(const int nv, const block_view *b, int first_head)
{
    const float share = 1.0f / (float)b->at->n_heads;
    vf scale[2];
    RY_UNROLL
    for (int v = 0; v < nv; v++) scale[v] = vf_mul(vf_load(b->inverse + v * VL), vf_set1(share));
    for (size_t j = 0; j < b->at->n_tokens; j++) RY_UNROLL
    for (int v = 0; v < nv; v++) {
        const size_t at = (j * nv + v) * VL;
        const vf old = first_head ? vf_zero() : vf_load(b->mean + at);
        vf_store(b->mean + at, vf_fma(vf_load(b->p + at), scale[v], old));
    }
}

/* out[i .. i+mr, 0 .. nv*VL] = p[:, i]^T v / sum; `last` lanes of the last vector are real */
RY_INLINE void values_of_rows(const int mr, const int nv, const size_t last, const block_view *b,
                              const float *v0, float *out, size_t i)
{
    const ry_attention *at = b->at;
    const ry_operands op = {b->p + i, 1, b->width, v0, at->qkv_row, at->n_tokens};
    vf acc[RY_MR][2];
    RY_UNROLL
    for (int r = 0; r < mr; r++) acc[r][0] = acc[r][1] = vf_zero();
    ry_micro_sum(mr, nv, &op, last, acc);
    RY_UNROLL
    for (int r = 0; r < mr; r++) {
        const vf s = vf_bcast(b->inverse + i + r);
        float *y = out + (i + (size_t)r) * at->out_row;
        RY_UNROLL
        for (int v = 0; v < nv; v++) {
            const size_t lanes = v == nv - 1 ? last : VL;
            vf_store_upto(y + v * VL, vf_mul(acc[r][v], s), lanes);
        }
    }
}

/* One group of mr rows over all columns of the head: pairs of vectors, then what is left. */
RY_INLINE void values_of_group(const int mr, const block_view *b, const float *v0, float *out,
                               size_t i)
{
    const size_t d = b->at->head;
    size_t c = 0;
    for (; c + 2 * VL <= d; c += 2 * VL) values_of_rows(mr, 2, VL, b, v0 + c, out + c, i);
    for (; c < d; c += VL) values_of_rows(mr, 1, d - c < VL ? d - c : VL, b, v0 + c, out + c, i);
}

static void values(const block_view *b, size_t h)
{
    const ry_attention *at = b->at;
    const size_t C = at->n_heads * at->head;
    const float *v0 = at->qkv + 2 * C + h * at->head;
    float *out = at->out + b->row0 * at->out_row + h * at->head;
    size_t i = 0;
    for (; i + RY_MR <= b->rows; i += RY_MR) values_of_group(RY_MR, b, v0, out, i);
    for (; i + 4 <= b->rows; i += 4) values_of_group(4, b, v0, out, i);
    for (; i < b->rows; i++) values_of_group(1, b, v0, out, i);
}

/* Sum over the block's rows of (N * mean)^n for column j. Lanes beyond `rows` are switched off by
 * vf_load_upto reading zeros, which add nothing to a power sum or a maximum of positive numbers. */
RY_INLINE double column_part(const block_view *b, size_t j)
{
    const ry_attention *at = b->at;
    const float *m = b->mean + j * b->width;
    const double n = at->columns.order;
    const vf scale = vf_set1((float)at->n_tokens);
    vf sum = vf_zero();

    if (!(n == 1.0 || n == 2.0 || n == 3.0 || n == 4.0 || isinf(n)))
        return ry_column_power(m, b->rows, (double)at->n_tokens, n);
    for (size_t i = 0; i < b->rows; i += VL) {
        const vf x = vf_mul(vf_load_upto(m + i, b->rows - i), scale), x2 = vf_mul(x, x);
        if (isinf(n))
            sum = vf_max(sum, x);
        else if (n == 1.0)
            sum = vf_add(sum, x);
        else if (n == 2.0)
            sum = vf_add(sum, x2);
        else
            sum = n == 3.0 ? vf_fma(x2, x, sum) : vf_fma(x2, x2, sum);
    }
    return isinf(n) ? (double)vf_hmax(sum) : (double)vf_sum(sum);
}

static void hand_out_scores(const block_view *b, size_t block)
{
    const ry_attention *at = b->at;
    if (at->class_row && block == 0)
        for (size_t j = 0; j < at->n_tokens; j++) at->class_row[j] = b->mean[j * b->width];
    if (at->column_parts) {
        double *part = at->column_parts + block * at->n_tokens;
        for (size_t j = 0; j < at->n_tokens; j++) part[j] = column_part(b, j);
    }
}

RY_INLINE void attention_rows(const int nv, block_view *b, int want_scores)
{
    for (size_t h = 0; h < b->at->n_heads; h++) {
        pack_queries(b, h);
        logits(nv, b, h);
        exponentials(nv, b);
        if (want_scores) add_to_mean(nv, b, h == 0);
        values(b, h);
    }
}

static RY_DECL_ATTENTION(attention_block)
{
    const size_t N = at->n_tokens;
    block_view b = {.at = at, .row0 = block * BLOCK};
    b.rows = N - b.row0 < BLOCK ? N - b.row0 : BLOCK;
    b.width = b.rows > VL ? 2 * VL : VL;
    b.q = scratch;
    b.p = b.q + at->head * BLOCK;
    b.mean = b.p + (N + 16) * BLOCK;
    b.inverse = b.mean + (N + 16) * BLOCK;
    const int want_scores = at->column_parts || (at->class_row && block == 0);

    if (b.width == 2 * VL)
        attention_rows(2, &b, want_scores);
    else
        attention_rows(1, &b, want_scores);
    if (want_scores) hand_out_scores(&b, block);
}
