/* cached.h - a cache of the keys and values of a sequence, and attention of its newest rows to it.
 * Elements are float, or half float (base/half.h) to save memory: a decoder reads the whole cache
 * for every token.
 *
 * Rows are stored in blocks of 16, all heads of a block before the next block, so that memory is
 * used front to back as the sequence grows. The keys of a block are transposed: 16 dot products
 * are computed side by side in lanes, without a sum across lanes. The bits of a row depend only on
 * the rows before it, not on the number of queries computed together.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CACHED_H
#define RY_CACHED_H

#include <stddef.h>
#include <stdint.h>

enum { RY_CACHE_BLOCK = 16 };

/* The cache of one layer. */
typedef struct ry_cache {
    size_t n_heads, head; /* G, and d: floats of one head */
    size_t context;       /* capacity in rows, a multiple of RY_CACHE_BLOCK */
    int half;             /* 0 = elements are float, 1 = uint16_t */
    void *k;              /* [context / 16, G, d, 16] */
    void *v;              /* [context / 16, G, 16, d] */
} ry_cache;

/* Elements of k, and of v. */
static inline size_t ry_cache_elements(const ry_cache *c)
{
    return c->n_heads * c->context * c->head;
}

/* Elements from one block of 16 rows to the next. */
static inline size_t ry_cache_stride(const ry_cache *c)
{
    return c->n_heads * c->head * RY_CACHE_BLOCK;
}

/* Writes row `position` from k, v: [G, d]. Threads may write different rows at the same time. */
#define RY_DECL_CACHE_ROW(fn) \
    void fn(const ry_cache *cache, size_t position, const float *k, const float *v)

/* The queries of one head of the cache: n_rows rows with `group` query heads each, which share keys
 * and values. Row r is row first + r of the sequence and sees the rows up to itself. */
typedef struct ry_cached {
    const ry_cache *cache;
    size_t cache_head;
    size_t n_rows, group;
    size_t first;
    const float *q; /* [n_rows, group, d], rows q_row floats apart */
    size_t q_row, out_row;
    float *out; /* [n_rows, group, d], rows out_row floats apart */
} ry_cached;

/* scratch: ry_cached_scratch floats. */
#define RY_DECL_CACHED(fn) void fn(const ry_cached *at, float *scratch)

/* Attention looked at, not applied: how much the rows attend to a range of the cache, averaged over
 * all query heads. `first` is as in ry_cached. */
typedef struct ry_cached_look {
    const ry_cache *cache;
    size_t group; /* query heads for each head of the cache */
    size_t n_rows, first;
    const float *q; /* [n_rows, G * group, d], rows q_row floats apart */
    size_t q_row;
    size_t column, n_columns; /* the range */
    float *mean;              /* [n_rows, n_columns]; 0 for what a row does not see */
} ry_cached_look;

/* scratch: ry_cached_scratch floats. */
#define RY_DECL_CACHED_LOOK(fn) void fn(const ry_cached_look *at, float *scratch)

/* Floats of scratch for one thread, at every CPU level. */
size_t ry_cached_scratch(size_t context);

#endif
