/* attention_template.h - attention with column scores for any vector width.
 *
 * Probabilities are kept transposed: a block has ATTENTION_ROWS queries, one per lane, and row j
 * of the probabilities holds key j for all of them. So the softmax needs no sum across lanes and
 * has no tail, keys and values are read where the qkv product wrote them, and a column norm is a
 * sum over one such row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/columns_template.h"
#include "kernels/kernels.h"
#include "kernels/micro.h"
#include "kernels/simd.h"

#include <math.h>

enum { ATTENTION_ROWS = 2 * VL };

typedef struct block_view {
    const ry_attention *at;
    size_t first, rows;         /* queries of this block: the first, and how many */
    size_t width;               /* lanes in use: VL or 2 VL */
    size_t row[ATTENTION_ROWS]; /* token of each lane; unused lanes repeat the last token */
    float *q;                   /* [d, width] queries, scaled and transposed */
    float *p;                   /* [N, width] logits, then exponentials */
    float *mean;    /* [N, width] the matrix whose columns are scored: head mean, or one head */
    float *inverse; /* [width] 1 / sum of the exponentials */
    float *weight;  /* [width] weight of each row in a column sum */
    float *counts;  /* [width] 1 where the weight is not 0, else 0 */
} block_view;

/* q[c, i] = column c of the query in lane i, times the scale of the logits */
static void pack_queries(const block_view *b, size_t h)
{
    const ry_attention *at = b->at;
    const float *rows[ATTENTION_ROWS];
    for (size_t i = 0; i < b->width; i++)
        rows[i] = at->qkv + b->row[i] * at->qkv_row + h * at->head;
    ry_micro_pack(b->q, b->width, rows, at->head, ry_logit_scale(at->head, at->logit_factor));
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
    const size_t N = at->n_tokens;
    size_t j = 0;
    for (; j + RY_MR <= N; j += RY_MR) logits_of_keys(RY_MR, nv, b, k + j * at->qkv_row, j);
    if (j == N) return;
    /* The last tile starts earlier and computes some keys again, with the same bits. */
    if (N >= RY_MR && N - j > RY_MR / 2)
        logits_of_keys(RY_MR, nv, b, k + (N - RY_MR) * at->qkv_row, N - RY_MR);
    else if (N >= RY_MR / 2)
        for (; j < N; j += RY_MR / 2) {
            const size_t from = j + RY_MR / 2 <= N ? j : N - RY_MR / 2;
            logits_of_keys(RY_MR / 2, nv, b, k + from * at->qkv_row, from);
        }
    else
        for (; j < N; j++) logits_of_keys(1, nv, b, k + j * at->qkv_row, j);
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

/* mean (+)= p / sum * share in the lanes that count */
RY_INLINE void add_to_mean(const int nv, const block_view *b, float share, int fresh)
{
    vf scale[2];
    RY_UNROLL
    for (int v = 0; v < nv; v++)
        scale[v] = vf_mul(vf_load(b->inverse + v * VL),
                          vf_mul(vf_load(b->counts + v * VL), vf_set1(share)));
    for (size_t j = 0; j < b->at->n_tokens; j++) RY_UNROLL
    for (int v = 0; v < nv; v++) {
        const size_t at = (j * nv + v) * VL;
        const vf old = fresh ? vf_zero() : vf_load(b->mean + at);
        vf_store(b->mean + at, vf_fma(vf_load(b->p + at), scale[v], old));
    }
}

/* out[i .. i+mr, 0 .. nv*VL] = p[:, i]^T v / sum; the last vector has `last` lanes */
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

/* mr rows over all columns of the head: pairs of vectors, then the rest. */
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
    float *out = at->out + b->first * at->out_row + h * at->head;
    size_t i = 0;
    for (; i + RY_MR <= b->rows; i += RY_MR) values_of_group(RY_MR, b, v0, out, i);
    for (; i + 4 <= b->rows; i += 4) values_of_group(4, b, v0, out, i);
    for (; i < b->rows; i++) values_of_group(1, b, v0, out, i);
}

/* class_row (+)= p / sum / H of the first query */
static void add_to_class_row(const block_view *b, int fresh)
{
    const ry_attention *at = b->at;
    const float share = b->inverse[0] / (float)at->n_heads;
    for (size_t j = 0; j < at->n_tokens; j++)
        at->class_row[j] = (fresh ? 0.0f : at->class_row[j]) + b->p[j * b->width] * share;
}

/* Column sums over the rows of this block: one row of parts, or two (column_stat.h). */
static void sum_columns(const block_view *b, double *part)
{
    const ry_attention *at = b->at;
    const float order = (float)(at->columns.order < 1e30 ? at->columns.order : 1e30);
    const column_view c = {b->mean, b->weight, at->n_tokens, order};

    for (size_t i = 0; at->columns.skip_diagonal && i < b->rows; i++)
        b->mean[b->row[i] * b->width + i] = 0.0f;
    if (at->columns.kind == RY_COLUMN_ENTROPY) {
        columns_of_loop(&c, b->width, 1, part);
        part += at->n_tokens;
    }
    columns_of_loop(&c, b->width, loop_of(&at->columns), part);
}

RY_INLINE void attention_rows(const int nv, const block_view *b, size_t block)
{
    const ry_attention *at = b->at;
    const size_t H = at->n_heads, N = at->n_tokens, sets = ry_column_sets(&at->columns, H);
    const int each = at->columns.each_head;
    const float share = each ? 1.0f : 1.0f / (float)H;
    double *part = at->column_parts ? at->column_parts + block * sets * N : NULL;

    for (size_t h = 0; h < H; h++) {
        pack_queries(b, h);
        logits(nv, b, h);
        exponentials(nv, b);
        if (at->class_row && b->first == 0) add_to_class_row(b, h == 0);
        if (part) add_to_mean(nv, b, share, each || h == 0);
        if (part && each) sum_columns(b, part + h * (sets / H) * N);
        if (at->out) values(b, h);
    }
    if (part && !each) sum_columns(b, part);
}

/* Sets the token and the weight of each lane. */
static void choose_rows(block_view *b, size_t block)
{
    const ry_attention *at = b->at;
    const size_t queries = ry_query_count(at);
    b->first = block * ATTENTION_ROWS;
    b->rows = queries - b->first < ATTENTION_ROWS ? queries - b->first : ATTENTION_ROWS;
    b->width = b->rows > VL ? 2 * VL : VL;
    for (size_t i = 0; i < b->width; i++) {
        const int real = i < b->rows;
        b->row[i] = ry_query_row(at, b->first + (real ? i : b->rows - 1));
        if (!at->column_parts) continue;
        b->weight[i] = real ? ry_row_count(at, b->row[i]) : 0.0f;
        b->counts[i] = b->weight[i] > 0.0f ? 1.0f : 0.0f;
    }
}

static RY_DECL_ATTENTION(attention_block)
{
    const size_t padded = at->n_tokens + 16;
    block_view b = {.at = at, .q = scratch};
    b.p = b.q + at->head * ATTENTION_ROWS;
    b.mean = b.p + padded * ATTENTION_ROWS;
    b.inverse = b.mean + padded * ATTENTION_ROWS;
    b.weight = b.inverse + ATTENTION_ROWS;
    b.counts = b.weight + ATTENTION_ROWS;
    choose_rows(&b, block);
    if (b.width == 2 * VL)
        attention_rows(2, &b, block);
    else
        attention_rows(1, &b, block);
}
