/* cached_template.h - attention to a key/value cache for any vector width.
 *
 * Queries are computed CACHED_ROWS at a time, or alone. A query alone uses more vectors of keys or
 * columns, because with a single sum each multiply-add would wait for the one before. Every logit
 * is one chain of multiply-adds along the head, and every output one along the keys, so the bits
 * do not depend on which queries are computed together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/cached.h"
#include "kernels/kernels.h"
#include "kernels/simd.h"

#include <math.h>

enum {
    CACHED_ROWS = 6,                                       /* queries that are computed together */
    BLOCK_VECTORS = RY_CACHE_BLOCK / VL,                   /* vectors of a block of keys */
    GROUP_VECTORS = BLOCK_VECTORS > 2 ? BLOCK_VECTORS : 2, /* vectors of sums per query */
    ALONE_VECTORS = 8                                      /* vectors of sums of a query alone */
};

typedef struct cached_view {
    const ry_cache *cache;
    size_t head;   /* offset of the head in a block */
    size_t stride; /* elements from one block to the next */
    const float *q[CACHED_ROWS];
    float *out[CACHED_ROWS];
    size_t keys[CACHED_ROWS]; /* rows that each query sees; the last query sees most */
    float *p[CACHED_ROWS];    /* [keys, rounded up to whole blocks] logits, then exponentials */
    float inverse[CACHED_ROWS];
} cached_view;

RY_INLINE vf cached_load(const int half, const void *base, size_t i)
{
    return half ? vf_load_half((const uint16_t *)base + i) : vf_load((const float *)base + i);
}

/* The last lanes of a head whose d is not a multiple of VL. */
RY_INLINE vf cached_load_upto(const int half, const void *base, size_t i, size_t left)
{
    uint16_t rest[VL] = {0};
    if (!half) return vf_load_upto((const float *)base + i, left);
    if (left >= VL) return vf_load_half((const uint16_t *)base + i);
    for (size_t c = 0; c < left; c++) rest[c] = ((const uint16_t *)base)[i + c];
    return vf_load_half(rest);
}

RY_INLINE size_t whole_blocks(size_t keys)
{
    return (keys + RY_CACHE_BLOCK - 1) / RY_CACHE_BLOCK * RY_CACHE_BLOCK;
}

/* p[r][j .. j + nv*VL] = q_r . k_j for n queries; j is the first row of a block */
RY_INLINE void cached_logits_of(const int n, const int nv, const int half, const cached_view *b,
                                size_t j)
{
    const size_t d = b->cache->head, first = b->head + j / RY_CACHE_BLOCK * b->stride;
    vf acc[CACHED_ROWS][ALONE_VECTORS];
    RY_UNROLL
    for (int r = 0; r < n; r++) RY_UNROLL
    for (int v = 0; v < nv; v++) acc[r][v] = vf_zero();
    for (size_t c = 0; c < d; c++) {
        vf k[ALONE_VECTORS];
        RY_UNROLL
        for (int v = 0; v < nv; v++) {
            const size_t lane = (size_t)v * VL % RY_CACHE_BLOCK,
                         block = (size_t)v * VL / RY_CACHE_BLOCK;
            k[v] = cached_load(half, b->cache->k,
                               first + block * b->stride + c * RY_CACHE_BLOCK + lane);
        }
        RY_UNROLL
        for (int r = 0; r < n; r++) {
            const vf q = vf_bcast(b->q[r] + c);
            RY_UNROLL
            for (int v = 0; v < nv; v++) acc[r][v] = vf_fma(q, k[v], acc[r][v]);
        }
    }
    RY_UNROLL
    for (int r = 0; r < n; r++) RY_UNROLL
    for (int v = 0; v < nv; v++) vf_store(b->p[r] + j + v * VL, acc[r][v]);
}

RY_INLINE void cached_logits(const int n, const int half, const cached_view *b)
{
    const int nv = n == 1 ? ALONE_VECTORS : GROUP_VECTORS;
    const size_t end = whole_blocks(b->keys[n - 1]);
    size_t j = 0;
    for (; j + (size_t)nv * VL <= end; j += (size_t)nv * VL) cached_logits_of(n, nv, half, b, j);
    for (; j < end; j += RY_CACHE_BLOCK) cached_logits_of(n, BLOCK_VECTORS, half, b, j);
}

RY_INLINE float largest_lane(vf v)
{
    float f[VL], top;
    vf_store(f, v);
    top = f[0];
    for (int i = 1; i < VL; i++) top = f[i] > top ? f[i] : top;
    return top;
}

/* p = exp((p - max) / sqrt d) over `keys`, 0 after them up to `end`. Returns 1 / sum. */
static float cached_exponentials(float *p, size_t keys, size_t end, float scale)
{
    const size_t whole = whole_blocks(keys);
    for (size_t j = keys; j < whole; j++) p[j] = -INFINITY;
    vf top = vf_load(p), sum = vf_zero();
    for (size_t j = VL; j < whole; j += VL) top = vf_max(top, vf_load(p + j));
    top = vf_set1(largest_lane(top));
    for (size_t j = 0; j < whole; j += VL)
        vf_store(p + j, vf_exp(vf_mul(vf_sub(vf_load(p + j), top), vf_set1(scale))));
    for (size_t j = keys; j < whole || j < end; j++) p[j] = 0.0f;
    for (size_t j = 0; j < whole; j += VL) sum = vf_add(sum, vf_load(p + j));
    return 1.0f / vf_sum(sum);
}

/* out[r][c .. c + nv*VL] = p_r . v / sum; `left` columns exist */
RY_INLINE void cached_values_of(const int n, const int nv, const int half, const cached_view *b,
                                size_t c, size_t left)
{
    const size_t d = b->cache->head, keys = b->keys[n - 1];
    vf acc[CACHED_ROWS][ALONE_VECTORS];
    RY_UNROLL
    for (int r = 0; r < n; r++) RY_UNROLL
    for (int v = 0; v < nv; v++) acc[r][v] = vf_zero();
    for (size_t j = 0; j < keys; j++) {
        const size_t row = j / RY_CACHE_BLOCK * b->stride + j % RY_CACHE_BLOCK * d;
        const size_t at = b->head + row + c;
        vf value[ALONE_VECTORS];
        RY_UNROLL
        for (int v = 0; v < nv; v++)
            value[v] = nv > 1 ? cached_load(half, b->cache->v, at + (size_t)v * VL)
                              : cached_load_upto(half, b->cache->v, at, left);
        RY_UNROLL
        for (int r = 0; r < n; r++) {
            const vf p = vf_bcast(b->p[r] + j);
            RY_UNROLL
            for (int v = 0; v < nv; v++) acc[r][v] = vf_fma(p, value[v], acc[r][v]);
        }
    }
    RY_UNROLL
    for (int r = 0; r < n; r++) RY_UNROLL
    for (int v = 0; v < nv; v++)
        vf_store_upto(b->out[r] + c + v * VL, vf_mul(acc[r][v], vf_bcast(b->inverse + r)),
                      nv > 1 ? VL : left);
}

RY_INLINE void cached_values(const int n, const int half, const cached_view *b)
{
    const size_t d = b->cache->head;
    size_t c = 0;
    if (n == 1) {
        for (; c + ALONE_VECTORS * VL <= d; c += ALONE_VECTORS * VL)
            cached_values_of(n, ALONE_VECTORS, half, b, c, VL);
        for (; c + 4 * VL <= d; c += 4 * VL) cached_values_of(n, 4, half, b, c, VL);
    }
    for (; c + 2 * VL <= d; c += 2 * VL) cached_values_of(n, 2, half, b, c, VL);
    for (; c < d; c += VL) cached_values_of(n, 1, half, b, c, d - c);
}

RY_INLINE void cached_weights(const int n, const int half, cached_view *b)
{
    const float scale = 1.0f / sqrtf((float)b->cache->head);
    cached_logits(n, half, b);
    for (int r = 0; r < n; r++)
        b->inverse[r] = cached_exponentials(b->p[r], b->keys[r], b->keys[n - 1], scale);
}

RY_INLINE void cached_tile(const int n, const int half, cached_view *b)
{
    cached_weights(n, half, b);
    cached_values(n, half, b);
}

static void cached_one(cached_view *b) { cached_tile(1, 0, b); }
static void cached_one_half(cached_view *b) { cached_tile(1, 1, b); }
static void cached_many(cached_view *b) { cached_tile(CACHED_ROWS, 0, b); }
static void cached_many_half(cached_view *b) { cached_tile(CACHED_ROWS, 1, b); }

static RY_DECL_CACHED(cached)
{
    const ry_cache *m = at->cache;
    const size_t count = at->n_rows * at->group, p_row = whole_blocks(at->first + at->n_rows);
    cached_view b = {.cache = m, .stride = ry_cache_stride(m)};
    b.head = at->cache_head * m->head * RY_CACHE_BLOCK;
    for (size_t i = 0, n; i < count; i += n) {
        n = count - i == 1 ? 1 : CACHED_ROWS; /* unused rows repeat the last query */
        for (size_t r = 0; r < n; r++) {
            const size_t query = i + r < count ? i + r : count - 1, row = query / at->group;
            const size_t column = query % at->group * m->head;
            b.q[r] = at->q + row * at->q_row + column;
            b.out[r] = at->out + row * at->out_row + column;
            b.keys[r] = at->first + row + 1;
            b.p[r] = scratch + r * p_row;
        }
        if (n == 1)
            (m->half ? cached_one_half : cached_one)(&b);
        else
            (m->half ? cached_many_half : cached_many)(&b);
    }
}

/* ---- looking at attention -------------------------------------------------------------------- */

static void look_one(cached_view *b) { cached_weights(1, 0, b); }
static void look_one_half(cached_view *b) { cached_weights(1, 1, b); }
static void look_many(cached_view *b) { cached_weights(CACHED_ROWS, 0, b); }
static void look_many_half(cached_view *b) { cached_weights(CACHED_ROWS, 1, b); }

/* mean += the probabilities of one query. Exponentials are 0 up to the keys of the last query of
 * its tile, `end`; nothing is there after them. */
static void look_add(float *mean, const ry_cached_look *at, const float *p, float inverse,
                     size_t end)
{
    const size_t stop = at->column + at->n_columns < end ? at->column + at->n_columns : end;
    for (size_t j = at->column; j < stop; j++) mean[j - at->column] += p[j] * inverse;
}

/* Query heads one after the other, so that the order of every sum is fixed. */
static RY_DECL_CACHED_LOOK(cached_look)
{
    const ry_cache *m = at->cache;
    const size_t heads = m->n_heads * at->group, p_row = whole_blocks(at->first + at->n_rows);
    cached_view b = {.cache = m, .stride = ry_cache_stride(m)};
    for (size_t i = 0; i < at->n_rows * at->n_columns; i++) at->mean[i] = 0.0f;
    for (size_t h = 0; h < heads; h++)
        for (size_t i = 0, n; i < at->n_rows; i += n) {
            n = at->n_rows - i == 1 ? 1 : CACHED_ROWS; /* unused rows repeat the last one */
            b.head = h / at->group * m->head * RY_CACHE_BLOCK;
            for (size_t r = 0; r < n; r++) {
                const size_t row = i + r < at->n_rows ? i + r : at->n_rows - 1;
                b.q[r] = at->q + row * at->q_row + h * m->head;
                b.keys[r] = at->first + row + 1;
                b.p[r] = scratch + r * p_row;
            }
            if (n == 1)
                (m->half ? look_one_half : look_one)(&b);
            else
                (m->half ? look_many_half : look_many)(&b);
            for (size_t r = 0; r < n && i + r < at->n_rows; r++)
                look_add(at->mean + (i + r) * at->n_columns, at, b.p[r], b.inverse[r],
                         b.keys[n - 1]);
        }
    for (size_t i = 0; i < at->n_rows * at->n_columns; i++) at->mean[i] /= (float)heads;
}

/* ---- writing rows into the cache ------------------------------------------------------------- */

/* to [d] = x [d] as half floats */
static void cached_store_halves(uint16_t *to, const float *x, size_t d)
{
    uint16_t rest[VL];
    size_t c = 0;
    for (; c + VL <= d; c += VL) vf_store_half(to + c, vf_load(x + c));
    if (c == d) return;
    vf_store_half(rest, vf_load_n(x + c, d - c));
    for (size_t i = 0; c + i < d; i++) to[c + i] = rest[i];
}

/* One key of a block: [d], RY_CACHE_BLOCK elements apart. */
static void cached_store_key(uint16_t *block, const float *k, size_t d)
{
    uint16_t halves[VL];
    for (size_t c = 0; c < d; c += VL) {
        const size_t n = d - c < VL ? d - c : VL;
        vf_store_half(halves, vf_load_upto(k + c, n));
        for (size_t i = 0; i < n; i++) block[(c + i) * RY_CACHE_BLOCK] = halves[i];
    }
}

static RY_DECL_CACHE_ROW(cache_row)
{
    const size_t d = cache->head, lane = position % RY_CACHE_BLOCK;
    const size_t block = position / RY_CACHE_BLOCK * ry_cache_stride(cache);
    for (size_t h = 0; h < cache->n_heads; h++, k += d, v += d) {
        const size_t head = block + h * d * RY_CACHE_BLOCK, at_k = head + lane,
                     at_v = head + lane * d;
        if (cache->half) {
            cached_store_key((uint16_t *)cache->k + at_k, k, d);
            cached_store_halves((uint16_t *)cache->v + at_v, v, d);
            continue;
        }
        float *key = (float *)cache->k + at_k, *value = (float *)cache->v + at_v;
        for (size_t c = 0; c < d; c++) key[c * RY_CACHE_BLOCK] = k[c];
        for (size_t c = 0; c < d; c++) value[c] = v[c];
    }
}
