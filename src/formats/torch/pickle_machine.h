/* pickle_machine.h - the memory and the state of the pickle machine; only pickle*.c include it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PICKLE_MACHINE_H
#define RY_PICKLE_MACHINE_H

#include "base/status.h"
#include "formats/torch/pickle.h"

/* ---- pickle_heap.c: nodes, cells, stack, marks and memo, each with a limit ------------------- */

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

/* Each returns NULL on success, or a static text that says why it failed. */
const char *ry_heap_push(ry_pickle *p, uint32_t node);
const char *ry_heap_pop(ry_pickle *p, uint32_t *node); /* not below the last mark */
const char *ry_heap_top(ry_pickle *p, uint32_t *node);
const char *ry_heap_mark(ry_pickle *p);
const char *ry_heap_unmark(ry_pickle *p, size_t *height); /* items since: stack[height, n_stack) */
const char *ry_heap_store(ry_pickle *p, uint32_t slot, uint32_t node);
const char *ry_heap_recall(ry_pickle *p, uint32_t slot, uint32_t *node);
const char *ry_heap_new(ry_pickle *p, ry_pickle_node n, uint32_t *node);
const char *ry_heap_append(ry_pickle *p, uint32_t container, uint32_t item);

/* ---- the machine ----------------------------------------------------------------------------- */

typedef struct ry_machine {
    ry_pickle *p;
    const ry_pickle_source *source;
    const unsigned char *at, *end, *op_at; /* op_at: the opcode being run */
    renyi_error *err;
    int done;
} ry_machine;

/* Fail with the file, the byte of the opcode, and `why`; ry_machine_bad is RENYI_ERR_FORMAT. */
renyi_status ry_machine_stop(const ry_machine *m, renyi_status code, const char *why);
renyi_status ry_machine_bad(const ry_machine *m, const char *why);

/* The result of a ry_heap_* call as a status; NULL is success. */
renyi_status ry_machine_heap(const ry_machine *m, const char *why);
#define HEAP(call) RY_TRY(ry_machine_heap(m, (call)))

ry_pickle_node ry_machine_node(ry_pickle_kind kind); /* empty */
renyi_status ry_machine_push(ry_machine *m, ry_pickle_node n);

/* Opcodes of pickle_call.c. */
renyi_status ry_machine_global(ry_machine *m, unsigned char op);
renyi_status ry_machine_stack_global(ry_machine *m, unsigned char op);
renyi_status ry_machine_persistent(ry_machine *m, unsigned char op);
renyi_status ry_machine_call(ry_machine *m, unsigned char op);
renyi_status ry_machine_build(ry_machine *m, unsigned char op);

#endif
