/* buffer.h - memory that grows: arrays of any type, buffers of bytes, and pools of small pieces.
 *
 * An array or buffer moves when it grows; pieces of a pool never move and are freed together.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BUFFER_H
#define RY_BUFFER_H

#include "base/alloc.h"

/* ---- arrays -------------------------------------------------------------------------------- */

/* Space for `more` items of `size` bytes behind the first `count` of *items [*capacity], which may
 * be NULL. The capacity at least doubles. 0 = no memory: nothing has changed. */
int ry_reserve(const renyi_allocator *al, void **items, size_t *capacity, size_t count, size_t more,
               size_t size);

/* Space for one more item. */
static inline int ry_grow(const renyi_allocator *al, void **items, size_t *capacity, size_t count,
                          size_t size)
{
    return ry_reserve(al, items, capacity, count, 1, size);
}

/* ---- bytes --------------------------------------------------------------------------------- */

/* Set the allocator and leave the rest zero. After a failed allocation `failed` is 1 and nothing
 * more is stored, so that the caller checks once, at the end. */
typedef struct ry_buffer {
    const renyi_allocator *al;
    char *bytes; /* [capacity]; owned; the first `size` are used */
    size_t size, capacity;
    size_t wanted; /* bytes that the failed allocation was to give space for */
    int failed;
} ry_buffer;

int ry_buffer_reserve(ry_buffer *b, size_t more); /* 0 = failed */
void ry_buffer_put(ry_buffer *b, const void *bytes, size_t n);
void ry_buffer_text(ry_buffer *b, const char *text); /* without its NUL */
void ry_buffer_free(ry_buffer *b);                   /* empty again */

/* ---- pools --------------------------------------------------------------------------------- */

/* Set the allocator, which must live as long as the pool, and leave the rest zero. */
typedef struct ry_pool {
    const renyi_allocator *al;
    struct ry_pool_block *last; /* the block that pieces come from; it links to the full ones */
} ry_pool;

/* Zeroed and aligned to 16 bytes; NULL when the size overflows or memory is short. A count of 0
 * gives a valid piece. */
void *ry_pool_take(ry_pool *p, size_t count, size_t size);
#define RY_POOL_TAKE(pool, count, type) ((type *)ry_pool_take((pool), (count), sizeof(type)))

char *ry_pool_text(ry_pool *p, const char *s); /* a copy */
void ry_pool_free(ry_pool *p);                 /* all pieces; the pool is empty again */

#endif
