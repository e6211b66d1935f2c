/* vqa_index.c - see vqa.h: finding questions by their texts. Whoever looks something up compares
 * the texts themselves: a hash alone proves nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <stdlib.h>

uint64_t ry_vqa_key(const char *a, const char *b)
{
    return ry_hash_add_text(ry_hash_add_text(RY_HASH_START, a), b);
}

renyi_status ry_vqa_index_add(ry_vqa_index *x, uint64_t hash, uint32_t place,
                              const renyi_allocator *al, renyi_error *err)
{
    if (!ry_grow(al, (void **)&x->slots, &x->capacity, x->count, sizeof *x->slots))
        return ry_fail_nomem(err, x->capacity * sizeof *x->slots);
    x->slots[x->count++] = (ry_vqa_slot){hash, place};
    return RENYI_OK;
}

static int by_hash(const void *a, const void *b)
{
    const ry_vqa_slot *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

void ry_vqa_index_sort(ry_vqa_index *x)
{
    if (x->count) qsort(x->slots, x->count, sizeof *x->slots, by_hash);
}

const ry_vqa_slot *ry_vqa_index_find(const ry_vqa_index *x, uint64_t hash)
{
    size_t low = 0, high = x->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (x->slots[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low < x->count && x->slots[low].hash == hash ? &x->slots[low] : NULL;
}

const ry_vqa_slot *ry_vqa_index_next(const ry_vqa_index *x, const ry_vqa_slot *slot)
{
    const ry_vqa_slot *next = slot + 1;
    return next < x->slots + x->count && next->hash == slot->hash ? next : NULL;
}

void ry_vqa_index_free(ry_vqa_index *x, const renyi_allocator *al)
{
    ry_free(al, x->slots);
    *x = (ry_vqa_index){0};
}
