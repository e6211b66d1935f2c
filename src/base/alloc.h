/* alloc.h - the only door to the heap. Every block carries its size in front, so that a caller's
 * renyi_allocator gets it back on release.
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
void ry_free(const renyi_allocator *al, void *ptr); /* NULL is fine */
char *ry_strdup(const renyi_allocator *al, const char *s);

#endif
