/* stash.h - many small pieces of memory that are given back all at once. Pieces never move.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_STASH_H
#define RY_STASH_H

#include "renyi/renyi.h"

typedef struct ry_stash_block ry_stash_block;

/* Set the allocator and leave the rest zero. */
typedef struct ry_stash {
    renyi_allocator al;
    ry_stash_block *last; /* the block that pieces come from, and behind it those that are full */
} ry_stash;

/* Zeroed and aligned to 16 bytes; NULL when the size overflows or memory is short. A count of 0
 * gives a valid piece. */
void *ry_stash_take(ry_stash *p, size_t count, size_t size);
#define RY_STASH_TAKE(stash, count, type) ((type *)ry_stash_take((stash), (count), sizeof(type)))

char *ry_stash_text(ry_stash *p, const char *s); /* a copy */
void ry_stash_free(ry_stash *p);                 /* all pieces; the stash is empty then */

#endif
