/* pickle.c - the machine: one handler per group of opcodes, a table that maps opcodes to handlers.
 * Opcodes are those of Python's pickletools; whatever is not in the table is refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/pickle.h"

#include "base/alloc.h"
#include "base/status.h"
#include "formats/pickle_global.h"
#include "formats/pickle_heap.h"

#include <stdio.h>
#include <string.h>

typedef struct machine {
    ry_pickle *p;
    const ry_pickle_source *source;
    const unsigned char *at, *end, *op_at; /* op_at: the opcode being run */
    renyi_error *err;
    int done;
} machine;

typedef renyi_status (*handler)(machine *m, unsigned char op);

/* ---- errors and input ------------------------------------------------------------------------ */

static renyi_status stop(const machine *m, renyi_status code, const char *why)
{
    const size_t at = (size_t)(m->op_at - m->source->bytes);
    return ry_fail(m->err, code, (int64_t)(m->source->offset + at), "%s: data.pkl: byte %zu: %s",
                   m->source->what, at, why);
}

static renyi_status bad(const machine *m, const char *why)
{
    return stop(m, RENYI_ERR_FORMAT, why);
}

/* A NULL `why` of the heap is success; its two resource troubles have their own codes. */
static renyi_status heap_status(const machine *m, const char *why)
{
    if (!why) return RENYI_OK;
    if (!strncmp(why, "out of memory", 13)) return stop(m, RENYI_ERR_NOMEM, why);
    if (strstr(why, "limit")) return stop(m, RENYI_ERR_LIMIT, why);
    return bad(m, why);
}

#define HEAP(call) RY_TRY(heap_status(m, (call)))

static renyi_status take(machine *m, size_t n, const unsigned char **out)
{
    *out = m->at;
    if (n > (size_t)(m->end - m->at)) return bad(m, "the pickle ends in the middle of an opcode");
    m->at += n;
    return RENYI_OK;
}

/* Little-endian unsigned of n <= 8 bytes. */
static renyi_status take_uint(machine *m, size_t n, uint64_t *out)
{
    const unsigned char *p;
    RY_TRY(take(m, n, &p));
    *out = 0;
    for (size_t i = n; i-- > 0;) *out = *out << 8 | p[i];
    return RENYI_OK;
}

static renyi_status push_new(machine *m, ry_pickle_node n)
{
    uint32_t node;
    HEAP(ry_heap_new(m->p, n, &node));
    HEAP(ry_heap_push(m->p, node));
    return RENYI_OK;
}

static ry_pickle_node plain(ry_pickle_kind kind)
{
    ry_pickle_node n;
    memset(&n, 0, sizeof n);
    n.kind = (uint8_t)kind;
    return n;
}

/* ---- constants --------------------------------------------------------------------------------
 */

static renyi_status do_protocol(machine *m, unsigned char op)
{
    uint64_t v;
    (void)op;
    RY_TRY(take_uint(m, 1, &v));
    return v <= 5 ? RENYI_OK : bad(m, "a pickle protocol above 5");
}

static renyi_status do_frame(machine *m, unsigned char op)
{
    uint64_t length;
    (void)op;
    return take_uint(m, 8, &length); /* a reading hint, not needed here */
}

static renyi_status do_fixed(machine *m, unsigned char op)
{
    const uint32_t node = op == 'N'    ? NODE_NONE
                          : op == 0x88 ? NODE_TRUE
                          : op == 0x89 ? NODE_FALSE
                                       : NODE_EMPTY_TUPLE;
    HEAP(ry_heap_push(m->p, node));
    return RENYI_OK;
}

/* BININT, BININT1, BININT2, LONG1 */
static renyi_status do_int(machine *m, unsigned char op)
{
    ry_pickle_node n = plain(RY_PICKLE_INT);
    uint64_t v = 0, width = op == 'J' ? 4 : op == 'K' ? 1 : 2;
    if (op == 0x8a) {
        RY_TRY(take_uint(m, 1, &width));
        if (width > 8) { /* larger than any size of ours */
            const unsigned char *skipped;
            RY_TRY(take(m, width, &skipped));
            return push_new(m, plain(RY_PICKLE_OPAQUE));
        }
    }
    RY_TRY(take_uint(m, width, &v));
    const int is_signed = op == 'J' || op == 0x8a;
    if (is_signed && width && width < 8 && v >> (8 * width - 1)) v |= UINT64_MAX << 8 * width;
    memcpy(&n.value.integer, &v, sizeof v);
    return push_new(m, n);
}

static renyi_status do_float(machine *m, unsigned char op)
{
    const unsigned char *p;
    (void)op;
    RY_TRY(take(m, 8, &p));
    return push_new(m, plain(RY_PICKLE_FLOAT));
}

/* A length, then that many bytes. Byte strings and Python 2 strings are texts like the others. */
static renyi_status do_text(machine *m, unsigned char op)
{
    const int is_long = op == 0x8d || op == 0x8e, is_short = op == 0x8c || op == 'C' || op == 'U';
    ry_pickle_node n = plain(RY_PICKLE_TEXT);
    uint64_t length;
    RY_TRY(take_uint(m, is_long ? 8 : is_short ? 1 : 4, &length));
    if (length > UINT32_MAX) return bad(m, "a text of more than 4 GiB");
    RY_TRY(take(m, (size_t)length, &n.value.text));
    n.count = (uint32_t)length;
    return push_new(m, n);
}

/* ---- containers --------------------------------------------------------------------------------
 */

static renyi_status do_empty(machine *m, unsigned char op)
{
    return push_new(m, plain(op == '}' ? RY_PICKLE_DICT : RY_PICKLE_LIST));
}

static renyi_status do_mark(machine *m, unsigned char op)
{
    (void)op;
    HEAP(ry_heap_mark(m->p));
    return RENYI_OK;
}

/* Move stack[height, top) into `container`; opaque things swallow their items. */
static renyi_status fill(machine *m, uint32_t container, size_t height)
{
    ry_pickle *p = m->p;
    if (p->nodes[container].kind != RY_PICKLE_OPAQUE)
        for (size_t i = height; i < p->n_stack; i++)
            HEAP(ry_heap_append(p, container, p->stack[i]));
    p->n_stack = height;
    return RENYI_OK;
}

static renyi_status make_tuple(machine *m, size_t height)
{
    uint32_t node;
    HEAP(ry_heap_new(m->p, plain(RY_PICKLE_TUPLE), &node));
    RY_TRY(fill(m, node, height));
    HEAP(ry_heap_push(m->p, node));
    return RENYI_OK;
}

static renyi_status do_tuple(machine *m, unsigned char op)
{
    size_t height;
    if (op == 't') {
        HEAP(ry_heap_unmark(m->p, &height));
        return make_tuple(m, height);
    }
    const size_t n = op - 0x84u; /* TUPLE1, TUPLE2, TUPLE3 */
    const size_t floor = m->p->n_marks ? m->p->marks[m->p->n_marks - 1] : 0;
    if (m->p->n_stack - floor < n) return bad(m, "the stack is empty");
    return make_tuple(m, m->p->n_stack - n);
}

/* SETITEM, SETITEMS, APPEND, APPENDS */
static renyi_status do_fill(machine *m, unsigned char op)
{
    const int to_dict = op == 's' || op == 'u';
    size_t height;
    if (op == 'u' || op == 'e') {
        HEAP(ry_heap_unmark(m->p, &height));
    } else {
        const size_t floor = m->p->n_marks ? m->p->marks[m->p->n_marks - 1] : 0;
        const size_t n = to_dict ? 2 : 1;
        if (m->p->n_stack - floor < n) return bad(m, "the stack is empty");
        height = m->p->n_stack - n;
    }
    const size_t floor = m->p->n_marks ? m->p->marks[m->p->n_marks - 1] : 0;
    if (height <= floor) return bad(m, "items without a container");
    const uint32_t container = m->p->stack[height - 1];
    const uint8_t kind = m->p->nodes[container].kind;
    if (kind != RY_PICKLE_OPAQUE && kind != (to_dict ? RY_PICKLE_DICT : RY_PICKLE_LIST))
        return bad(m, to_dict ? "items set in something that is not a dict"
                              : "items appended to something that is not a list");
    if (to_dict && (m->p->n_stack - height) % 2) return bad(m, "a key without a value");
    return fill(m, container, height);
}

static renyi_status do_pop(machine *m, unsigned char op)
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

/* ---- memo --------------------------------------------------------------------------------------
 */

static renyi_status do_put(machine *m, unsigned char op)
{
    uint64_t slot = m->p->n_memo; /* MEMOIZE: the next one */
    uint32_t node;
    if (op != 0x94) RY_TRY(take_uint(m, op == 'q' ? 1 : 4, &slot));
    HEAP(ry_heap_top(m->p, &node));
    HEAP(ry_heap_store(m->p, (uint32_t)slot, node));
    return RENYI_OK;
}

static renyi_status do_get(machine *m, unsigned char op)
{
    uint64_t slot;
    uint32_t node;
    RY_TRY(take_uint(m, op == 'h' ? 1 : 4, &slot));
    HEAP(ry_heap_recall(m->p, (uint32_t)slot, &node));
    HEAP(ry_heap_push(m->p, node));
    return RENYI_OK;
}

/* ---- globals -----------------------------------------------------------------------------------
 */

static renyi_status push_global(machine *m, const unsigned char *module, size_t module_length,
                                const unsigned char *name, size_t name_length)
{
    ry_pickle_node n = plain(RY_PICKLE_GLOBAL);
    const int index = ry_pickle_global_find(module, module_length, name, name_length);
    if (index < 0) {
        char why[320];
        snprintf(
            why, sizeof why,
            "the pickle calls %.*s.%.*s: refused, only tensors and plain data are read; convert "
            "the checkpoint to safetensors",
            module_length < 80 ? (int)module_length : 80, (const char *)module,
            name_length < 80 ? (int)name_length : 80, (const char *)name);
        return stop(m, RENYI_ERR_UNSUPPORTED, why);
    }
    n.tag = (uint8_t)index;
    return push_new(m, n);
}

/* "module\nname\n" */
static renyi_status do_global(machine *m, unsigned char op)
{
    const unsigned char *part[2];
    size_t length[2];
    (void)op;
    for (int i = 0; i < 2; i++) {
        const unsigned char *newline = memchr(m->at, '\n', (size_t)(m->end - m->at));
        if (!newline) return bad(m, "a global whose name does not end");
        part[i] = m->at;
        length[i] = (size_t)(newline - m->at);
        m->at = newline + 1;
    }
    return push_global(m, part[0], length[0], part[1], length[1]);
}

static renyi_status do_stack_global(machine *m, unsigned char op)
{
    uint32_t name, module;
    (void)op;
    HEAP(ry_heap_pop(m->p, &name));
    HEAP(ry_heap_pop(m->p, &module));
    const ry_pickle_node *a = &m->p->nodes[module], *b = &m->p->nodes[name];
    if (a->kind != RY_PICKLE_TEXT || b->kind != RY_PICKLE_TEXT)
        return bad(m, "a global whose name is not text");
    return push_global(m, a->value.text, a->count, b->value.text, b->count);
}

/* ---- tensors -----------------------------------------------------------------------------------
 */

static int is_text(const ry_pickle_node *n, const char *wanted)
{
    return n->kind == RY_PICKLE_TEXT && n->count == strlen(wanted) &&
           !memcmp(n->value.text, wanted, n->count);
}

static const ry_pickle_global *global_of(const ry_pickle_node *n)
{
    return n->kind == RY_PICKLE_GLOBAL ? ry_pickle_global_at(n->tag) : NULL;
}

/* ("storage", torch.FloatStorage, key, device, elements) */
static renyi_status do_persistent(machine *m, unsigned char op)
{
    const ry_pickle *p = m->p;
    ry_pickle_node out = plain(RY_PICKLE_STORAGE);
    uint32_t id;
    (void)op;
    HEAP(ry_heap_pop(m->p, &id));
    const ry_pickle_node *n = &p->nodes[id];
    if (n->kind != RY_PICKLE_TUPLE || n->count != 5 || !is_text(ry_pickle_nth(p, n, 0), "storage"))
        return bad(m, "a persistent id that is not a storage");
    const ry_pickle_global *type = global_of(ry_pickle_nth(p, n, 1));
    const ry_pickle_node *elements = ry_pickle_nth(p, n, 4);
    if (!type || type->role != RY_ROLE_STORAGE)
        return bad(m, "a storage of something else than plain numbers");
    if (ry_pickle_nth(p, n, 2)->kind != RY_PICKLE_TEXT || elements->kind != RY_PICKLE_INT ||
        elements->value.integer < 0)
        return bad(m, "a storage without a key or a size");
    out.tag = (uint8_t)type->dtype;
    out.value.node = id;
    return push_new(m, out);
}

/* A tuple of at most RY_MAX_DIMS whole numbers from 0. */
static int is_extent(const ry_pickle *p, const ry_pickle_node *n)
{
    if (n->kind != RY_PICKLE_TUPLE || n->count > RY_MAX_DIMS) return 0;
    for (uint32_t c = ry_pickle_first(n); c; c = ry_pickle_next(p, c)) {
        const ry_pickle_node *item = ry_pickle_item(p, c);
        if (item->kind != RY_PICKLE_INT || item->value.integer < 0) return 0;
    }
    return 1;
}

/* (storage, offset, sizes, strides, requires_grad, hooks[, metadata]) */
static renyi_status rebuild_tensor(machine *m, uint32_t args)
{
    const ry_pickle *p = m->p;
    const ry_pickle_node *n = &p->nodes[args];
    ry_pickle_node out = plain(RY_PICKLE_TENSOR);
    if (n->count < 4 || n->count > 7) return bad(m, "a tensor with too few or too many arguments");
    const ry_pickle_node *offset = ry_pickle_nth(p, n, 1), *sizes = ry_pickle_nth(p, n, 2),
                         *strides = ry_pickle_nth(p, n, 3);
    if (ry_pickle_nth(p, n, 0)->kind != RY_PICKLE_STORAGE)
        return bad(m, "a tensor without a storage");
    if (offset->kind != RY_PICKLE_INT || offset->value.integer < 0)
        return bad(m, "a tensor whose offset is not a whole number from 0");
    if (!is_extent(p, sizes) || !is_extent(p, strides) || sizes->count != strides->count)
        return bad(m, "a tensor whose sizes or strides are not up to 8 whole numbers from 0");
    out.value.node = args;
    return push_new(m, out);
}

static renyi_status rebuild_parameter(machine *m, uint32_t args)
{
    const ry_pickle_node *n = &m->p->nodes[args];
    if (!n->count) return bad(m, "a parameter without a tensor");
    const uint32_t data = m->p->cells[n->value.items.first].node;
    if (m->p->nodes[data].kind != RY_PICKLE_TENSOR) return bad(m, "a parameter without a tensor");
    HEAP(ry_heap_push(m->p, data));
    return RENYI_OK;
}

/* ---- calls -------------------------------------------------------------------------------------
 */

/* REDUCE and NEWOBJ: a global of the list and a tuple of arguments. */
static renyi_status do_call(machine *m, unsigned char op)
{
    uint32_t args, callee;
    HEAP(ry_heap_pop(m->p, &args));
    HEAP(ry_heap_pop(m->p, &callee));
    const ry_pickle_global *g = global_of(&m->p->nodes[callee]);
    if (!g)
        return stop(m, RENYI_ERR_UNSUPPORTED,
                    "a call of something that is not a function: refused");
    if (m->p->nodes[args].kind != RY_PICKLE_TUPLE)
        return bad(m, "a call without a tuple of arguments");
    if (g->role == RY_ROLE_INERT) return push_new(m, plain(RY_PICKLE_OPAQUE));
    if (op == 'R' && g->role == RY_ROLE_TENSOR) return rebuild_tensor(m, args);
    if (op == 'R' && g->role == RY_ROLE_PARAMETER) return rebuild_parameter(m, args);
    if (g->role == RY_ROLE_DICT && !m->p->nodes[args].count) {
        ry_pickle_node dict = plain(RY_PICKLE_DICT);
        dict.tag = 1; /* an object, so it may have a state: see do_build */
        return push_new(m, dict);
    }
    char why[160];
    snprintf(why, sizeof why, "%s.%s called in an unknown way: refused", g->module, g->name);
    return stop(m, RENYI_ERR_UNSUPPORTED, why);
}

/* State of an object: of an OrderedDict it is nn.Module's _metadata, of an opaque thing whatever it
 * likes; both are dropped. */
static renyi_status do_build(machine *m, unsigned char op)
{
    uint32_t state, object;
    (void)op;
    HEAP(ry_heap_pop(m->p, &state));
    HEAP(ry_heap_top(m->p, &object));
    const ry_pickle_node *n = &m->p->nodes[object];
    if (n->kind == RY_PICKLE_OPAQUE || (n->kind == RY_PICKLE_DICT && n->tag)) return RENYI_OK;
    return stop(m, RENYI_ERR_UNSUPPORTED, "a state set on something that has none: refused");
}

static renyi_status do_stop(machine *m, unsigned char op)
{
    (void)op;
    HEAP(ry_heap_pop(m->p, &m->p->root));
    if (m->p->n_stack || m->p->n_marks) return bad(m, "things left on the stack at the end");
    m->done = 1;
    return RENYI_OK;
}

static const handler handlers[256] = {
    [0x80] = do_protocol, [0x95] = do_frame, ['N'] = do_fixed,         [0x88] = do_fixed,
    [0x89] = do_fixed,    [')'] = do_fixed,  ['J'] = do_int,           ['K'] = do_int,
    ['M'] = do_int,       [0x8a] = do_int,   ['G'] = do_float,         ['X'] = do_text,
    [0x8c] = do_text,     [0x8d] = do_text,  ['T'] = do_text,          ['U'] = do_text,
    ['B'] = do_text,      ['C'] = do_text,   [0x8e] = do_text,         ['}'] = do_empty,
    [']'] = do_empty,     ['('] = do_mark,   ['t'] = do_tuple,         [0x85] = do_tuple,
    [0x86] = do_tuple,    [0x87] = do_tuple, ['s'] = do_fill,          ['u'] = do_fill,
    ['a'] = do_fill,      ['e'] = do_fill,   ['0'] = do_pop,           ['1'] = do_pop,
    ['q'] = do_put,       ['r'] = do_put,    [0x94] = do_put,          ['h'] = do_get,
    ['j'] = do_get,       ['c'] = do_global, [0x93] = do_stack_global, ['Q'] = do_persistent,
    ['R'] = do_call,      [0x81] = do_call,  ['b'] = do_build,         ['.'] = do_stop,
};

static renyi_status run(machine *m)
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
        RY_TRY(take(m, 1, &op));
        if (!handlers[*op]) {
            snprintf(why, sizeof why, "opcode 0x%02x is not one of tensors: refused", *op);
            return stop(m, RENYI_ERR_UNSUPPORTED, why);
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
    machine m = {*out, source, source->bytes, source->bytes + source->size, source->bytes, err, 0};
    const renyi_status st = run(&m);
    if (st) {
        ry_pickle_free(*out);
        *out = NULL;
    }
    return st;
}
