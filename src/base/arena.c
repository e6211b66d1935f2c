/* arena.c -
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/alloc.h"
#include "base/checked.h"

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
