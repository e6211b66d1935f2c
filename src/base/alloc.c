/* alloc.c - memory: blocks of the heap, all of which are allocated here, and arenas that divide one
 * block.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* madvise */
#include "base/alloc.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Large blocks ask the kernel for huge pages: weights and activations are streamed, and TLB misses
 * of 4 KiB pages cost several percent. */
#define HUGE_PAGE ((size_t)2 << 20)

static void *system_alloc(size_t size, size_t align)
{
    void *p = NULL;
    if (size >= HUGE_PAGE) align = HUGE_PAGE;
    if (posix_memalign(&p, align, size ? size : 1)) return NULL;
#ifdef MADV_HUGEPAGE
    if (align == HUGE_PAGE) madvise(p, size & ~(HUGE_PAGE - 1), MADV_HUGEPAGE); /* only a hint */
#endif
    return p;
}

void *ry_alloc(const renyi_allocator *al, size_t count, size_t size)
{
    size_t bytes;
    if (!ry_mul_size(count, size, &bytes) || !ry_add_size(bytes, RY_ALIGN, &bytes)) return NULL;
    if (!al || !al->alloc) return system_alloc(bytes - RY_ALIGN, RY_ALIGN);
    unsigned char *base = al->alloc(al->user, bytes, RY_ALIGN);
    if (!base) return NULL;
    memcpy(base, &bytes, sizeof bytes);
    return base + RY_ALIGN;
}

void *ry_calloc(const renyi_allocator *al, size_t count, size_t size)
{
    void *p = ry_alloc(al, count, size);
    if (p) memset(p, 0, count * size); /* the product was checked by ry_alloc */
    return p;
}

void ry_free(const renyi_allocator *al, void *ptr)
{
    if (!al || !al->alloc) {
        free(ptr);
        return;
    }
    if (!ptr) return;
    unsigned char *base = (unsigned char *)ptr - RY_ALIGN;
    size_t bytes;
    memcpy(&bytes, base, sizeof bytes);
    al->release(al->user, base, bytes);
}

char *ry_strdup(const renyi_allocator *al, const char *s)
{
    const size_t n = strlen(s) + 1;
    char *copy = ry_alloc(al, n, 1);
    if (copy) memcpy(copy, s, n);
    return copy;
}

void *ry_arena_take(ry_arena *a, size_t count, size_t size)
{
    size_t bytes, end;
    if (!ry_mul_size(count, size, &bytes) || !ry_add_size(bytes, RY_ALIGN - 1, &bytes) ||
        !ry_add_size(a->used, bytes & ~(size_t)(RY_ALIGN - 1), &end)) {
        a->overflow = 1;
        return NULL;
    }
    unsigned char *p = a->base ? a->base + a->used : NULL;
    if (a->base && end > a->cap) {
        a->overflow = 1;
        return NULL;
    }
    a->used = end;
    return p;
}
