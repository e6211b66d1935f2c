/* attention.c - attention with column sums in plain C: the specification of the other levels; and
 * the sizes they share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention.h"

#include "kernels/attention/column_stat.h"
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

enum { ROWS = 16 }; /* query rows of a block at the scalar level */

size_t ry_attention_blocks(size_t n_rows, size_t rows) { return (n_rows + rows - 1) / rows; }

/* Packed queries [d, rows], probabilities [N padded, rows], their head mean [N padded, rows], and
 * two rows. */
size_t ry_attention_scratch(size_t n_tokens, size_t head, size_t rows)
{
    return (head + 2 * (n_tokens + 16) + 4) * rows;
}

/* p[N] = softmax of query row i of head h against all keys. */
static void probabilities(const ry_attention *at, size_t h, size_t i, float *p)
{
    const size_t C = at->n_heads * at->head, row = at->qkv_row;
    const float *q = at->qkv + i * row + h * at->head;
    float top = -INFINITY, sum = 0.0f;

    for (size_t j = 0; j < at->n_tokens; j++) {
        const float *k = at->qkv + j * row + C + h * at->head;
        float dot = 0.0f;
        for (size_t c = 0; c < at->head; c++) dot += q[c] * k[c];
        p[j] = dot / sqrtf((float)at->head) + (at->key_bias ? at->key_bias[j] : 0.0f);
        if (p[j] > top) top = p[j];
    }
    for (size_t j = 0; j < at->n_tokens; j++) sum += p[j] = expf(p[j] - top);
    for (size_t j = 0; j < at->n_tokens; j++) p[j] /= sum;
}

/* out of query r, head h */
static void weigh_values(const ry_attention *at, size_t h, size_t r, const float *p)
{
    const size_t C = at->n_heads * at->head, row = at->qkv_row;
    float *out = at->out + r * at->out_row + h * at->head;
    memset(out, 0, at->head * sizeof(float));
    for (size_t j = 0; j < at->n_tokens; j++) {
        const float *v = at->qkv + j * row + 2 * C + h * at->head;
        for (size_t c = 0; c < at->head; c++) out[c] += p[j] * v[c];
    }
}

/* to[N] (+)= p * share */
static void add_row(float *to, const float *p, size_t n, float share, int fresh)
{
    for (size_t j = 0; j < n; j++) to[j] = (fresh ? 0.0f : to[j]) + p[j] * share;
}

/* The query rows of a block, and the matrix whose columns are scored: the mean of the heads, or one
 * head. */
typedef struct block_rows {
    const ry_attention *at;
    size_t first, count;
    float *a; /* [count, N] */
} block_rows;

static double column_power(const block_rows *b, size_t j, double n)
{
    double sum = 0.0;
    for (size_t r = 0; r < b->count; r++) {
        const double w = (double)ry_row_count(b->at, ry_query_row(b->at, b->first + r));
        if (w > 0.0) sum += w * pow((double)b->a[r * b->at->n_tokens + j], n);
    }
    return sum;
}

static double column_top(const block_rows *b, size_t j)
{
    double top = 0.0;
    for (size_t r = 0; r < b->count; r++) {
        const double x = (double)b->a[r * b->at->n_tokens + j];
        if (!(ry_row_count(b->at, ry_query_row(b->at, b->first + r)) > 0.0f)) continue;
        if (x > top || isnan(x)) top = x; /* sticks: nothing compares greater than NaN */
    }
    return top;
}

static double column_norm(const block_rows *b, size_t j, double n)
{
    const double top = column_top(b, j);
    double sum = 0.0;
    if (!(top > 0.0)) return top;
    for (size_t r = 0; r < b->count; r++) {
        const double w = (double)ry_row_count(b->at, ry_query_row(b->at, b->first + r));
        if (w > 0.0) sum += w * pow((double)b->a[r * b->at->n_tokens + j] / top, n);
    }
    return top * pow(sum, 1.0 / n);
}

static double column_log(const block_rows *b, size_t j)
{
    double sum = 0.0;
    for (size_t r = 0; r < b->count; r++) {
        const double w = (double)ry_row_count(b->at, ry_query_row(b->at, b->first + r));
        const double x = (double)b->a[r * b->at->n_tokens + j];
        if (w > 0.0 && x != 0.0) sum += w * x * log(x);
    }
    return sum;
}

/* The sums of this block's rows over every column: one row of parts, or two (column_stat.h). */
static void sum_columns(const block_rows *b, double *part)
{
    const ry_attention *at = b->at;
    const size_t N = at->n_tokens;
    const double n = at->columns.order;

    for (size_t r = 0; at->columns.skip_diagonal && r < b->count; r++)
        b->a[r * N + ry_query_row(at, b->first + r)] = 0.0f;
    if (at->columns.kind == RY_COLUMN_ENTROPY) {
        for (size_t j = 0; j < N; j++) part[j] = column_power(b, j, 1.0) * (double)N;
        part += N;
    }
    for (size_t j = 0; j < N; j++) switch (ry_column_stat_of(&at->columns)) {
        case RY_STAT_POWER: part[j] = column_power(b, j, n) * pow((double)N, n); break;
        case RY_STAT_TOP: part[j] = column_top(b, j); break;
        case RY_STAT_NORM: part[j] = column_norm(b, j, n); break;
        case RY_STAT_LOG: part[j] = column_log(b, j); break;
        }
}

static RY_DECL_ATTENTION(attention_block)
{
    const size_t N = at->n_tokens, queries = ry_query_count(at);
    const size_t sets = ry_column_sets(&at->columns, at->n_heads);
    const int each = at->columns.each_head;
    const float share = 1.0f / (float)at->n_heads;
    float *p = scratch;
    block_rows b = {at, block * ROWS, 0, scratch + N};
    double *part = at->column_parts ? at->column_parts + block * sets * N : NULL;

    b.count = queries - b.first < ROWS ? queries - b.first : ROWS;
    for (size_t h = 0; h < at->n_heads; h++) {
        for (size_t r = 0; r < b.count; r++) {
            probabilities(at, h, ry_query_row(at, b.first + r), p);
            if (at->out) weigh_values(at, h, b.first + r, p);
            if (at->class_row && b.first + r == 0) add_row(at->class_row, p, N, share, h == 0);
            if (part) add_row(b.a + r * N, p, N, each ? 1.0f : share, each || h == 0);
        }
        if (part && each) sum_columns(&b, part + h * (sets / at->n_heads) * N);
    }
    if (part && !each) sum_columns(&b, part);
}

void ry_attention_init(ry_kernels *k)
{
    k->attention = attention_block;
    k->attention_rows = ROWS;
}
