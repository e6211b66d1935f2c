/* buffer.c - memory that grows: arrays of any type, buffers of bytes, and pools of small pieces.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/buffer.h"

#include "base/checked.h"

#include <string.h>

/* ---- arrays -------------------------------------------------------------------------------- */

int ry_reserve(const renyi_allocator *al, void **items, size_t *capacity, size_t count, size_t more,
               size_t size)
{
    enum { FIRST = 16 };
    size_t wanted, twice;
    if (!ry_add_size(count, more, &wanted)) return 0;
    if (wanted <= *capacity) return 1;
    if (!ry_mul_size(*capacity, 2, &twice)) return 0;
    if (wanted < twice) wanted = twice;
    if (wanted < FIRST) wanted = FIRST;
    void *grown = ry_alloc(al, wanted, size);
    if (!grown) return 0;
    if (count) memcpy(grown, *items, count * size);
    ry_free(al, *items);
    *items = grown;
    *capacity = wanted;
    return 1;
}

/* ---- bytes --------------------------------------------------------------------------------- */

int ry_buffer_reserve(ry_buffer *b, size_t more)
{
    enum { FIRST = 4096 };
    void *bytes = b->bytes;
    if (b->failed) return 0;
    if (!b->capacity && more < FIRST) more = FIRST;
    b->failed = !ry_reserve(b->al, &bytes, &b->capacity, b->size, more, 1);
    b->bytes = bytes;
    if (b->failed && !ry_add_size(b->size, more, &b->wanted)) b->wanted = SIZE_MAX;
    return !b->failed;
}

void ry_buffer_put(ry_buffer *b, const void *bytes, size_t n)
{
    if (!n || !ry_buffer_reserve(b, n)) return;
    memcpy(b->bytes + b->size, bytes, n);
    b->size += n;
}

void ry_buffer_text(ry_buffer *b, const char *text) { ry_buffer_put(b, text, strlen(text)); }

void ry_buffer_free(ry_buffer *b)
{
    ry_free(b->al, b->bytes);
    *b = (ry_buffer){.al = b->al};
}

/* ---- pools --------------------------------------------------------------------------------- */

enum { BLOCK = 1 << 16, STEP = 16 };

/* Stands in front of its bytes; a cache line long, which keeps them aligned. */
typedef struct ry_pool_block {
    struct ry_pool_block *before;
    size_t used, size;
} ry_pool_block;
enum { HEADER = RY_ALIGN };
_Static_assert(sizeof(ry_pool_block) <= HEADER, "the header fits");

static ry_pool_block *add_block(ry_pool *p, size_t bytes)
{
    const size_t size = bytes > BLOCK ? bytes : BLOCK;
    size_t total;
    if (!ry_add_size(size, HEADER, &total)) return NULL;
    ry_pool_block *b = ry_calloc(p->al, total, 1);
    if (!b) return NULL;
    b->size = size;
    b->before = p->last;
    p->last = b;
    return b;
}

void *ry_pool_take(ry_pool *p, size_t count, size_t size)
{
    size_t bytes;
    if (!ry_mul_size(count, size, &bytes) || !ry_add_size(bytes, STEP - 1, &bytes)) return NULL;
    bytes &= ~(size_t)(STEP - 1);
    ry_pool_block *b = p->last;
    if (!b || b->size - b->used < bytes) b = add_block(p, bytes);
    if (!b) return NULL;
    unsigned char *piece = (unsigned char *)b + HEADER + b->used;
    b->used += bytes;
    return piece;
}

char *ry_pool_text(ry_pool *p, const char *s)
{
    const size_t n = strlen(s);
    char *copy = ry_pool_take(p, n + 1, 1);
    if (copy) memcpy(copy, s, n + 1);
    return copy;
}

void ry_pool_free(ry_pool *p)
{
    while (p->last) {
        ry_pool_block *b = p->last;
        p->last = b->before;
        ry_free(p->al, b);
    }
}
