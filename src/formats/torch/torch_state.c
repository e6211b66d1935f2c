/* torch_state.c - which tensors a checkpoint has: those of a dict, or of the modules of a
 * TorchScript archive.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/torch/torch_state.h"

#include "base/status.h"
#include "formats/tensor_set.h"
#include "formats/torch/torch_tensor.h"

#include <stdio.h>
#include <string.h>

/* ---- a dict --------------------------------------------------------------------------------- */

/* Value of a text key if it is a dict, else NULL. The last of equal keys counts, as in Python. */
static const ry_pickle_node *sub_dict(const ry_pickle *p, const ry_pickle_node *dict,
                                      const char *name)
{
    const ry_pickle_node *found = NULL;
    const size_t length = strlen(name);
    for (uint32_t c = ry_pickle_first(dict); c;) {
        const ry_pickle_node *key = ry_pickle_item(p, c);
        const uint32_t value_cell = ry_pickle_next(p, c);
        if (key->kind == RY_PICKLE_TEXT && key->count == length &&
            !memcmp(key->value.text, name, length)) {
            const ry_pickle_node *value = ry_pickle_item(p, value_cell);
            found = value->kind == RY_PICKLE_DICT ? value : NULL;
        }
        c = ry_pickle_next(p, value_cell);
    }
    return found;
}

/* Follow the wrapping keys of training scripts; a few levels, since a dict may hold itself. */
static const ry_pickle_node *unwrap(const ry_pickle *p, const ry_pickle_node *dict)
{
    static const char *const wrappers[] = {"model", "state_dict", "module", "model_state"};
    for (int depth = 0; depth < 4; depth++) {
        const ry_pickle_node *inner = NULL;
        for (size_t i = 0; !inner && i < sizeof wrappers / sizeof *wrappers; i++)
            inner = sub_dict(p, dict, wrappers[i]);
        if (!inner) break;
        dict = inner;
    }
    return dict;
}

static renyi_status fail_no_tensors(const ry_torch_reader *s, const ry_pickle_node *dict)
{
    char keys[160] = "";
    size_t at = 0;
    for (uint32_t c = ry_pickle_first(dict); c && at < 100;) {
        const ry_pickle_node *key = ry_pickle_item(s->p, c);
        if (key->kind == RY_PICKLE_TEXT)
            at += (size_t)snprintf(keys + at, sizeof keys - at, " '%.*s'",
                                   key->count < 32 ? (int)key->count : 32,
                                   (const char *)key->value.text);
        c = ry_pickle_next(s->p, ry_pickle_next(s->p, c));
    }
    return ry_fail(s->err, RENYI_ERR_FORMAT, -1,
                   "%s: no tensors at the top, nor under model, state_dict, module or model_state; "
                   "keys seen:%s",
                   s->a->what, at ? keys : " none");
}

static renyi_status add_dict(ry_torch_reader *s, const ry_pickle_node *dict)
{
    for (uint32_t c = ry_pickle_first(dict); c;) {
        const uint32_t value_cell = ry_pickle_next(s->p, c);
        const ry_pickle_node *value = ry_pickle_item(s->p, value_cell);
        if (value->kind == RY_PICKLE_TENSOR)
            RY_TRY(ry_torch_add_tensor(s, "", 0, ry_pickle_item(s->p, c), value));
        c = ry_pickle_next(s->p, value_cell);
    }
    return ry_tensors_count(s->set) ? RENYI_OK : fail_no_tensors(s, dict);
}

/* ---- modules of TorchScript ------------------------------------------------------------------ */

/* One may hold itself, or many of one that holds many of another: depth and visits are bounded. */
enum { MAX_MODULE_DEPTH = 32, MAX_ATTRIBUTES = 1 << 20 };

typedef struct module_walk {
    char name[RY_MAX_TENSOR_NAME + 2]; /* "visual.transformer." */
    uint32_t n_attributes;
} module_walk;

static renyi_status add_module(ry_torch_reader *s, module_walk *w, size_t length,
                               const ry_pickle_node *module, int depth);

static renyi_status add_attribute(ry_torch_reader *s, module_walk *w, size_t length,
                                  const ry_pickle_node *key, const ry_pickle_node *value, int depth)
{
    if (++w->n_attributes > MAX_ATTRIBUTES || depth > MAX_MODULE_DEPTH)
        return ry_fail(s->err, RENYI_ERR_LIMIT, -1,
                       "%s: TorchScript modules with more than %d attributes, or more than %d deep",
                       s->a->what, MAX_ATTRIBUTES, MAX_MODULE_DEPTH);
    if (value->kind == RY_PICKLE_TENSOR) return ry_torch_add_tensor(s, w->name, length, key, value);
    if (value->kind != RY_PICKLE_MODULE) return RENYI_OK;
    if (key->kind != RY_PICKLE_TEXT || key->count > RY_MAX_TENSOR_NAME - length)
        return ry_fail(s->err, RENYI_ERR_FORMAT, -1,
                       "%s: a TorchScript module inside '%.120s' has no name of at most %d bytes",
                       s->a->what, length ? w->name : "the first", RY_MAX_TENSOR_NAME);
    memcpy(w->name + length, key->value.text, key->count);
    w->name[length + key->count] = '.';
    w->name[length + key->count + 1] = '\0';
    return add_module(s, w, length + key->count + 1, value, depth + 1);
}

/* As add_dict, and into the modules inside. */
static renyi_status add_module(ry_torch_reader *s, module_walk *w, size_t length,
                               const ry_pickle_node *module, int depth)
{
    const ry_pickle_node *attributes = ry_pickle_at(s->p, module->value.node);
    if (attributes->kind != RY_PICKLE_DICT) return RENYI_OK;
    for (uint32_t c = ry_pickle_first(attributes); c;) {
        const uint32_t value_cell = ry_pickle_next(s->p, c);
        RY_TRY(add_attribute(s, w, length, ry_pickle_item(s->p, c),
                             ry_pickle_item(s->p, value_cell), depth));
        c = ry_pickle_next(s->p, value_cell);
    }
    return RENYI_OK;
}

static renyi_status add_modules(ry_torch_reader *s, const ry_pickle_node *root)
{
    module_walk w = {"", 0};
    RY_TRY(add_module(s, &w, 0, root, 0));
    if (ry_tensors_count(s->set)) return RENYI_OK;
    return ry_fail(s->err, RENYI_ERR_FORMAT, -1, "%s: a TorchScript archive without a tensor",
                   s->a->what);
}

renyi_status ry_torch_state_read(ry_tensors *set, const ry_pickle *p, const ry_torch_archive *a,
                                 renyi_error *err)
{
    ry_torch_reader s = {set, p, a, 0, err};
    const ry_pickle_node *root = ry_pickle_root(p);
    if (root->kind != RY_PICKLE_DICT && root->kind != RY_PICKLE_MODULE)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: the checkpoint is not a dict of tensors; save model.state_dict()",
                       a->what);
    RY_TRY(root->kind == RY_PICKLE_MODULE ? add_modules(&s, root) : add_dict(&s, unwrap(p, root)));
    return ry_tensors_finish(set, a->what, err);
}
