/* alloc.h - memory: blocks of the heap, all of which are allocated here, and arenas that divide one
 * block.
 *
 * A block of a caller's renyi_allocator stores its size in front, because the allocator gets the
 * size back on release. Other blocks do not: nothing writes to their first page before its owner.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ALLOC_H
#define RY_ALLOC_H

#include "renyi/renyi.h"

#include <stddef.h>

#define RY_ALIGN 64 /* a cache line, and the widest vector */

/* `al` may be NULL or empty: then the C library's heap is used. Blocks are aligned to RY_ALIGN.
 * NULL when the size overflows or memory is short. A size of 0 gives a valid block. */
void *ry_alloc(const renyi_allocator *al, size_t count, size_t size);
void *ry_calloc(const renyi_allocator *al, size_t count, size_t size);
void ry_free(const renyi_allocator *al, void *ptr); /* NULL is allowed */
char *ry_strdup(const renyi_allocator *al, const char *s);

/* One block that is divided from front to back in steps of RY_ALIGN bytes. While base is NULL the
 * arena only counts, so the same layout code first measures and then assigns pointers. */
typedef struct ry_arena {
    unsigned char *base; /* NULL while measuring */
    size_t used, cap;
    int overflow; /* a size did not fit in size_t, or the block was too small */
} ry_arena;

/* NULL while measuring or after an overflow. */
void *ry_arena_take(ry_arena *a, size_t count, size_t size);
#define RY_TAKE(arena, count, type) ((type *)ry_arena_take((arena), (count), sizeof(type)))

#endif
