/* torch_tensor.c - one tensor of a PyTorch archive: a view of a storage, under a clean name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/torch/torch_tensor.h"

#include "base/checked.h"
#include "base/status.h"
#include "formats/tensor_set.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

/* A tensor as PyTorch describes it: a view of a storage. */
typedef struct view {
    ry_tensor t;
    char name[RY_MAX_TENSOR_NAME + 1];
    uint64_t offset; /* in elements, as the strides and the storage's size */
    uint64_t strides[RY_MAX_DIMS];
    const unsigned char *storage;
    uint64_t storage_elements;
} view;

static renyi_status fail_tensor(const ry_torch_reader *s, const view *v, const char *what)
{
    return ry_fail(s->err, RENYI_ERR_FORMAT, -1, "%s: tensor '%.120s': %s", s->a->what, v->name,
                   what);
}

/* ---- the storage --------------------------------------------------------------------------- */

const ry_zip_entry *ry_torch_entry(const ry_torch_archive *a, const char *name, size_t length)
{
    char full[1024];
    if (a->prefix_length + length > sizeof full) return NULL;
    memcpy(full, a->prefix, a->prefix_length);
    memcpy(full + a->prefix_length, name, length);
    return ry_zip_find(&a->zip, full, a->prefix_length + length);
}

static renyi_status find_storage(const ry_torch_reader *s, view *v, const ry_pickle_node *storage)
{
    const ry_pickle_node *id = ry_pickle_at(s->p, storage->value.node);
    const ry_pickle_node *key = ry_pickle_nth(s->p, id, 2);
    char name[128];
    uint64_t bytes;
    const int n = snprintf(name, sizeof name, "data/%.*s", key->count < 100 ? (int)key->count : 100,
                           (const char *)key->value.text);
    const ry_zip_entry *e = ry_torch_entry(s->a, name, (size_t)n);
    if (!e)
        return ry_fail(s->err, RENYI_ERR_FORMAT, -1,
                       "%s: tensor '%.120s': the archive has no entry '%s' for its data",
                       s->a->what, v->name, name);
    if (e->method) return ry_torch_fail_packed(s->a, e, s->err);
    v->t.dtype = (ry_dtype)storage->tag;
    v->storage = e->data;
    v->storage_elements = (uint64_t)ry_pickle_nth(s->p, id, 4)->value.integer;
    if (!ry_mul_u64(v->storage_elements, ry_dtype_size(v->t.dtype), &bytes) || bytes != e->size)
        return ry_fail(s->err, RENYI_ERR_FORMAT, (int64_t)e->header_offset,
                       "%s: tensor '%.120s': storage of %llu %s in entry '%s' of %llu bytes",
                       s->a->what, v->name, (ull)v->storage_elements, ry_dtype_name(v->t.dtype),
                       name, (ull)e->size);
    return RENYI_OK;
}

/* ---- the view ------------------------------------------------------------------------------ */

static void read_extent(const ry_pickle *p, const ry_pickle_node *n, uint64_t out[RY_MAX_DIMS])
{
    size_t i = 0;
    for (uint32_t c = ry_pickle_first(n); c; c = ry_pickle_next(p, c))
        out[i++] = (uint64_t)ry_pickle_item(p, c)->value.integer; /* checked by the machine */
}

/* Whether all elements are inside the storage; *elements is their number. */
static int check_inside(const view *v, uint64_t *elements)
{
    uint64_t last = v->offset;
    *elements = 1;
    for (uint32_t i = 0; i < v->t.n_dims; i++) {
        uint64_t reach;
        if (!ry_mul_u64(*elements, v->t.shape[i], elements)) return 0;
        if (!v->t.shape[i]) continue;
        if (!ry_mul_u64(v->t.shape[i] - 1, v->strides[i], &reach) ||
            !ry_add_u64(last, reach, &last))
            return 0;
    }
    return !*elements || last < v->storage_elements;
}

/* Row-major without gaps; the stride of a dimension of length 1 is never used. */
static int is_contiguous(const view *v)
{
    uint64_t expected = 1;
    for (uint32_t i = v->t.n_dims; i-- > 0;) {
        if (v->t.shape[i] == 1) continue;
        if (v->strides[i] != expected) return 0;
        expected *= v->t.shape[i]; /* at most the number of elements, which fits */
    }
    return 1;
}

/* Elements in row-major order, the last index running fastest. */
static void copy_strided(const view *v, unsigned char *out, uint64_t elements)
{
    const size_t width = ry_dtype_size(v->t.dtype);
    uint64_t index[RY_MAX_DIMS] = {0}, at = v->offset;
    for (uint64_t n = 0; n < elements; n++, out += width) {
        memcpy(out, v->storage + at * width, width);
        for (uint32_t i = v->t.n_dims; i-- > 0;) {
            at += v->strides[i];
            if (++index[i] < v->t.shape[i]) break;
            at -= v->strides[i] * index[i];
            index[i] = 0;
        }
    }
}

static renyi_status copy_view(ry_torch_reader *s, view *v, uint64_t elements)
{
    /* a view with more elements than its storage repeats some: a small file could ask for any
     * amount of memory */
    if (elements > v->storage_elements)
        return fail_tensor(s, v, "an expanded view (repeated elements); save a contiguous copy");
    s->copied += v->t.bytes;
    if (s->copied > s->a->zip.size)
        return ry_fail(
            s->err, RENYI_ERR_LIMIT, -1,
            "%s: tensor '%.120s': copies of strided tensors exceed the file's own %zu bytes",
            s->a->what, v->name, s->a->zip.size);
    unsigned char *block = ry_tensors_own(s->set, (size_t)v->t.bytes);
    if (!block) return ry_fail_nomem(s->err, (size_t)v->t.bytes);
    copy_strided(v, block, elements);
    v->t.data = block;
    return RENYI_OK;
}

static renyi_status read_view(ry_torch_reader *s, view *v, const ry_pickle_node *tensor)
{
    const ry_pickle_node *args = ry_pickle_at(s->p, tensor->value.node);
    const ry_pickle_node *sizes = ry_pickle_nth(s->p, args, 2);
    uint64_t elements;
    RY_TRY(find_storage(s, v, ry_pickle_nth(s->p, args, 0)));
    v->offset = (uint64_t)ry_pickle_nth(s->p, args, 1)->value.integer;
    v->t.n_dims = sizes->count;
    read_extent(s->p, sizes, v->t.shape);
    read_extent(s->p, ry_pickle_nth(s->p, args, 3), v->strides);
    if (!check_inside(v, &elements) || !ry_tensor_wanted_bytes(&v->t, &v->t.bytes)) {
        char shape[64];
        return ry_fail(
            s->err, RENYI_ERR_FORMAT, -1,
            "%s: tensor '%.120s': %s at element %llu reaches outside its storage of %llu",
            s->a->what, v->name, ry_tensor_shape_text(&v->t, shape, sizeof shape), (ull)v->offset,
            (ull)v->storage_elements);
    }
    if (!elements) {
        v->t.data = v->storage;
        return RENYI_OK;
    }
    if (!is_contiguous(v)) return copy_view(s, v, elements);
    v->t.data = v->storage + v->offset * ry_dtype_size(v->t.dtype);
    return RENYI_OK;
}

/* ---- its name ------------------------------------------------------------------------------ */

/* Names go into messages and JSON: UTF-8 without control characters. */
static int is_clean_name(const unsigned char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        const unsigned char c = s[i++];
        const size_t more = c < 0x80 ? 0 : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        uint32_t code = more ? c & (0x3fu >> more) : c;
        if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xc2) || c > 0xf4 || more > n - i) return 0;
        for (size_t k = 0; k < more; k++, i++) {
            if ((s[i] & 0xc0) != 0x80) return 0;
            code = code << 6 | (s[i] & 0x3fu);
        }
        if ((more == 2 && code < 0x800) || (more == 3 && (code < 0x10000 || code > 0x10ffff)) ||
            (code >= 0xd800 && code < 0xe000))
            return 0;
    }
    return 1;
}

renyi_status ry_torch_add_tensor(ry_torch_reader *s, const char *module, size_t length,
                                 const ry_pickle_node *key, const ry_pickle_node *tensor)
{
    view v;
    memset(&v, 0, sizeof v);
    if (key->kind != RY_PICKLE_TEXT || !is_clean_name(key->value.text, key->count))
        return ry_fail(s->err, RENYI_ERR_FORMAT, -1,
                       "%s: a tensor of the state dict has no proper name (UTF-8 text)",
                       s->a->what);
    if (key->count > RY_MAX_TENSOR_NAME - length)
        return ry_fail(s->err, RENYI_ERR_LIMIT, -1,
                       "%s: tensor name of %zu bytes; at most %d accepted", s->a->what,
                       length + key->count, RY_MAX_TENSOR_NAME);
    memcpy(v.name, module, length);
    memcpy(v.name + length, key->value.text, key->count);
    v.t.name = v.name;
    RY_TRY(read_view(s, &v, tensor));
    return ry_tensors_add(s->set, &v.t, s->a->what, s->err);
}
