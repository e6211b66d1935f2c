/* attention_scalar.c - attention, causal attention, the key/value cache and the Gram matrix in
 * plain C: the specification of the vector levels, and the sizes all levels share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"
#include "kernels/attention/column_stat.h"
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

/* p[n] = softmax(scale * p) */
static void softmax(float *p, size_t n, float scale)
{
    float top = -INFINITY, sum = 0.0f;
    for (size_t j = 0; j < n; j++)
        if (p[j] > top) top = p[j];
    for (size_t j = 0; j < n; j++) sum += p[j] = expf((p[j] - top) * scale);
    for (size_t j = 0; j < n; j++) p[j] /= sum;
}

/* ---- attention of an image, with column sums ------------------------------------------------- */

enum { ATTENTION_ROWS = 16 }; /* query rows of a block at the scalar level */

size_t ry_attention_blocks(size_t n_rows, size_t rows) { return (n_rows + rows - 1) / rows; }

/* Packed queries [d, rows], probabilities [N padded, rows], their head mean [N padded, rows], and
 * two rows. */
size_t ry_attention_scratch(size_t n_tokens, size_t head, size_t rows)
{
    return (head + 2 * (n_tokens + 16) + 4) * rows;
}

/* p[N] = probabilities of query row i of head h over all keys */
static void probabilities(const ry_attention *at, size_t h, size_t i, float *p)
{
    const size_t C = at->n_heads * at->head, row = at->qkv_row;
    const float *q = at->qkv + i * row + h * at->head;
    const float scale = ry_logit_scale(at->head, at->logit_factor);

    for (size_t j = 0; j < at->n_tokens; j++) {
        const float *k = at->qkv + j * row + C + h * at->head;
        float dot = 0.0f;
        for (size_t c = 0; c < at->head; c++) dot += q[c] * k[c];
        p[j] = dot * scale + (at->key_bias ? at->key_bias[j] : 0.0f);
    }
    softmax(p, at->n_tokens, 1.0f);
}

/* out[r] of head h = sum over keys of p v */
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

/* The query rows of a block, and the matrix whose columns are scored: the mean over the heads, or
 * one head. */
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
        if (x > top || isnan(x)) top = x; /* a NaN stays: nothing compares greater */
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

/* Column sums over the rows of this block: one row of parts, or two (column_stat.h). */
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
    block_rows b = {at, block * ATTENTION_ROWS, 0, scratch + N};
    double *part = at->column_parts ? at->column_parts + block * sets * N : NULL;

    b.count = queries - b.first < ATTENTION_ROWS ? queries - b.first : ATTENTION_ROWS;
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

/* ---- causal attention of a text -------------------------------------------------------------- */

enum { CAUSAL_LANES = 16 }; /* queries that the widest level computes together */

/* Queries [d, lanes], probabilities [N, lanes], and one row. */
size_t ry_causal_scratch(size_t n_tokens, size_t head)
{
    return (head + n_tokens + 1) * CAUSAL_LANES;
}

/* Tokens that query i sees. */
static size_t causal_seen(const ry_causal *at, size_t i)
{
    return at->sees_all ? at->n_tokens : i + 1;
}

/* p = probabilities of query i over the tokens that it sees */
static void causal_probabilities(const ry_causal *at, size_t h, size_t i, float *p)
{
    const size_t C = at->n_heads * at->head, n = causal_seen(at, i);
    const float *q = at->qkv + at->rows[i] * at->qkv_row + h * at->head;

    for (size_t j = 0; j < n; j++) {
        const float *k = at->qkv + at->rows[j] * at->qkv_row + C + h * at->head;
        float dot = 0.0f;
        for (size_t c = 0; c < at->head; c++) dot += q[c] * k[c];
        p[j] = dot / sqrtf((float)at->head);
    }
    softmax(p, n, 1.0f);
}

static void causal_weigh_values(const ry_causal *at, size_t h, size_t i, const float *p)
{
    const size_t C = at->n_heads * at->head, n = causal_seen(at, i);
    float *out = at->out + (i - at->first) * at->out_row + h * at->head;
    memset(out, 0, at->head * sizeof(float));
    for (size_t j = 0; j < n; j++) {
        const float *v = at->qkv + at->rows[j] * at->qkv_row + 2 * C + h * at->head;
        for (size_t c = 0; c < at->head; c++) out[c] += p[j] * v[c];
    }
}

static RY_DECL_CAUSAL(causal_text)
{
    for (size_t h = 0; h < at->n_heads; h++)
        for (size_t i = at->first; i < at->end; i++) {
            causal_probabilities(at, h, i, scratch);
            causal_weigh_values(at, h, i, scratch);
        }
}

/* ---- attention to a key/value cache ---------------------------------------------------------- */

enum { CACHED_ROWS = 6 }; /* queries that any level computes together, at most */

size_t ry_cached_scratch(size_t context)
{
    const size_t row = (context + RY_CACHE_BLOCK - 1) / RY_CACHE_BLOCK * RY_CACHE_BLOCK;
    return CACHED_ROWS * row;
}

/* Where element c of row j of head h is, in k and in v. */
static size_t cache_k_place(const ry_cache *m, size_t h, size_t j, size_t c)
{
    const size_t head = j / RY_CACHE_BLOCK * ry_cache_stride(m) + h * m->head * RY_CACHE_BLOCK;
    return head + c * RY_CACHE_BLOCK + j % RY_CACHE_BLOCK;
}

static size_t cache_v_place(const ry_cache *m, size_t h, size_t j, size_t c)
{
    const size_t head = j / RY_CACHE_BLOCK * ry_cache_stride(m) + h * m->head * RY_CACHE_BLOCK;
    return head + j % RY_CACHE_BLOCK * m->head + c;
}

static float cache_get(const ry_cache *m, const void *base, size_t i)
{
    return m->half ? ry_half_to_float(((const uint16_t *)base)[i]) : ((const float *)base)[i];
}

static void cache_put(const ry_cache *m, void *base, size_t i, float x)
{
    if (m->half)
        ((uint16_t *)base)[i] = ry_half_of(x);
    else
        ((float *)base)[i] = x;
}

static RY_DECL_CACHE_ROW(cache_row)
{
    const size_t d = cache->head;
    for (size_t h = 0; h < cache->n_heads; h++)
        for (size_t c = 0; c < d; c++) {
            cache_put(cache, cache->k, cache_k_place(cache, h, position, c), k[h * d + c]);
            cache_put(cache, cache->v, cache_v_place(cache, h, position, c), v[h * d + c]);
        }
}

/* p[0 .. keys) = probabilities of q over the first rows of the cache */
static void cached_probabilities(const ry_cache *m, size_t h, const float *q, size_t keys, float *p)
{
    for (size_t j = 0; j < keys; j++) {
        p[j] = 0.0f;
        for (size_t c = 0; c < m->head; c++)
            p[j] += q[c] * cache_get(m, m->k, cache_k_place(m, h, j, c));
    }
    softmax(p, keys, 1.0f / sqrtf((float)m->head));
}

static RY_DECL_CACHED(cached)
{
    const ry_cache *m = at->cache;
    for (size_t i = 0; i < at->n_rows * at->group; i++) {
        const size_t r = i / at->group, column = i % at->group * m->head, keys = at->first + r + 1;
        float *out = at->out + r * at->out_row + column;
        cached_probabilities(m, at->cache_head, at->q + r * at->q_row + column, keys, scratch);
        memset(out, 0, m->head * sizeof(float));
        for (size_t j = 0; j < keys; j++)
            for (size_t c = 0; c < m->head; c++)
                out[c] += scratch[j] * cache_get(m, m->v, cache_v_place(m, at->cache_head, j, c));
    }
}

static RY_DECL_CACHED_LOOK(cached_look)
{
    const ry_cache *m = at->cache;
    const size_t heads = m->n_heads * at->group;
    for (size_t r = 0; r < at->n_rows; r++) {
        float *mean = at->mean + r * at->n_columns;
        const size_t keys = at->first + r + 1;
        memset(mean, 0, at->n_columns * sizeof *mean);
        for (size_t h = 0; h < heads; h++) {
            cached_probabilities(m, h / at->group, at->q + r * at->q_row + h * m->head, keys,
                                 scratch);
            for (size_t j = 0; j < at->n_columns && at->column + j < keys; j++)
                mean[j] += scratch[at->column + j];
        }
        for (size_t j = 0; j < at->n_columns; j++) mean[j] /= (float)heads;
    }
}

/* ---- Gram matrix ----------------------------------------------------------------------------- */

enum { GRAM_ROWS = 16 }; /* rows of a block at the scalar level */

size_t ry_gram_blocks(size_t n, size_t rows) { return (n + rows - 1) / rows; }

/* A pass of the block's columns [depth, rows], and its products [n, rows]. */
size_t ry_gram_scratch(size_t n, size_t dim, size_t rows)
{
    return ((dim < RY_GRAM_DEPTH ? dim : RY_GRAM_DEPTH) + n) * rows;
}

static RY_DECL_GRAM(gram)
{
    const size_t first = block * GRAM_ROWS, last = first + GRAM_ROWS < n ? first + GRAM_ROWS : n;
    (void)scratch;
    for (size_t i = first; i < last; i++)
        for (size_t j = 0; j < last; j++) {
            const float *a = z + i * z_row, *b = z + j * z_row;
            float dot = 0.0f;
            for (size_t c = 0; c < dim; c++) dot += a[c] * b[c];
            out[i * out_row + j] = dot;
        }
}

void ry_attention_init_scalar(ry_kernels *k)
{
    k->attention = attention_block;
    k->attention_rows = ATTENTION_ROWS;
    k->causal = causal_text;
    k->cached = cached;
    k->cached_look = cached_look;
    k->cache_row = cache_row;
    k->gram = gram;
    k->gram_rows = GRAM_ROWS;
}
