/* pickle.h - reads the pickle of a PyTorch checkpoint into a graph of nodes, without running code.
 *
 * The machine knows the opcodes that torch.save uses for dicts, lists, tuples, numbers, text and
 * tensors. A global is looked up in a fixed list (pickle_call.c); anything else is refused as
 * soon as it is named. A call of a listed global only builds a node; no Python function exists
 * here. Classes of a TorchScript archive become plain tables of attributes. The graph may contain
 * cycles.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PICKLE_H
#define RY_PICKLE_H

#include "formats/tensor.h"

typedef enum ry_pickle_kind {
    RY_PICKLE_NONE,
    RY_PICKLE_BOOL,    /* value.integer */
    RY_PICKLE_INT,     /* value.integer */
    RY_PICKLE_FLOAT,   /* the number is not needed */
    RY_PICKLE_TEXT,    /* value.text [count], borrowed from the pickle; any bytes */
    RY_PICKLE_TUPLE,   /* count items */
    RY_PICKLE_LIST,    /* count items */
    RY_PICKLE_DICT,    /* count items: key, value, key, value, ... */
    RY_PICKLE_GLOBAL,  /* tag: a ry_pickle_global */
    RY_PICKLE_STORAGE, /* tag: a ry_dtype; value.node: the tuple (.., .., key, device, elements) */
    RY_PICKLE_TENSOR,  /* value.node: the tuple (storage, offset, sizes, strides, ...), checked */
    RY_PICKLE_MODULE,  /* of TorchScript; value.node: the dict of its attributes, or a None */
    RY_PICKLE_OPAQUE   /* plain data that is not needed */
} ry_pickle_kind;

typedef struct ry_pickle_node {
    uint8_t kind, tag;
    uint32_t count;
    union {
        int64_t integer;
        const unsigned char *text;
        uint32_t node;
        struct {
            uint32_t first, last; /* cells */
        } items;
    } value;
} ry_pickle_node;

typedef struct ry_pickle ry_pickle;

typedef struct ry_pickle_source {
    const unsigned char *bytes; /* borrowed; texts of the result point into it */
    size_t size;
    const char *what; /* the file, for messages */
    uint64_t offset;  /* of the pickle in the file, for err->offset */
} ry_pickle_source;

/* On success *out is owned by the caller (ry_pickle_free), on failure it is NULL. Memory stays
 * below about 300 MB for any input. */
renyi_status ry_pickle_run(ry_pickle **out, const ry_pickle_source *source,
                           const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_pickle_free(ry_pickle *p);

const ry_pickle_node *ry_pickle_root(const ry_pickle *p);
/* Node by number (value.node). */
const ry_pickle_node *ry_pickle_at(const ry_pickle *p, uint32_t node);

/* Walk the items of a tuple, list or dict:
 *   for (uint32_t c = ry_pickle_first(n); c; c = ry_pickle_next(p, c)) ... ry_pickle_item(p, c) */
uint32_t ry_pickle_first(const ry_pickle_node *n); /* 0: no items */
uint32_t ry_pickle_next(const ry_pickle *p, uint32_t cell);
const ry_pickle_node *ry_pickle_item(const ry_pickle *p, uint32_t cell);
/* Item i < n->count; walks from the front. */
const ry_pickle_node *ry_pickle_nth(const ry_pickle *p, const ry_pickle_node *n, uint32_t i);

#endif
