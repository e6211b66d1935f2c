/* pickle.c - the pickle machine: one handler per group of opcodes, and the table of handlers.
 * Opcodes that are not in the table are refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/torch/pickle.h"

#include "base/alloc.h"
#include "base/status.h"
#include "formats/torch/pickle_machine.h"

#include <stdio.h>
#include <string.h>

typedef renyi_status (*handler)(ry_machine *m, unsigned char op);

/* ---- errors and input ---------------------------------------------------------------------- */

renyi_status ry_machine_stop(const ry_machine *m, renyi_status code, const char *why)
{
    const size_t at = (size_t)(m->op_at - m->source->bytes);
    return ry_fail(m->err, code, (int64_t)(m->source->offset + at), "%s: data.pkl: byte %zu: %s",
                   m->source->what, at, why);
}

renyi_status ry_machine_bad(const ry_machine *m, const char *why)
{
    return ry_machine_stop(m, RENYI_ERR_FORMAT, why);
}

/* NULL is success; running out of memory and reaching a limit have their own codes. */
renyi_status ry_machine_heap(const ry_machine *m, const char *why)
{
    if (!why) return RENYI_OK;
    if (!strncmp(why, "out of memory", 13)) return ry_machine_stop(m, RENYI_ERR_NOMEM, why);
    if (strstr(why, "limit")) return ry_machine_stop(m, RENYI_ERR_LIMIT, why);
    return ry_machine_bad(m, why);
}

static renyi_status take_bytes(ry_machine *m, size_t n, const unsigned char **out)
{
    *out = m->at;
    if (n > (size_t)(m->end - m->at))
        return ry_machine_bad(m, "the pickle ends in the middle of an opcode");
    m->at += n;
    return RENYI_OK;
}

/* Little-endian unsigned of n <= 8 bytes. */
static renyi_status take_uint(ry_machine *m, size_t n, uint64_t *out)
{
    const unsigned char *p;
    RY_TRY(take_bytes(m, n, &p));
    *out = 0;
    for (size_t i = n; i-- > 0;) *out = *out << 8 | p[i];
    return RENYI_OK;
}

renyi_status ry_machine_push(ry_machine *m, ry_pickle_node n)
{
    uint32_t node;
    HEAP(ry_heap_new(m->p, n, &node));
    HEAP(ry_heap_push(m->p, node));
    return RENYI_OK;
}

ry_pickle_node ry_machine_node(ry_pickle_kind kind)
{
    ry_pickle_node n;
    memset(&n, 0, sizeof n);
    n.kind = (uint8_t)kind;
    return n;
}

/* ---- constants ----------------------------------------------------------------------------- */

static renyi_status op_protocol(ry_machine *m, unsigned char op)
{
    uint64_t v;
    (void)op;
    RY_TRY(take_uint(m, 1, &v));
    return v <= 5 ? RENYI_OK : ry_machine_bad(m, "a pickle protocol above 5");
}

static renyi_status op_frame(ry_machine *m, unsigned char op)
{
    uint64_t length;
    (void)op;
    return take_uint(m, 8, &length); /* only a hint for readers */
}

static renyi_status op_fixed(ry_machine *m, unsigned char op)
{
    const uint32_t node = op == 'N'    ? NODE_NONE
                          : op == 0x88 ? NODE_TRUE
                          : op == 0x89 ? NODE_FALSE
                                       : NODE_EMPTY_TUPLE;
    HEAP(ry_heap_push(m->p, node));
    return RENYI_OK;
}

/* BININT, BININT1, BININT2, LONG1 */
static renyi_status op_int(ry_machine *m, unsigned char op)
{
    ry_pickle_node n = ry_machine_node(RY_PICKLE_INT);
    uint64_t v = 0, width = op == 'J' ? 4 : op == 'K' ? 1 : 2;
    if (op == 0x8a) {
        RY_TRY(take_uint(m, 1, &width));
        if (width > 8) { /* too large for any size */
            const unsigned char *skipped;
            RY_TRY(take_bytes(m, width, &skipped));
            return ry_machine_push(m, ry_machine_node(RY_PICKLE_OPAQUE));
        }
    }
    RY_TRY(take_uint(m, width, &v));
    const int is_signed = op == 'J' || op == 0x8a;
    if (is_signed && width && width < 8 && v >> (8 * width - 1)) v |= UINT64_MAX << 8 * width;
    memcpy(&n.value.integer, &v, sizeof v);
    return ry_machine_push(m, n);
}

static renyi_status op_float(ry_machine *m, unsigned char op)
{
    const unsigned char *p;
    (void)op;
    RY_TRY(take_bytes(m, 8, &p));
    return ry_machine_push(m, ry_machine_node(RY_PICKLE_FLOAT));
}

/* A length, then that many bytes. Byte strings and Python 2 strings are texts too. */
static renyi_status op_text(ry_machine *m, unsigned char op)
{
    const int is_long = op == 0x8d || op == 0x8e, is_short = op == 0x8c || op == 'C' || op == 'U';
    ry_pickle_node n = ry_machine_node(RY_PICKLE_TEXT);
    uint64_t length;
    RY_TRY(take_uint(m, is_long ? 8 : is_short ? 1 : 4, &length));
    if (length > UINT32_MAX) return ry_machine_bad(m, "a text of more than 4 GiB");
    RY_TRY(take_bytes(m, (size_t)length, &n.value.text));
    n.count = (uint32_t)length;
    return ry_machine_push(m, n);
}

/* ---- containers ---------------------------------------------------------------------------- */

static renyi_status op_empty(ry_machine *m, unsigned char op)
{
    return ry_machine_push(m, ry_machine_node(op == '}' ? RY_PICKLE_DICT : RY_PICKLE_LIST));
}

static renyi_status op_mark(ry_machine *m, unsigned char op)
{
    (void)op;
    HEAP(ry_heap_mark(m->p));
    return RENYI_OK;
}

/* Moves stack[height, top) into `container`; an opaque node drops the items. */
static renyi_status move_items(ry_machine *m, uint32_t container, size_t height)
{
    ry_pickle *p = m->p;
    if (p->nodes[container].kind != RY_PICKLE_OPAQUE)
        for (size_t i = height; i < p->n_stack; i++)
            HEAP(ry_heap_append(p, container, p->stack[i]));
    p->n_stack = height;
    return RENYI_OK;
}

static renyi_status make_tuple(ry_machine *m, size_t height)
{
    uint32_t node;
    HEAP(ry_heap_new(m->p, ry_machine_node(RY_PICKLE_TUPLE), &node));
    RY_TRY(move_items(m, node, height));
    HEAP(ry_heap_push(m->p, node));
    return RENYI_OK;
}

static renyi_status op_tuple(ry_machine *m, unsigned char op)
{
    size_t height;
    if (op == 't') {
        HEAP(ry_heap_unmark(m->p, &height));
        return make_tuple(m, height);
    }
    const size_t n = op - 0x84u; /* TUPLE1, TUPLE2, TUPLE3 */
    const size_t floor = m->p->n_marks ? m->p->marks[m->p->n_marks - 1] : 0;
    if (m->p->n_stack - floor < n) return ry_machine_bad(m, "the stack is empty");
    return make_tuple(m, m->p->n_stack - n);
}

/* SETITEM, SETITEMS, APPEND, APPENDS */
static renyi_status op_fill(ry_machine *m, unsigned char op)
{
    const int to_dict = op == 's' || op == 'u';
    size_t height;
    if (op == 'u' || op == 'e') {
        HEAP(ry_heap_unmark(m->p, &height));
    } else {
        const size_t floor = m->p->n_marks ? m->p->marks[m->p->n_marks - 1] : 0;
        const size_t n = to_dict ? 2 : 1;
        if (m->p->n_stack - floor < n) return ry_machine_bad(m, "the stack is empty");
        height = m->p->n_stack - n;
    }
    const size_t floor = m->p->n_marks ? m->p->marks[m->p->n_marks - 1] : 0;
    if (height <= floor) return ry_machine_bad(m, "items without a container");
    const uint32_t container = m->p->stack[height - 1];
    const uint8_t kind = m->p->nodes[container].kind;
    if (kind != RY_PICKLE_OPAQUE && kind != (to_dict ? RY_PICKLE_DICT : RY_PICKLE_LIST))
        return ry_machine_bad(m, to_dict ? "items set in something that is not a dict"
                                         : "items appended to something that is not a list");
    if (to_dict && (m->p->n_stack - height) % 2) return ry_machine_bad(m, "a key without a value");
    return move_items(m, container, height);
}

static renyi_status op_pop(ry_machine *m, unsigned char op)
{
    uint32_t node;
    size_t height;
    if (op == '0') {
        HEAP(ry_heap_pop(m->p, &node));
    } else {
        HEAP(ry_heap_unmark(m->p, &height));
        m->p->n_stack = height;
    }
    return RENYI_OK;
}

/* ---- memo ---------------------------------------------------------------------------------- */

static renyi_status op_put(ry_machine *m, unsigned char op)
{
    uint64_t slot = m->p->n_memo; /* MEMOIZE: the next one */
    uint32_t node;
    if (op != 0x94) RY_TRY(take_uint(m, op == 'q' ? 1 : 4, &slot));
    HEAP(ry_heap_top(m->p, &node));
    HEAP(ry_heap_store(m->p, (uint32_t)slot, node));
    return RENYI_OK;
}

static renyi_status op_get(ry_machine *m, unsigned char op)
{
    uint64_t slot;
    uint32_t node;
    RY_TRY(take_uint(m, op == 'h' ? 1 : 4, &slot));
    HEAP(ry_heap_recall(m->p, (uint32_t)slot, &node));
    HEAP(ry_heap_push(m->p, node));
    return RENYI_OK;
}

static renyi_status op_stop(ry_machine *m, unsigned char op)
{
    (void)op;
    HEAP(ry_heap_pop(m->p, &m->p->root));
    if (m->p->n_stack || m->p->n_marks)
        return ry_machine_bad(m, "things left on the stack at the end");
    m->done = 1;
    return RENYI_OK;
}

static const handler handlers[256] = {
    [0x80] = op_protocol,
    [0x95] = op_frame,
    ['N'] = op_fixed,
    [0x88] = op_fixed,
    [0x89] = op_fixed,
    [')'] = op_fixed,
    ['J'] = op_int,
    ['K'] = op_int,
    ['M'] = op_int,
    [0x8a] = op_int,
    ['G'] = op_float,
    ['X'] = op_text,
    [0x8c] = op_text,
    [0x8d] = op_text,
    ['T'] = op_text,
    ['U'] = op_text,
    ['B'] = op_text,
    ['C'] = op_text,
    [0x8e] = op_text,
    ['}'] = op_empty,
    [']'] = op_empty,
    ['('] = op_mark,
    ['t'] = op_tuple,
    [0x85] = op_tuple,
    [0x86] = op_tuple,
    [0x87] = op_tuple,
    ['s'] = op_fill,
    ['u'] = op_fill,
    ['a'] = op_fill,
    ['e'] = op_fill,
    ['0'] = op_pop,
    ['1'] = op_pop,
    ['q'] = op_put,
    ['r'] = op_put,
    [0x94] = op_put,
    ['h'] = op_get,
    ['j'] = op_get,
    ['c'] = ry_machine_global,
    [0x93] = ry_machine_stack_global,
    ['Q'] = ry_machine_persistent,
    ['R'] = ry_machine_call,
    [0x81] = ry_machine_call,
    ['b'] = ry_machine_build,
    ['.'] = op_stop,
};

static renyi_status run_opcodes(ry_machine *m)
{
    static const ry_pickle_node fixed[N_FIXED_NODES] = {
        [NODE_NONE] = {RY_PICKLE_NONE, 0, 0, {0}},
        [NODE_FALSE] = {RY_PICKLE_BOOL, 0, 0, {0}},
        [NODE_TRUE] = {RY_PICKLE_BOOL, 0, 0, {1}},
        [NODE_EMPTY_TUPLE] = {RY_PICKLE_TUPLE, 0, 0, {0}},
    };
    uint32_t node;
    for (int i = 0; i < N_FIXED_NODES; i++) HEAP(ry_heap_new(m->p, fixed[i], &node));
    while (!m->done) {
        const unsigned char *op;
        char why[64];
        m->op_at = m->at;
        RY_TRY(take_bytes(m, 1, &op));
        if (!handlers[*op]) {
            snprintf(why, sizeof why, "opcode 0x%02x is not one of tensors: refused", *op);
            return ry_machine_stop(m, RENYI_ERR_UNSUPPORTED, why);
        }
        RY_TRY(handlers[*op](m, *op));
    }
    return RENYI_OK;
}

renyi_status ry_pickle_run(ry_pickle **out, const ry_pickle_source *source,
                           const renyi_allocator *al, renyi_error *err)
{
    *out = ry_calloc(al, 1, sizeof **out);
    if (!*out) return ry_fail_nomem(err, sizeof **out);
    if (al) (*out)->allocator = *al;
    ry_machine m = {*out, source, source->bytes, source->bytes + source->size, source->bytes,
                    err,  0};
    const renyi_status st = run_opcodes(&m);
    if (st) {
        ry_pickle_free(*out);
        *out = NULL;
    }
    return st;
}
