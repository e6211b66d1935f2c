/* gguf.c - reads a GGUF file: every length, count, type and offset is checked before it is used.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/gguf/gguf.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/utf8.h"
#include "formats/tensor_set.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

#define AGAIN "; the file is damaged or cut short: download or convert it again"

enum { MAX_VALUES = 1 << 16, MAX_KEY = 65535, MAX_DIMS = 4, MIN_VALUE_BYTES = 8 + 1 + 4 + 1 };
enum { MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8, ALIGNMENT = 32, MAX_ALIGNMENT = 1 << 20 };

/* The part of the file before the tensor bytes, front to back. */
typedef struct reader {
    const char *what;
    const uint8_t *bytes;
    uint64_t at, size; /* size: of the file */
    uint64_t end;      /* of what may be read: the file, or the limit of the header */
    const renyi_allocator *al;
    renyi_error *err;
} reader;

/* ---- pieces -------------------------------------------------------------------------------- */

static uint64_t uint_at(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    while (n--) v = v << 8 | p[n];
    return v;
}

static renyi_status need(const reader *r, uint64_t n, const char *what)
{
    if (n <= r->end - r->at) return RENYI_OK;
    if (r->end < r->size)
        return ry_fail(r->err, RENYI_ERR_LIMIT, (int64_t)r->at,
                       "%s: byte %llu: %s ends beyond the first %llu bytes, which are the limit "
                       "for values and the list of tensors",
                       r->what, (ull)r->at, what, (ull)r->end);
    return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)r->at,
                   "%s: byte %llu: %s needs %llu bytes, %llu are left" AGAIN, r->what, (ull)r->at,
                   what, (ull)n, (ull)(r->end - r->at));
}

static renyi_status take_uint(reader *r, size_t n, const char *what, uint64_t *out)
{
    RY_TRY(need(r, n, what));
    *out = uint_at(r->bytes + r->at, n);
    r->at += n;
    return RENYI_OK;
}

static renyi_status take_text(reader *r, const char *what, ry_gguf_text *out)
{
    uint64_t n;
    RY_TRY(take_uint(r, 8, what, &n));
    RY_TRY(need(r, n, what));
    *out = (ry_gguf_text){(const char *)r->bytes + r->at, (size_t)n};
    r->at += n;
    return RENYI_OK;
}

/* A key or a tensor's name. */
static renyi_status take_name(reader *r, const char *what, size_t max, ry_gguf_text *out)
{
    const uint64_t start = r->at;
    RY_TRY(take_text(r, what, out));
    if (!out->n || out->n > max)
        return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)start,
                       "%s: byte %llu: %s of %zu bytes; 1 to %zu expected" AGAIN, r->what,
                       (ull)start, what, out->n, max);
    if (!memchr(out->at, 0, out->n) && ry_utf8_valid(out->at, out->n) == out->n) return RENYI_OK;
    return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)start,
                   "%s: byte %llu: %s is not UTF-8, or has a zero byte" AGAIN, r->what, (ull)start,
                   what);
}

/* For "%.*s": a text in a message, at most 120 bytes of it. */
#define SHOWN(t) (int)((t).n < 120 ? (t).n : 120), (t).at

/* ---- values -------------------------------------------------------------------------------- */

static const uint8_t kind_bytes[RY_GGUF_N_KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static renyi_status take_kind(reader *r, const ry_gguf_value *v, ry_gguf_kind *out)
{
    const uint64_t start = r->at;
    uint64_t kind;
    RY_TRY(take_uint(r, 4, "the kind of a value", &kind));
    if (kind >= RY_GGUF_N_KINDS)
        return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)start,
                       "%s: byte %llu: key '%.*s' has a value of kind %llu; 0 to %d expected" AGAIN,
                       r->what, (ull)start, SHOWN(v->key), (ull)kind, RY_GGUF_N_KINDS - 1);
    *out = (ry_gguf_kind)kind;
    return RENYI_OK;
}

/* Moves behind the elements; v->kind and v->count are set. */
static renyi_status skip_elements(reader *r, ry_gguf_value *v)
{
    uint64_t bytes = 0;
    ry_gguf_text text;
    v->at = r->bytes + r->at;
    if (v->kind == RY_GGUF_TEXT) {
        for (uint64_t i = 0; i < v->count; i++) RY_TRY(take_text(r, "a text", &text));
        return RENYI_OK;
    }
    if (!ry_mul_u64(v->count, kind_bytes[v->kind], &bytes)) bytes = UINT64_MAX;
    RY_TRY(need(r, bytes, "an array"));
    r->at += bytes;
    return RENYI_OK;
}

static renyi_status take_value(reader *r, ry_gguf_value *v)
{
    *v = (ry_gguf_value){.count = 1, .offset = r->at};
    RY_TRY(take_name(r, "a key", MAX_KEY, &v->key));
    RY_TRY(take_kind(r, v, &v->kind));
    v->is_array = v->kind == RY_GGUF_ARRAY;
    if (v->is_array) {
        RY_TRY(take_kind(r, v, &v->kind));
        if (v->kind == RY_GGUF_ARRAY)
            return ry_fail(r->err, RENYI_ERR_UNSUPPORTED, (int64_t)v->offset,
                           "%s: byte %llu: key '%.*s' is an array of arrays, which no model of "
                           "this program uses",
                           r->what, (ull)v->offset, SHOWN(v->key));
        RY_TRY(take_uint(r, 8, "the count of an array", &v->count));
    }
    return skip_elements(r, v);
}

static int compare_texts(ry_gguf_text a, ry_gguf_text b)
{
    const int order = memcmp(a.at, b.at, a.n < b.n ? a.n : b.n);
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int by_key(const void *a, const void *b)
{
    return compare_texts(((const ry_gguf_value *)a)->key, ((const ry_gguf_value *)b)->key);
}

static renyi_status take_values(reader *r, ry_gguf *g, uint64_t count)
{
    if (count > MAX_VALUES)
        return ry_fail(r->err, RENYI_ERR_LIMIT, 16, "%s: byte 16: %llu values; at most %d accepted",
                       r->what, (ull)count, MAX_VALUES);
    RY_TRY(need(r, count * MIN_VALUE_BYTES, "the list of values"));
    g->values = ry_calloc(r->al, count ? (size_t)count : 1, sizeof *g->values);
    if (!g->values) return ry_fail_nomem(r->err, (size_t)count * sizeof *g->values);
    for (; g->n_values < count; g->n_values++) RY_TRY(take_value(r, &g->values[g->n_values]));
    qsort(g->values, g->n_values, sizeof *g->values, by_key);
    for (size_t i = 1; i < g->n_values; i++)
        if (!by_key(&g->values[i - 1], &g->values[i]))
            return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)g->values[i].offset,
                           "%s: byte %llu: key '%.*s' occurs twice" AGAIN, r->what,
                           (ull)g->values[i].offset, SHOWN(g->values[i].key));
    return RENYI_OK;
}

const ry_gguf_value *ry_gguf_find(const ry_gguf *g, const char *key)
{
    const ry_gguf_value wanted = {.key = {key, strlen(key)}};
    if (!g->n_values) return NULL;
    return bsearch(&wanted, g->values, g->n_values, sizeof *g->values, by_key);
}

/* A whole number of the file's own layout, or `otherwise`. */
static renyi_status setting(const reader *r, const ry_gguf *g, const char *key, uint64_t otherwise,
                            uint64_t *out)
{
    const ry_gguf_value *v = ry_gguf_find(g, key);
    int64_t number = 0;
    *out = otherwise;
    if (!v) return RENYI_OK;
    if (v->is_array || !ry_gguf_integer(v, 0, &number) || number < 0)
        return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)v->offset,
                       "%s: byte %llu: '%s' is not a whole number from 0" AGAIN, r->what,
                       (ull)v->offset, key);
    *out = (uint64_t)number;
    return RENYI_OK;
}

/* ---- one tensor ---------------------------------------------------------------------------- */

/* Types as files number them. */
static const struct {
    const char *name;
    ry_dtype dtype;
    int is_read;
} types[] = {
    [0] = {"F32", RY_F32, 1},    [1] = {"F16", RY_F16, 1},    [2] = {"Q4_0", RY_Q4_0, 1},
    [3] = {"Q4_1", RY_Q4_1, 1},  [6] = {"Q5_0", RY_Q5_0, 1},  [7] = {"Q5_1", RY_Q5_1, 1},
    [8] = {"Q8_0", RY_Q8_0, 1},  [9] = {"Q8_1", 0, 0},        [10] = {"Q2_K", 0, 0},
    [11] = {"Q3_K", 0, 0},       [12] = {"Q4_K", RY_Q4_K, 1}, [13] = {"Q5_K", RY_Q5_K, 1},
    [14] = {"Q6_K", RY_Q6_K, 1}, [15] = {"Q8_K", 0, 0},       [16] = {"IQ2_XXS", 0, 0},
    [17] = {"IQ2_XS", 0, 0},     [18] = {"IQ3_XXS", 0, 0},    [19] = {"IQ1_S", 0, 0},
    [20] = {"IQ4_NL", 0, 0},     [21] = {"IQ3_S", 0, 0},      [22] = {"IQ2_S", 0, 0},
    [23] = {"IQ4_XS", 0, 0},     [24] = {"I8", RY_I8, 1},     [25] = {"I16", RY_I16, 1},
    [26] = {"I32", RY_I32, 1},   [27] = {"I64", RY_I64, 1},   [28] = {"F64", RY_F64, 1},
    [29] = {"IQ1_M", 0, 0},      [30] = {"BF16", RY_BF16, 1}, [34] = {"TQ1_0", 0, 0},
    [35] = {"TQ2_0", 0, 0},      [39] = {"MXFP4", 0, 0},
};
enum { N_TYPES = sizeof types / sizeof *types };

typedef struct located {
    ry_tensor t;
    ry_gguf_text name;
    uint64_t entry, begin; /* of its entry in the file; of its bytes among the tensor bytes */
} located;

static renyi_status take_shape(reader *r, located *l)
{
    uint64_t n, elements = 1;
    RY_TRY(take_uint(r, 4, "the number of dimensions", &n));
    if (!n || n > MAX_DIMS)
        return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)l->entry,
                       "%s: byte %llu: tensor '%.*s' has %llu dimensions; 1 to %d expected" AGAIN,
                       r->what, (ull)l->entry, SHOWN(l->name), (ull)n, MAX_DIMS);
    l->t.n_dims = (uint32_t)n;
    for (uint64_t i = n; i--;) {
        RY_TRY(take_uint(r, 8, "a size", &l->t.shape[i]));
        if (!l->t.shape[i] || !ry_mul_u64(elements, l->t.shape[i], &elements) ||
            elements > INT64_MAX)
            return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)l->entry,
                           "%s: byte %llu: tensor '%.*s' has dimension %llu of size %llu, which "
                           "is 0 or too large" AGAIN,
                           r->what, (ull)l->entry, SHOWN(l->name), (ull)(n - 1 - i),
                           (ull)l->t.shape[i]);
    }
    return RENYI_OK;
}

static renyi_status take_type(reader *r, located *l)
{
    uint64_t id;
    RY_TRY(take_uint(r, 4, "the type of a tensor", &id));
    if (id >= N_TYPES || !types[id].name)
        return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)l->entry,
                       "%s: byte %llu: tensor '%.*s' has the unknown type %llu" AGAIN, r->what,
                       (ull)l->entry, SHOWN(l->name), (ull)id);
    if (!types[id].is_read)
        return ry_fail(r->err, RENYI_ERR_UNSUPPORTED, (int64_t)l->entry,
                       "%s: byte %llu: tensor '%.*s' has type %s; F32, F16, BF16, Q8_0, Q4_0, "
                       "Q4_1, Q5_0, Q5_1, Q4_K, Q5_K and Q6_K are read: take another file of the "
                       "model, or make one with llama-quantize",
                       r->what, (ull)l->entry, SHOWN(l->name), types[id].name);
    l->t.dtype = types[id].dtype;
    const uint64_t row = l->t.shape[l->t.n_dims - 1], block = ry_dtype_block(l->t.dtype);
    if (row % block)
        return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)l->entry,
                       "%s: byte %llu: tensor '%.*s' has rows of %llu numbers; blocks of %s have "
                       "%llu" AGAIN,
                       r->what, (ull)l->entry, SHOWN(l->name), (ull)row, types[id].name,
                       (ull)block);
    return RENYI_OK;
}

static renyi_status take_tensor(reader *r, located *l)
{
    l->entry = r->at;
    RY_TRY(take_name(r, "the name of a tensor", RY_MAX_TENSOR_NAME, &l->name));
    RY_TRY(take_shape(r, l));
    RY_TRY(take_type(r, l));
    return take_uint(r, 8, "the offset of a tensor", &l->begin);
}

/* ---- all tensors --------------------------------------------------------------------------- */

/* Checks the place of a tensor among the `size` tensor bytes, behind the one before it. */
static renyi_status place_tensor(const reader *r, located *l, const located *before,
                                 uint64_t alignment, uint64_t size)
{
    uint64_t end;
    if (!ry_tensor_wanted_bytes(&l->t, &l->t.bytes) || !ry_add_u64(l->begin, l->t.bytes, &end) ||
        end > size)
        return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)l->entry,
                       "%s: byte %llu: tensor '%.*s' has %llu bytes from %llu on; there are %llu "
                       "for all tensors" AGAIN,
                       r->what, (ull)l->entry, SHOWN(l->name), (ull)l->t.bytes, (ull)l->begin,
                       (ull)size);
    if (l->begin % alignment)
        return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)l->entry,
                       "%s: byte %llu: tensor '%.*s' begins at %llu, not a multiple of the "
                       "alignment %llu" AGAIN,
                       r->what, (ull)l->entry, SHOWN(l->name), (ull)l->begin, (ull)alignment);
    if (before && l->begin < before->begin + before->t.bytes)
        return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)l->entry,
                       "%s: byte %llu: tensor '%.*s' begins at %llu, before '%.*s' ends at "
                       "%llu" AGAIN,
                       r->what, (ull)l->entry, SHOWN(l->name), (ull)l->begin, SHOWN(before->name),
                       (ull)(before->begin + before->t.bytes));
    return RENYI_OK;
}

static int by_place(const void *a, const void *b)
{
    const located *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

static renyi_status add_tensor(const reader *r, ry_tensors *set, located *l)
{
    char name[RY_MAX_TENSOR_NAME + 1];
    memcpy(name, l->name.at, l->name.n);
    name[l->name.n] = '\0';
    l->t.name = name;
    return ry_tensors_add(set, &l->t, r->what, r->err);
}

static renyi_status take_list(reader *r, ry_tensors *set, located *all, size_t n,
                              uint64_t alignment)
{
    for (size_t i = 0; i < n; i++) RY_TRY(take_tensor(r, &all[i]));
    const uint64_t start = (r->at + alignment - 1) / alignment * alignment;
    const uint64_t size = start < r->size ? r->size - start : 0;
    qsort(all, n, sizeof *all, by_place);
    for (size_t i = 0; i < n; i++) {
        RY_TRY(place_tensor(r, &all[i], i ? &all[i - 1] : NULL, alignment, size));
        all[i].t.data = r->bytes + start + all[i].begin;
        RY_TRY(add_tensor(r, set, &all[i]));
    }
    return ry_tensors_finish(set, r->what, r->err);
}

static renyi_status take_tensors(reader *r, ry_gguf *g, uint64_t count)
{
    uint64_t alignment;
    RY_TRY(setting(r, g, "general.alignment", ALIGNMENT, &alignment));
    if (!alignment || alignment > MAX_ALIGNMENT || (alignment & (alignment - 1)))
        return ry_fail(r->err, RENYI_ERR_FORMAT, (int64_t)r->at,
                       "%s: general.alignment is %llu; a power of two up to %d expected" AGAIN,
                       r->what, (ull)alignment, MAX_ALIGNMENT);
    if (count > RY_MAX_TENSORS)
        return ry_fail(r->err, RENYI_ERR_LIMIT, 8, "%s: byte 8: %llu tensors; at most %d accepted",
                       r->what, (ull)count, RY_MAX_TENSORS);
    RY_TRY(need(r, count * MIN_TENSOR_BYTES, "the list of tensors"));
    located *all = ry_calloc(r->al, count ? (size_t)count : 1, sizeof *all);
    if (!all) return ry_fail_nomem(r->err, (size_t)count * sizeof *all);
    const renyi_status st = take_list(r, g->tensors, all, (size_t)count, alignment);
    ry_free(r->al, all);
    return st;
}

/* ---- the file ------------------------------------------------------------------------------ */

static renyi_status take_version(reader *r)
{
    uint64_t version;
    if (r->size < 4 || memcmp(r->bytes, "GGUF", 4) != 0)
        return ry_fail(r->err, RENYI_ERR_FORMAT, 0, "%s: it does not begin with GGUF", r->what);
    r->at = 4;
    RY_TRY(take_uint(r, 4, "the version", &version));
    if (version == 2 || version == 3) return RENYI_OK;
    if (version && !(version & 0xffff))
        return ry_fail(r->err, RENYI_ERR_UNSUPPORTED, 4,
                       "%s: byte 4: a GGUF for big-endian machines; convert it with "
                       "gguf_convert_endian.py of llama.cpp",
                       r->what);
    return ry_fail(r->err, RENYI_ERR_UNSUPPORTED, 4,
                   "%s: byte 4: GGUF version %llu; 2 and 3 are read: convert the model again with "
                   "a current llama.cpp",
                   r->what, (ull)version);
}

static renyi_status check_split(const reader *r, const ry_gguf *g)
{
    uint64_t parts;
    RY_TRY(setting(r, g, "split.count", 0, &parts));
    if (parts <= 1) return RENYI_OK;
    return ry_fail(r->err, RENYI_ERR_UNSUPPORTED, -1,
                   "%s: one of %llu parts of a model; join them with llama-gguf-split --merge",
                   r->what, (ull)parts);
}

static renyi_status take_file(reader *r, ry_gguf *g)
{
    uint64_t n_tensors, n_values;
    RY_TRY(take_version(r));
    RY_TRY(take_uint(r, 8, "the number of tensors", &n_tensors));
    RY_TRY(take_uint(r, 8, "the number of values", &n_values));
    RY_TRY(take_values(r, g, n_values));
    RY_TRY(check_split(r, g));
    RY_TRY(ry_tensors_new(&g->tensors, r->al, r->err));
    return take_tensors(r, g, n_tensors);
}

renyi_status ry_gguf_parse(ry_gguf *out, const void *bytes, size_t size, const char *what,
                           const renyi_limits *limits, const renyi_allocator *al, renyi_error *err)
{
    const uint64_t most = ry_limits(limits).max_header_bytes;
    reader r = {.what = what,
                .bytes = bytes,
                .size = size,
                .end = size < most ? size : most,
                .al = al,
                .err = err};
    *out = (ry_gguf){0};
    const renyi_status st = take_file(&r, out);
    if (st) ry_gguf_free(out, al);
    return st;
}

void ry_gguf_free(ry_gguf *g, const renyi_allocator *al)
{
    ry_free(al, g->values);
    ry_tensors_free(g->tensors);
    *g = (ry_gguf){0};
}
