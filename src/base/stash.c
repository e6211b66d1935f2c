/* stash.c - see stash.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/stash.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <string.h>

enum { BLOCK = 1 << 16, STEP = 16 };

/* In front of its bytes; as long as a cache line, which keeps them aligned. */
struct ry_stash_block {
    ry_stash_block *before;
    size_t used, size;
};
enum { HEADER = RY_ALIGN };
_Static_assert(sizeof(struct ry_stash_block) <= HEADER, "the header fits");

static ry_stash_block *add_block(ry_stash *p, size_t bytes)
{
    const size_t size = bytes > BLOCK ? bytes : BLOCK;
    size_t total;
    if (!ry_add_size(size, HEADER, &total)) return NULL;
    ry_stash_block *b = ry_calloc(&p->al, total, 1);
    if (!b) return NULL;
    b->size = size;
    b->before = p->last;
    p->last = b;
    return b;
}

void *ry_stash_take(ry_stash *p, size_t count, size_t size)
{
    size_t bytes;
    if (!ry_mul_size(count, size, &bytes) || !ry_add_size(bytes, STEP - 1, &bytes)) return NULL;
    bytes &= ~(size_t)(STEP - 1);
    ry_stash_block *b = p->last;
    if (!b || b->size - b->used < bytes) b = add_block(p, bytes);
    if (!b) return NULL;
    unsigned char *piece = (unsigned char *)b + HEADER + b->used;
    b->used += bytes;
    return piece;
}

char *ry_stash_text(ry_stash *p, const char *s)
{
    const size_t n = strlen(s);
    char *copy = ry_stash_take(p, n + 1, 1);
    if (copy) memcpy(copy, s, n + 1);
    return copy;
}

void ry_stash_free(ry_stash *p)
{
    while (p->last) {
        ry_stash_block *b = p->last;
        p->last = b->before;
        ry_free(&p->al, b);
    }
}
