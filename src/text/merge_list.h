/* merge_list.h - a row of symbols whose neighbors are joined in the order of their ranks.
 *
 * The join with the lowest rank comes first, the leftmost of equal ones, until the rule joins no
 * more. The possible joins are in a heap, so n symbols always take O(n log n) steps.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MERGE_LIST_H
#define RY_MERGE_LIST_H

#include "renyi/renyi.h"

#define RY_NOWHERE UINT32_MAX

typedef struct ry_join {
    uint32_t rank, whole; /* lower ranks come first; the id of the result */
} ry_join;

typedef struct ry_candidate ry_candidate;

/* Arrays are indexed by place, the offset of the symbol in the text. The memory is kept for the
 * next text. A zeroed list is empty. */
typedef struct ry_merge_list {
    uint32_t *id, *before, *behind; /* [capacity]; neighbors are places or RY_NOWHERE */
    ry_candidate *heap;             /* [3 capacity] */
    size_t n_heap, capacity;
    uint32_t last; /* place of the last symbol */
    void *block;
} ry_merge_list;

/* The result of joining two neighbors; 0 = they are not joined. Different texts must have different
 * ids. */
typedef struct ry_merge_rule {
    int (*join)(const void *self, const ry_merge_list *l, uint32_t left, uint32_t right,
                ry_join *out);
    const void *self;
} ry_merge_rule;

/* An empty list for a text of n bytes. */
renyi_status ry_merge_list_reset(ry_merge_list *l, size_t n, const renyi_allocator *al,
                                 renyi_error *err) RENYI_CHECK;
void ry_merge_list_free(ry_merge_list *l, const renyi_allocator *al);

/* Adds a symbol; the first has place 0, and places increase. */
void ry_merge_list_put(ry_merge_list *l, uint32_t place, uint32_t id);

/* Joins all that can be joined. The remaining symbols are at place 0, behind[0], ... */
void ry_merge_list_run(ry_merge_list *l, const ry_merge_rule *rule);

#endif
