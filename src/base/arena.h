/* arena.h - one block handed out front to back in 64-byte steps. With base == NULL nothing is
 * handed out and only the total is counted, so the same layout code measures and binds.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ARENA_H
#define RY_ARENA_H

#include <stddef.h>

typedef struct ry_arena {
    unsigned char *base; /* NULL while measuring */
    size_t used, cap;
    int overflow; /* a size did not fit in size_t, or the block was too small */
} ry_arena;

/* NULL while measuring or after an overflow. */
void *ry_arena_take(ry_arena *a, size_t count, size_t size);
#define RY_TAKE(arena, count, type) ((type *)ry_arena_take((arena), (count), sizeof(type)))

#endif
