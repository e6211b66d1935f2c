/* merge_list.h - symbols in a row, of which neighbours are joined: always those of the lowest rank,
 * the leftmost among equals, until no rule joins any. A heap holds the joins that are possible, so
 * that n symbols take n log n steps whatever they are.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MERGE_LIST_H
#define RY_MERGE_LIST_H

#include "renyi/renyi.h"

enum { RY_NOWHERE = UINT32_MAX };

typedef struct ry_join {
    uint32_t rank, whole; /* lower ranks come first; the id that both become */
} ry_join;

typedef struct ry_chance ry_chance;

/* By place, which is the symbol's first byte in the text. The memory stays for the next text;
 * zeroed is empty. */
typedef struct ry_merge_list {
    uint32_t *id, *before, *behind; /* [room]; neighbours are places or RY_NOWHERE */
    ry_chance *heap;                /* [3 room] */
    size_t n_heap, room;
    uint32_t last; /* place of the last symbol */
    void *block;
} ry_merge_list;

/* What two neighbours become; 0 = they stay apart. Two texts that differ have ids that differ. */
typedef struct ry_merge_rule {
    int (*join)(const void *self, const ry_merge_list *l, uint32_t left, uint32_t right,
                ry_join *out);
    const void *self;
} ry_merge_rule;

/* An empty list for a text of n bytes. */
renyi_status ry_merge_list_reset(ry_merge_list *l, size_t n, const renyi_allocator *al,
                                 renyi_error *err) RENYI_CHECK;
void ry_merge_list_free(ry_merge_list *l, const renyi_allocator *al);

/* The next symbol; the first has place 0, and places grow. */
void ry_merge_list_put(ry_merge_list *l, uint32_t place, uint32_t id);

/* Joins all that can be. What is left: place 0, behind[0], ... */
void ry_merge_list_run(ry_merge_list *l, const ry_merge_rule *rule);

#endif
