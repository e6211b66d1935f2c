/* cached.c - attention to a cache in plain C: the specification of the other levels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/cached.h"

#include "base/half.h"
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 6 }; /* queries that any level has at work */

size_t ry_cached_scratch(size_t context)
{
    const size_t row = (context + RY_CACHE_BLOCK - 1) / RY_CACHE_BLOCK * RY_CACHE_BLOCK;
    return MOST_ROWS * row;
}

/* Where element c of row j of head h is, in k and in v. */
static size_t place_k(const ry_cache *m, size_t h, size_t j, size_t c)
{
    const size_t head = j / RY_CACHE_BLOCK * ry_cache_stride(m) + h * m->head * RY_CACHE_BLOCK;
    return head + c * RY_CACHE_BLOCK + j % RY_CACHE_BLOCK;
}

static size_t place_v(const ry_cache *m, size_t h, size_t j, size_t c)
{
    const size_t head = j / RY_CACHE_BLOCK * ry_cache_stride(m) + h * m->head * RY_CACHE_BLOCK;
    return head + j % RY_CACHE_BLOCK * m->head + c;
}

static float get(const ry_cache *m, const void *base, size_t i)
{
    return m->half ? ry_half_to_float(((const uint16_t *)base)[i]) : ((const float *)base)[i];
}

static void put(const ry_cache *m, void *base, size_t i, float x)
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
            put(cache, cache->k, place_k(cache, h, position, c), k[h * d + c]);
            put(cache, cache->v, place_v(cache, h, position, c), v[h * d + c]);
        }
}

/* p[0 .. keys) = softmax of q . k */
static void probabilities(const ry_cached *at, const float *q, size_t keys, float *p)
{
    const ry_cache *m = at->cache;
    const float scale = 1.0f / sqrtf((float)m->head);
    float top = -INFINITY, sum = 0.0f;
    for (size_t j = 0; j < keys; j++) {
        p[j] = 0.0f;
        for (size_t c = 0; c < m->head; c++)
            p[j] += q[c] * get(m, m->k, place_k(m, at->cache_head, j, c));
        if (p[j] > top) top = p[j];
    }
    for (size_t j = 0; j < keys; j++) sum += p[j] = expf((p[j] - top) * scale);
    for (size_t j = 0; j < keys; j++) p[j] /= sum;
}

static RY_DECL_CACHED(cached)
{
    const ry_cache *m = at->cache;
    for (size_t i = 0; i < at->n_rows * at->group; i++) {
        const size_t r = i / at->group, column = i % at->group * m->head, keys = at->first + r + 1;
        float *out = at->out + r * at->out_row + column;
        probabilities(at, at->q + r * at->q_row + column, keys, scratch);
        memset(out, 0, m->head * sizeof(float));
        for (size_t j = 0; j < keys; j++)
            for (size_t c = 0; c < m->head; c++)
                out[c] += scratch[j] * get(m, m->v, place_v(m, at->cache_head, j, c));
    }
}

void ry_cached_init(ry_kernels *k)
{
    k->cached = cached;
    k->cache_row = cache_row;
}
