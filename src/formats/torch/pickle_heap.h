/* pickle_heap.h - the memory of the pickle machine: nodes, item cells, stack, marks, memo; each
 * with a limit. Only pickle*.c see it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PICKLE_HEAP_H
#define RY_PICKLE_HEAP_H

#include "formats/torch/pickle.h"

/* Nodes that always exist. */
enum { NODE_NONE, NODE_FALSE, NODE_TRUE, NODE_EMPTY_TUPLE, N_FIXED_NODES };

typedef struct ry_pickle_cell {
    uint32_t node, next; /* next == 0: the last; cell 0 is never used */
} ry_pickle_cell;

struct ry_pickle {
    renyi_allocator allocator;
    ry_pickle_node *nodes;
    ry_pickle_cell *cells;
    uint32_t *stack, *marks, *memo; /* nodes; stack heights; nodes (UINT32_MAX = empty) */
    size_t n_nodes, n_cells, n_stack, n_marks, n_memo;
    size_t cap_nodes, cap_cells, cap_stack, cap_marks, cap_memo;
    uint32_t root;
};

/* Each returns NULL on success or, as a static text, why not. */
const char *ry_heap_push(ry_pickle *p, uint32_t node);
const char *ry_heap_pop(ry_pickle *p, uint32_t *node); /* not below the last mark */
const char *ry_heap_top(ry_pickle *p, uint32_t *node);
const char *ry_heap_mark(ry_pickle *p);
const char *ry_heap_unmark(ry_pickle *p, size_t *height); /* items since: stack[height, n_stack) */
const char *ry_heap_store(ry_pickle *p, uint32_t slot, uint32_t node);
const char *ry_heap_recall(ry_pickle *p, uint32_t slot, uint32_t *node);
const char *ry_heap_new(ry_pickle *p, ry_pickle_node n, uint32_t *node);
const char *ry_heap_append(ry_pickle *p, uint32_t container, uint32_t item);

#endif
