/* pickle_call.c - opcodes of a pickle that name, call or build something: everything that is not a
 * tensor or plain data is refused here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/tensor.h"
#include "formats/torch/pickle_machine.h"

#include <stdio.h>
#include <string.h>

/* ---- the names a pickle may mention ---------------------------------------------------------- */

/* Nothing else is accepted, and nothing here is ever called. */

typedef enum ry_pickle_role {
    RY_ROLE_TENSOR,    /* torch._utils._rebuild_tensor_v2 */
    RY_ROLE_PARAMETER, /* torch._utils._rebuild_parameter */
    RY_ROLE_DICT,      /* collections.OrderedDict */
    RY_ROLE_STORAGE,   /* torch.FloatStorage and the like */
    RY_ROLE_MODULE,    /* any class of module __torch__ or below: TorchScript's own */
    RY_ROLE_INERT      /* other data of training scripts: becomes an opaque node */
} ry_pickle_role;

typedef struct ry_pickle_global {
    const char *module, *name;
    ry_pickle_role role;
    ry_dtype dtype; /* RY_ROLE_STORAGE only */
} ry_pickle_global;

#define TORCHSCRIPT "__torch__"

static const ry_pickle_global globals[] = {
    {"torch._utils", "_rebuild_tensor_v2", RY_ROLE_TENSOR, RY_F32},
    {"torch._utils", "_rebuild_parameter", RY_ROLE_PARAMETER, RY_F32},
    {"collections", "OrderedDict", RY_ROLE_DICT, RY_F32},
    {"torch", "FloatStorage", RY_ROLE_STORAGE, RY_F32},
    {"torch", "HalfStorage", RY_ROLE_STORAGE, RY_F16},
    {"torch", "BFloat16Storage", RY_ROLE_STORAGE, RY_BF16},
    {"torch", "DoubleStorage", RY_ROLE_STORAGE, RY_F64},
    {"torch", "LongStorage", RY_ROLE_STORAGE, RY_I64},
    {"torch", "IntStorage", RY_ROLE_STORAGE, RY_I32},
    {"torch", "ShortStorage", RY_ROLE_STORAGE, RY_I16},
    {"torch", "CharStorage", RY_ROLE_STORAGE, RY_I8},
    {"torch", "ByteStorage", RY_ROLE_STORAGE, RY_U8},
    {"torch", "BoolStorage", RY_ROLE_STORAGE, RY_BOOL},
    {TORCHSCRIPT, "*", RY_ROLE_MODULE, RY_F32},
    /* typed lists and dicts among a TorchScript module's attributes */
    {"torch.jit._pickle", "build_intlist", RY_ROLE_INERT, RY_F32},
    {"torch.jit._pickle", "build_doublelist", RY_ROLE_INERT, RY_F32},
    {"torch.jit._pickle", "build_boollist", RY_ROLE_INERT, RY_F32},
    {"torch.jit._pickle", "build_tensorlist", RY_ROLE_INERT, RY_F32},
    {"torch.jit._pickle", "restore_type_tag", RY_ROLE_INERT, RY_F32},
    /* what training scripts put beside the weights: options, optimizer state, metrics */
    {"argparse", "Namespace", RY_ROLE_INERT, RY_F32},
    {"collections", "defaultdict", RY_ROLE_INERT, RY_F32},
    {"__builtin__", "dict", RY_ROLE_INERT, RY_F32},
    {"builtins", "dict", RY_ROLE_INERT, RY_F32},
    {"__builtin__", "set", RY_ROLE_INERT, RY_F32},
    {"builtins", "set", RY_ROLE_INERT, RY_F32},
    {"torch", "Size", RY_ROLE_INERT, RY_F32},
    {"torch", "device", RY_ROLE_INERT, RY_F32},
    {"torch", "float32", RY_ROLE_INERT, RY_F32},
    {"torch", "float16", RY_ROLE_INERT, RY_F32},
    {"torch", "bfloat16", RY_ROLE_INERT, RY_F32},
    {"torch", "float64", RY_ROLE_INERT, RY_F32},
    {"torch", "int64", RY_ROLE_INERT, RY_F32},
    {"numpy", "dtype", RY_ROLE_INERT, RY_F32},
    {"numpy", "ndarray", RY_ROLE_INERT, RY_F32},
    {"numpy.core.multiarray", "scalar", RY_ROLE_INERT, RY_F32},
    {"numpy._core.multiarray", "scalar", RY_ROLE_INERT, RY_F32},
    {"numpy.core.multiarray", "_reconstruct", RY_ROLE_INERT, RY_F32},
    {"numpy._core.multiarray", "_reconstruct", RY_ROLE_INERT, RY_F32},
    {"_codecs", "encode", RY_ROLE_INERT, RY_F32},
    {"pathlib", "PosixPath", RY_ROLE_INERT, RY_F32},
    {"pathlib", "WindowsPath", RY_ROLE_INERT, RY_F32},
};

static int is_equal(const char *s, const unsigned char *text, size_t length)
{
    return strlen(s) == length && !memcmp(s, text, length);
}

/* "__torch__", "__torch__.torch.nn.modules.conv" */
static int is_torchscript(const unsigned char *module, size_t length)
{
    const size_t n = sizeof TORCHSCRIPT - 1;
    return length >= n && !memcmp(module, TORCHSCRIPT, n) && (length == n || module[n] == '.');
}

static int find_global(const unsigned char *module, size_t module_length, const unsigned char *name,
                       size_t name_length)
{
    const int script = is_torchscript(module, module_length);
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (script ? globals[i].role == RY_ROLE_MODULE
                   : is_equal(globals[i].module, module, module_length) &&
                         is_equal(globals[i].name, name, name_length))
            return (int)i;
    return -1;
}

static const ry_pickle_global *global_at(int index) { return &globals[index]; }

static renyi_status push_global(ry_machine *m, const unsigned char *module, size_t module_length,
                                const unsigned char *name, size_t name_length)
{
    ry_pickle_node n = ry_machine_node(RY_PICKLE_GLOBAL);
    const int index = find_global(module, module_length, name, name_length);
    if (index < 0) {
        char why[320];
        snprintf(
            why, sizeof why,
            "the pickle calls %.*s.%.*s: refused, only tensors and plain data are read; convert "
            "the checkpoint to safetensors",
            module_length < 80 ? (int)module_length : 80, (const char *)module,
            name_length < 80 ? (int)name_length : 80, (const char *)name);
        return ry_machine_stop(m, RENYI_ERR_UNSUPPORTED, why);
    }
    n.tag = (uint8_t)index;
    return ry_machine_push(m, n);
}

/* "module\nname\n" */
renyi_status ry_machine_global(ry_machine *m, unsigned char op)
{
    const unsigned char *part[2];
    size_t length[2];
    (void)op;
    for (int i = 0; i < 2; i++) {
        const unsigned char *newline = memchr(m->at, '\n', (size_t)(m->end - m->at));
        if (!newline) return ry_machine_bad(m, "a global whose name does not end");
        part[i] = m->at;
        length[i] = (size_t)(newline - m->at);
        m->at = newline + 1;
    }
    return push_global(m, part[0], length[0], part[1], length[1]);
}

renyi_status ry_machine_stack_global(ry_machine *m, unsigned char op)
{
    uint32_t name, module;
    (void)op;
    HEAP(ry_heap_pop(m->p, &name));
    HEAP(ry_heap_pop(m->p, &module));
    const ry_pickle_node *a = &m->p->nodes[module], *b = &m->p->nodes[name];
    if (a->kind != RY_PICKLE_TEXT || b->kind != RY_PICKLE_TEXT)
        return ry_machine_bad(m, "a global whose name is not text");
    return push_global(m, a->value.text, a->count, b->value.text, b->count);
}

/* ---- tensors ------------------------------------------------------------------------------- */

static int is_text(const ry_pickle_node *n, const char *wanted)
{
    return n->kind == RY_PICKLE_TEXT && n->count == strlen(wanted) &&
           !memcmp(n->value.text, wanted, n->count);
}

static const ry_pickle_global *global_of(const ry_pickle_node *n)
{
    return n->kind == RY_PICKLE_GLOBAL ? global_at(n->tag) : NULL;
}

/* ("storage", torch.FloatStorage, key, device, elements) */
renyi_status ry_machine_persistent(ry_machine *m, unsigned char op)
{
    const ry_pickle *p = m->p;
    ry_pickle_node out = ry_machine_node(RY_PICKLE_STORAGE);
    uint32_t id;
    (void)op;
    HEAP(ry_heap_pop(m->p, &id));
    const ry_pickle_node *n = &p->nodes[id];
    if (n->kind != RY_PICKLE_TUPLE || n->count != 5 || !is_text(ry_pickle_nth(p, n, 0), "storage"))
        return ry_machine_bad(m, "a persistent id that is not a storage");
    const ry_pickle_global *type = global_of(ry_pickle_nth(p, n, 1));
    const ry_pickle_node *elements = ry_pickle_nth(p, n, 4);
    if (!type || type->role != RY_ROLE_STORAGE)
        return ry_machine_bad(m, "a storage of something else than plain numbers");
    if (ry_pickle_nth(p, n, 2)->kind != RY_PICKLE_TEXT || elements->kind != RY_PICKLE_INT ||
        elements->value.integer < 0)
        return ry_machine_bad(m, "a storage without a key or a size");
    out.tag = (uint8_t)type->dtype;
    out.value.node = id;
    return ry_machine_push(m, out);
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
static renyi_status rebuild_tensor(ry_machine *m, uint32_t args)
{
    const ry_pickle *p = m->p;
    const ry_pickle_node *n = &p->nodes[args];
    ry_pickle_node out = ry_machine_node(RY_PICKLE_TENSOR);
    if (n->count < 4 || n->count > 7)
        return ry_machine_bad(m, "a tensor with too few or too many arguments");
    const ry_pickle_node *offset = ry_pickle_nth(p, n, 1), *sizes = ry_pickle_nth(p, n, 2),
                         *strides = ry_pickle_nth(p, n, 3);
    if (ry_pickle_nth(p, n, 0)->kind != RY_PICKLE_STORAGE)
        return ry_machine_bad(m, "a tensor without a storage");
    if (offset->kind != RY_PICKLE_INT || offset->value.integer < 0)
        return ry_machine_bad(m, "a tensor whose offset is not a whole number from 0");
    if (!is_extent(p, sizes) || !is_extent(p, strides) || sizes->count != strides->count)
        return ry_machine_bad(
            m, "a tensor whose sizes or strides are not up to 8 whole numbers from 0");
    out.value.node = args;
    return ry_machine_push(m, out);
}

static renyi_status rebuild_parameter(ry_machine *m, uint32_t args)
{
    const ry_pickle_node *n = &m->p->nodes[args];
    if (!n->count) return ry_machine_bad(m, "a parameter without a tensor");
    const uint32_t data = m->p->cells[n->value.items.first].node;
    if (m->p->nodes[data].kind != RY_PICKLE_TENSOR)
        return ry_machine_bad(m, "a parameter without a tensor");
    HEAP(ry_heap_push(m->p, data));
    return RENYI_OK;
}

/* ---- calls --------------------------------------------------------------------------------- */

enum { NEWOBJ = 0x81 };

/* REDUCE and NEWOBJ: a global of the list and a tuple of arguments. */
renyi_status ry_machine_call(ry_machine *m, unsigned char op)
{
    uint32_t args, callee;
    HEAP(ry_heap_pop(m->p, &args));
    HEAP(ry_heap_pop(m->p, &callee));
    const ry_pickle_global *g = global_of(&m->p->nodes[callee]);
    if (!g)
        return ry_machine_stop(m, RENYI_ERR_UNSUPPORTED,
                               "a call of something that is not a function: refused");
    if (m->p->nodes[args].kind != RY_PICKLE_TUPLE)
        return ry_machine_bad(m, "a call without a tuple of arguments");
    if (g->role == RY_ROLE_INERT) return ry_machine_push(m, ry_machine_node(RY_PICKLE_OPAQUE));
    if (op == 'R' && g->role == RY_ROLE_TENSOR) return rebuild_tensor(m, args);
    if (op == 'R' && g->role == RY_ROLE_PARAMETER) return rebuild_parameter(m, args);
    if (g->role == RY_ROLE_DICT && !m->p->nodes[args].count) {
        ry_pickle_node dict = ry_machine_node(RY_PICKLE_DICT);
        dict.tag = 1; /* an object, so it may have a state: see ry_machine_build */
        return ry_machine_push(m, dict);
    }
    if (op == NEWOBJ && g->role == RY_ROLE_MODULE && !m->p->nodes[args].count) {
        ry_pickle_node module = ry_machine_node(RY_PICKLE_MODULE);
        module.value.node = NODE_NONE;
        return ry_machine_push(m, module);
    }
    char why[160];
    snprintf(why, sizeof why, "%s.%s called in an unknown way: refused", g->module, g->name);
    return ry_machine_stop(m, RENYI_ERR_UNSUPPORTED, why);
}

/* Sets the state of an object. A TorchScript module keeps it if it is a dict: its attributes. That
 * of an OrderedDict (nn.Module's _metadata) and of an opaque node is dropped. */
renyi_status ry_machine_build(ry_machine *m, unsigned char op)
{
    uint32_t state, object;
    (void)op;
    HEAP(ry_heap_pop(m->p, &state));
    HEAP(ry_heap_top(m->p, &object));
    ry_pickle_node *n = &m->p->nodes[object];
    if (n->kind == RY_PICKLE_MODULE) {
        if (m->p->nodes[state].kind == RY_PICKLE_DICT) n->value.node = state;
        return RENYI_OK;
    }
    if (n->kind == RY_PICKLE_OPAQUE || (n->kind == RY_PICKLE_DICT && n->tag)) return RENYI_OK;
    return ry_machine_stop(m, RENYI_ERR_UNSUPPORTED,
                           "a state set on something that has none: refused");
}
