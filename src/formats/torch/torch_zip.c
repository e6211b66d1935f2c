/* torch_zip.c - opens PyTorch's zip checkpoints: finds the pickle and adds the tensors that it
 * describes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/torch/torch_zip.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "formats/tensor_set.h"
#include "formats/torch/torch_tensor.h"

#include <stdio.h>
#include <string.h>

/* ---- tensors of a dict ----------------------------------------------------------------------- */

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

/* Follows the keys under which training scripts store the state dict; only a few levels, since a
 * dict may contain itself. */
static const ry_pickle_node *unwrap_dict(const ry_pickle *p, const ry_pickle_node *dict)
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

/* ---- tensors of TorchScript modules ---------------------------------------------------------- */

/* A module may contain itself, or nested modules may multiply: depth and visits are limited. */
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

/* Like add_dict, and also the modules inside. */
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

/* Adds every tensor of the state dict, or of a TorchScript module and those inside it, whose names
 * are joined by dots. */
static renyi_status read_state(ry_tensors *set, const ry_pickle *p, const ry_torch_archive *a,
                               renyi_error *err)
{
    ry_torch_reader s = {set, p, a, 0, err};
    const ry_pickle_node *root = ry_pickle_root(p);
    if (root->kind != RY_PICKLE_DICT && root->kind != RY_PICKLE_MODULE)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: the checkpoint is not a dict of tensors; save model.state_dict()",
                       a->what);
    RY_TRY(root->kind == RY_PICKLE_MODULE ? add_modules(&s, root)
                                          : add_dict(&s, unwrap_dict(p, root)));
    return ry_tensors_finish(set, a->what, err);
}

/* ---- the archive ----------------------------------------------------------------------------- */

static int entry_ends(const ry_zip_entry *e, const char *tail)
{
    const size_t n = strlen(tail);
    return e->name_length >= n && !memcmp(e->name + e->name_length - n, tail, n);
}

static renyi_status fail_not_torch(const ry_torch_archive *a, renyi_error *err)
{
    for (size_t i = 0; i < a->zip.n_entries; i++)
        if (entry_ends(&a->zip.entries[i], ".npy"))
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                           "%s: a NumPy .npz archive is not supported; use the safetensors file",
                           a->what);
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: a zip archive of %zu entries without data.pkl; not a PyTorch checkpoint",
                   a->what, a->zip.n_entries);
}

/* "<prefix>data.pkl" gives the prefix; there is exactly one such entry. */
static renyi_status find_pickle(ry_torch_archive *a, const ry_zip_entry **out, renyi_error *err)
{
    static const char tail[] = "/data.pkl";
    *out = NULL;
    for (size_t i = 0; i < a->zip.n_entries; i++) {
        const ry_zip_entry *e = &a->zip.entries[i];
        if (!entry_ends(e, tail)) continue;
        if (*out)
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: more than one data.pkl in the archive",
                           a->what);
        *out = e;
    }
    if (!*out) return fail_not_torch(a, err);
    a->prefix = (*out)->name;
    a->prefix_length = (*out)->name_length - (sizeof tail - 2); /* keeps the '/' */
    return RENYI_OK;
}

renyi_status ry_torch_fail_packed(const ry_torch_archive *a, const ry_zip_entry *e,
                                  renyi_error *err)
{
    const int length = e->name_length < 120 ? (int)e->name_length : 120;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, (int64_t)e->header_offset,
                   "%s: the archive is compressed (entry '%.*s', zip method %u); torch.save does "
                   "not compress: unzip it and pack it again with zip -0 -r",
                   a->what, length, e->name, (unsigned)e->method);
}

static renyi_status check_archive(const ry_torch_archive *a, const ry_zip_entry *pickle,
                                  uint64_t max, renyi_error *err)
{
    const ry_zip_entry *order = ry_torch_entry(a, "byteorder", 9);
    const ry_zip_entry *packed = pickle->method ? pickle : order && order->method ? order : NULL;
    if (packed) return ry_torch_fail_packed(a, packed, err);
    if (order && (order->size != 6 || memcmp(order->data, "little", 6)))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, (int64_t)order->header_offset,
                       "%s: byteorder is not 'little'; saved on a big-endian machine", a->what);
    if (pickle->size > max)
        return ry_fail(err, RENYI_ERR_LIMIT, (int64_t)pickle->header_offset,
                       "%s: data.pkl of %llu bytes; at most %llu accepted", a->what,
                       (unsigned long long)pickle->size, (unsigned long long)max);
    return RENYI_OK;
}

static renyi_status read_archive(ry_tensors *set, ry_torch_archive *a, const renyi_limits *limits,
                                 const renyi_allocator *al, renyi_error *err)
{
    const ry_zip_entry *e;
    ry_pickle *p;
    RY_TRY(find_pickle(a, &e, err));
    RY_TRY(check_archive(a, e, ry_limits(limits).max_header_bytes, err));
    const ry_pickle_source source = {e->data, (size_t)e->size, a->what,
                                     (uint64_t)(e->data - a->zip.bytes)};
    RY_TRY(ry_pickle_run(&p, &source, al, err));
    const renyi_status st = read_state(set, p, a, err);
    ry_pickle_free(p);
    return st;
}

renyi_status ry_torch_parse(ry_tensors **out, const void *bytes, size_t size, const char *what,
                            const renyi_limits *limits, const renyi_allocator *al, renyi_error *err)
{
    ry_torch_archive a = {what, NULL, 0, {NULL, 0, NULL, 0}};

    *out = NULL;
    RY_TRY(ry_zip_open(&a.zip, bytes, size, what, al, err));
    renyi_status st = ry_tensors_new(out, al, err);
    if (!st) st = read_archive(*out, &a, limits, al, err);
    ry_zip_close(&a.zip, al);
    if (st) {
        ry_tensors_free(*out);
        *out = NULL;
    }
    return st;
}

renyi_status ry_torch_open(ry_tensors **out, const char *path, const renyi_limits *limits,
                           const renyi_allocator *al, renyi_error *err)
{
    ry_mapped_file file;

    *out = NULL;
    RY_TRY(ry_mapped_file_open(&file, path, ry_limits(limits).max_file_bytes, err));
    renyi_status st = ry_torch_parse(out, file.data, file.size, path, limits, al, err);
    if (!st) st = ry_tensors_adopt(*out, &file, err);
    if (st) {
        ry_tensors_free(*out);
        *out = NULL;
        ry_mapped_file_close(&file);
    }
    return st;
}
