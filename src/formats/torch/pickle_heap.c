/* pickle_heap.c - the memory of the pickle machine: nodes, cells, stack and marks, with limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/torch/pickle_machine.h"

#include "base/buffer.h"
#include "base/status.h"

#include <string.h>

/* A tensor of a state dict takes about 20 nodes and 30 cells; there are at most 100,000 of them. */
enum { MAX_NODES = 4000000, MAX_CELLS = 8000000, MAX_STACK = 1000000, MAX_MARKS = 100000 };

/* Space for one more item of an array, up to a limit. */
static const char *grow(ry_pickle *p, void **items, size_t item, size_t count, size_t *cap,
                        size_t max)
{
    if (count >= max) return "the pickle is too large: a limit of the reader is reached";
    return ry_grow(&p->allocator, items, cap, count, item) ? NULL : "out of memory";
}

#define GROW(p, what, max) \
    grow((p), (void **)&(p)->what, sizeof *(p)->what, (p)->n_##what, &(p)->cap_##what, (max))

const char *ry_heap_push(ry_pickle *p, uint32_t node)
{
    const char *why = GROW(p, stack, MAX_STACK);
    if (!why) p->stack[p->n_stack++] = node;
    return why;
}

const char *ry_heap_top(ry_pickle *p, uint32_t *node)
{
    const size_t floor = p->n_marks ? p->marks[p->n_marks - 1] : 0;
    if (p->n_stack <= floor) return "the stack is empty";
    *node = p->stack[p->n_stack - 1];
    return NULL;
}

const char *ry_heap_pop(ry_pickle *p, uint32_t *node)
{
    const char *why = ry_heap_top(p, node);
    if (!why) p->n_stack--;
    return why;
}

const char *ry_heap_mark(ry_pickle *p)
{
    const char *why = GROW(p, marks, MAX_MARKS);
    if (!why) p->marks[p->n_marks++] = (uint32_t)p->n_stack;
    return why;
}

const char *ry_heap_unmark(ry_pickle *p, size_t *height)
{
    if (!p->n_marks) return "no mark on the stack";
    *height = p->marks[--p->n_marks];
    return NULL;
}

/* Picklers number their memo 0, 1, 2, ...; a far jump means a crafted file. */
const char *ry_heap_store(ry_pickle *p, uint32_t slot, uint32_t node)
{
    if (slot > p->n_memo + 65536) return "a memo number far beyond those before it";
    while (p->n_memo <= slot) {
        const char *why = GROW(p, memo, MAX_NODES);
        if (why) return why;
        p->memo[p->n_memo++] = UINT32_MAX;
    }
    p->memo[slot] = node;
    return NULL;
}

const char *ry_heap_recall(ry_pickle *p, uint32_t slot, uint32_t *node)
{
    if (slot >= p->n_memo || p->memo[slot] == UINT32_MAX) return "a memo number never stored";
    *node = p->memo[slot];
    return NULL;
}

const char *ry_heap_new(ry_pickle *p, ry_pickle_node n, uint32_t *node)
{
    const char *why = GROW(p, nodes, MAX_NODES);
    if (why) return why;
    *node = (uint32_t)p->n_nodes;
    p->nodes[p->n_nodes++] = n;
    return NULL;
}

const char *ry_heap_append(ry_pickle *p, uint32_t container, uint32_t item)
{
    const char *why = GROW(p, cells, MAX_CELLS);
    if (why) return why;
    if (!p->n_cells) p->n_cells = 1; /* cell 0 means "none" */
    const uint32_t cell = (uint32_t)p->n_cells++;
    ry_pickle_node *n = &p->nodes[container];
    p->cells[cell] = (ry_pickle_cell){item, 0};
    if (n->count++)
        p->cells[n->value.items.last].next = cell;
    else
        n->value.items.first = cell;
    n->value.items.last = cell;
    return NULL;
}

/* ---- reading the result --------------------------------------------------------------------- */

const ry_pickle_node *ry_pickle_root(const ry_pickle *p) { return &p->nodes[p->root]; }
const ry_pickle_node *ry_pickle_at(const ry_pickle *p, uint32_t node) { return &p->nodes[node]; }
uint32_t ry_pickle_first(const ry_pickle_node *n) { return n->count ? n->value.items.first : 0; }
uint32_t ry_pickle_next(const ry_pickle *p, uint32_t cell) { return p->cells[cell].next; }

const ry_pickle_node *ry_pickle_item(const ry_pickle *p, uint32_t cell)
{
    return &p->nodes[p->cells[cell].node];
}

const ry_pickle_node *ry_pickle_nth(const ry_pickle *p, const ry_pickle_node *n, uint32_t i)
{
    uint32_t cell = ry_pickle_first(n);
    while (i--) cell = ry_pickle_next(p, cell);
    return ry_pickle_item(p, cell);
}

void ry_pickle_free(ry_pickle *p)
{
    if (!p) return;
    const renyi_allocator al = p->allocator;
    ry_free(&al, p->nodes);
    ry_free(&al, p->cells);
    ry_free(&al, p->stack);
    ry_free(&al, p->marks);
    ry_free(&al, p->memo);
    ry_free(&al, p);
}
