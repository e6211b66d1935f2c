/* safetensors.c - the safetensors format, read and written.
 *
 * The writer puts the header first, then the bytes of every tensor in pieces, so that a model
 * larger than memory can be written.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/safetensors.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/output_file.h"
#include "base/status.h"
#include "formats/tensor_set.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

/* A tensor costs at most 14 JSON values (its object, 3 members, 8 dimensions, 2 offsets); the rest
 * is for metadata. Bounds what jansson may build to about 200 MB. */
#define MAX_HEADER_VALUES ((uint64_t)RY_MAX_TENSORS * 14 + 100000)

typedef struct reader {
    const char *what; /* the file, for messages */
    const unsigned char *buffer;
    uint64_t buffer_size; /* bytes behind the header */
    const renyi_allocator *al;
    renyi_error *err;
} reader;

typedef struct located {
    ry_tensor t;
    uint64_t begin, end; /* in the buffer */
} located;

static renyi_status fail_tensor(const reader *r, const char *name, const char *what)
{
    return ry_fail(r->err, RENYI_ERR_FORMAT, -1, "%s: tensor '%.120s': %s", r->what, name, what);
}

/* ---- reading: the header --------------------------------------------------------------------- */

static uint64_t u64_le(const unsigned char *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

/* Length prefix and JSON; on success *header is owned by the caller and r->buffer is set. */
static renyi_status read_header(reader *r, json_t **header, const unsigned char *bytes, size_t size,
                                const renyi_limits *limits)
{
    const uint64_t max = ry_limits(limits).max_header_bytes;
    if (size < 8)
        return ry_fail(r->err, RENYI_ERR_FORMAT, 0,
                       "%s: %zu bytes; a safetensors file has at least 8", r->what, size);
    const uint64_t n = u64_le(bytes);
    if (n > max)
        return ry_fail(r->err, RENYI_ERR_LIMIT, 0,
                       "%s: header of %llu bytes; at most %llu accepted", r->what, (ull)n,
                       (ull)max);
    if (n > size - 8)
        return ry_fail(r->err, RENYI_ERR_FORMAT, 0,
                       "%s: header of %llu bytes in a file with %zu left; the file is cut short",
                       r->what, (ull)n, size - 8);
    if (n < 2 || bytes[8] != '{')
        return ry_fail(r->err, RENYI_ERR_FORMAT, 8,
                       "%s: header of %llu bytes does not start with '{'; not a safetensors file",
                       r->what, (ull)n);
    const ry_json_limits json = {max, MAX_HEADER_VALUES, 4};
    const renyi_status st =
        ry_json_parse(header, (const char *)bytes + 8, (size_t)n, r->what, &json, r->err);
    if (st && r->err && r->err->offset >= 0) r->err->offset += 8;
    r->buffer = bytes + 8 + n;
    r->buffer_size = size - 8 - n;
    return st;
}

static renyi_status read_meta(const reader *r, ry_tensors *set, json_t *meta)
{
    const char *key;
    json_t *value;
    if (!json_is_object(meta))
        return ry_fail(r->err, RENYI_ERR_FORMAT, -1, "%s: __metadata__ is not an object", r->what);
    json_object_foreach(meta, key, value)
    {
        if (!json_is_string(value))
            return ry_fail(r->err, RENYI_ERR_FORMAT, -1,
                           "%s: __metadata__ '%.120s' is not a string", r->what, key);
        RY_TRY(ry_tensors_add_meta(set, key, json_string_value(value), r->err));
    }
    return RENYI_OK;
}

/* ---- reading: one tensor --------------------------------------------------------------------- */

static int to_u64(const json_t *v, uint64_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0) return 0;
    *out = (uint64_t)json_integer_value(v);
    return 1;
}

static renyi_status read_shape(const reader *r, located *l, const json_t *shape)
{
    if (!json_is_array(shape)) return fail_tensor(r, l->t.name, "\"shape\" is not an array");
    const size_t n = json_array_size(shape);
    if (n > RY_MAX_DIMS)
        return ry_fail(r->err, RENYI_ERR_LIMIT, -1,
                       "%s: tensor '%.120s': %zu dimensions; at most %d accepted", r->what,
                       l->t.name, n, RY_MAX_DIMS);
    for (size_t i = 0; i < n; i++)
        if (!to_u64(json_array_get(shape, i), &l->t.shape[i]))
            return fail_tensor(r, l->t.name,
                               "\"shape\" holds something else than whole numbers from 0");
    l->t.n_dims = (uint32_t)n;
    return RENYI_OK;
}

static renyi_status check_extent(const reader *r, located *l)
{
    char shape[64];
    uint64_t wanted;
    ry_tensor_shape_text(&l->t, shape, sizeof shape);
    if (l->begin > l->end || l->end > r->buffer_size)
        return ry_fail(
            r->err, RENYI_ERR_FORMAT, -1,
            "%s: tensor '%.120s': data_offsets [%llu, %llu] outside the %llu bytes behind "
            "the header; the file is damaged or cut short",
            r->what, l->t.name, (ull)l->begin, (ull)l->end, (ull)r->buffer_size);
    if (!ry_tensor_wanted_bytes(&l->t, &wanted))
        return ry_fail(r->err, RENYI_ERR_FORMAT, -1, "%s: tensor '%.120s': shape %s overflows",
                       r->what, l->t.name, shape);
    if (wanted != l->end - l->begin)
        return ry_fail(r->err, RENYI_ERR_FORMAT, -1,
                       "%s: tensor '%.120s': %s %s needs %llu bytes, data_offsets give %llu",
                       r->what, l->t.name, ry_dtype_name(l->t.dtype), shape, (ull)wanted,
                       (ull)(l->end - l->begin));
    /* integers (position_ids) are never weights; old writers did not align them */
    if (wanted && l->t.dtype >= RY_F16 && l->begin % ry_dtype_size(l->t.dtype))
        return ry_fail(
            r->err, RENYI_ERR_FORMAT, -1,
            "%s: tensor '%.120s': misaligned: %s data at offset %llu; save it again with "
            "the safetensors package",
            r->what, l->t.name, ry_dtype_name(l->t.dtype), (ull)l->begin);
    l->t.bytes = wanted;
    l->t.data = r->buffer + l->begin;
    return RENYI_OK;
}

static renyi_status read_tensor(const reader *r, located *l, const char *name, const json_t *spec)
{
    l->t.name = name;
    if (!json_is_object(spec)) return fail_tensor(r, name, "its entry is not an object");
    const char *dtype = json_string_value(json_object_get(spec, "dtype"));
    if (!dtype) return fail_tensor(r, name, "\"dtype\" is not a string");
    if (!ry_dtype_parse(dtype, &l->t.dtype))
        return ry_fail(r->err, RENYI_ERR_UNSUPPORTED, -1,
                       "%s: tensor '%.120s': unknown dtype '%.40s'", r->what, name, dtype);
    RY_TRY(read_shape(r, l, json_object_get(spec, "shape")));
    const json_t *offsets = json_object_get(spec, "data_offsets");
    if (json_array_size(offsets) != 2 || !to_u64(json_array_get(offsets, 0), &l->begin) ||
        !to_u64(json_array_get(offsets, 1), &l->end))
        return fail_tensor(r, name, "\"data_offsets\" is not a pair of whole numbers from 0");
    if (json_object_size(spec) != 3)
        return fail_tensor(r, name, "members besides dtype, shape and data_offsets");
    return check_extent(r, l);
}

/* ---- reading: all tensors -------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const located *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1; /* empty ones first */
    return strcmp(x->t.name, y->t.name);
}

/* Sorted tensors must cover the bytes: each begins where the one before ends, without a gap. */
static renyi_status check_cover(const reader *r, const located *all, size_t n)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n; at = all[i++].end)
        if (all[i].begin != at)
            return ry_fail(r->err, RENYI_ERR_FORMAT, -1,
                           "%s: tensor '%.120s' begins at %llu, but '%.120s' ends at %llu: %s",
                           r->what, all[i].t.name, (ull)all[i].begin,
                           i ? all[i - 1].t.name : "the header", (ull)at,
                           all[i].begin < at ? "they overlap" : "a hole between them");
    if (at != r->buffer_size)
        return ry_fail(r->err, RENYI_ERR_FORMAT, -1,
                       "%s: the tensors end at %llu, but %llu bytes follow the header", r->what,
                       (ull)at, (ull)r->buffer_size);
    return RENYI_OK;
}

static renyi_status read_all(const reader *r, ry_tensors *set, located *all, json_t *header)
{
    size_t n = 0;
    const char *name;
    json_t *value;
    json_object_foreach(header, name, value)
    {
        if (!strcmp(name, "__metadata__"))
            RY_TRY(read_meta(r, set, value));
        else
            RY_TRY(read_tensor(r, &all[n++], name, value));
    }
    qsort(all, n, sizeof *all, by_place);
    RY_TRY(check_cover(r, all, n));
    for (size_t i = 0; i < n; i++) RY_TRY(ry_tensors_add(set, &all[i].t, r->what, r->err));
    return ry_tensors_finish(set, r->what, r->err);
}

static renyi_status read_objects(const reader *r, ry_tensors *set, json_t *header)
{
    const size_t n = json_object_size(header);
    if (n > RY_MAX_TENSORS + 1)
        return ry_fail(r->err, RENYI_ERR_LIMIT, -1, "%s: %zu tensors; at most %d accepted", r->what,
                       n, RY_MAX_TENSORS);
    located *all = ry_calloc(r->al, n, sizeof *all);
    if (!all) return ry_fail_nomem(r->err, n * sizeof *all);
    const renyi_status st = read_all(r, set, all, header);
    ry_free(r->al, all);
    return st;
}

renyi_status ry_safetensors_parse(ry_tensors **out, const void *bytes, size_t size,
                                  const char *what, const renyi_limits *limits,
                                  const renyi_allocator *al, renyi_error *err)
{
    reader r = {what, NULL, 0, al, err};
    json_t *header = NULL;

    *out = NULL;
    RY_TRY(read_header(&r, &header, bytes, size, limits));
    renyi_status st = ry_tensors_new(out, al, err);
    if (!st) st = read_objects(&r, *out, header);
    json_decref(header);
    if (st) {
        ry_tensors_free(*out);
        *out = NULL;
    }
    return st;
}

renyi_status ry_safetensors_open(ry_tensors **out, const char *path, const renyi_limits *limits,
                                 const renyi_allocator *al, renyi_error *err)
{
    ry_mapped_file file;

    *out = NULL;
    RY_TRY(ry_mapped_file_open(&file, path, ry_limits(limits).max_file_bytes, err));
    renyi_status st = ry_safetensors_parse(out, file.data, file.size, path, limits, al, err);
    if (!st) st = ry_tensors_adopt(*out, &file, err);
    if (st) {
        ry_tensors_free(*out);
        *out = NULL;
        ry_mapped_file_close(&file);
    }
    return st;
}

/* ---- writing --------------------------------------------------------------------------------- */

enum { PIECE_BYTES = 1 << 20 }; /* a multiple of every element size */

/* {"dtype", "shape", "data_offsets"}; advances *at to the end of the tensor. */
static renyi_status describe_tensor(json_t *header, const ry_tensor *t, uint64_t *at,
                                    renyi_error *err)
{
    uint64_t bytes, end;
    if (t->n_dims > RY_MAX_DIMS || !ry_tensor_wanted_bytes(t, &bytes) ||
        !ry_add_u64(*at, bytes, &end) || end > INT64_MAX)
        return ry_fail(err, RENYI_ERR_ARG, -1, "tensor '%.120s': its size overflows", t->name);
    if (*at % ry_dtype_size(t->dtype) && bytes)
        return ry_fail(err, RENYI_ERR_ARG, -1, "tensor '%.120s' would be misaligned at offset %llu",
                       t->name, (unsigned long long)*at);
    if (!strcmp(t->name, "__metadata__") || json_object_get(header, t->name))
        return ry_fail(err, RENYI_ERR_ARG, -1, "tensor name '%.120s' is taken", t->name);
    json_t *shape = json_array();
    for (uint32_t i = 0; shape && i < t->n_dims; i++)
        if (json_array_append_new(shape, json_integer((json_int_t)t->shape[i]))) {
            json_decref(shape);
            shape = NULL;
        }
    /* json_pack steals `shape` even when it fails */
    json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", ry_dtype_name(t->dtype), "shape",
                              shape, "data_offsets", (json_int_t)*at, (json_int_t)end);
    if (json_object_set_new(header, t->name, entry))
        return ry_fail(err, RENYI_ERR_NOMEM, -1,
                       "tensor '%.120s': out of memory, or its name is not UTF-8", t->name);
    *at = end;
    return RENYI_OK;
}

static renyi_status add_meta(json_t *header, const char *const *meta, renyi_error *err)
{
    if (!meta || !meta[0]) return RENYI_OK;
    json_t *object = json_object();
    int failed = json_object_set_new(header, "__metadata__", object);
    for (; !failed && meta[0]; meta += 2)
        failed = json_object_set_new(object, meta[0], json_string(meta[1]));
    return failed ? ry_fail(err, RENYI_ERR_NOMEM, -1, "metadata: out of memory, or not UTF-8")
                  : RENYI_OK;
}

/* Length prefix + JSON, padded with spaces so that the data begins at a multiple of 64, aligned
 * for programs that map the file. */
static renyi_status write_header(ry_output_file *f, json_t *header, const renyi_allocator *al,
                                 renyi_error *err)
{
    const size_t length = json_dumpb(header, NULL, 0, JSON_COMPACT);
    const size_t padded = ((length + 8 + 63) & ~(size_t)63) - 8;
    if (!length) return ry_fail(err, RENYI_ERR_NOMEM, -1, "%s: out of memory", f->path);
    unsigned char *text = ry_alloc(al, padded + 8, 1);
    if (!text) return ry_fail_nomem(err, padded + 8);
    memset(text, ' ', padded + 8);
    for (int i = 0; i < 8; i++) text[i] = (unsigned char)((uint64_t)padded >> 8 * i);
    const size_t got = json_dumpb(header, (char *)text + 8, padded, JSON_COMPACT);
    const renyi_status st = got == length
                                ? ry_output_file_write(f, text, padded + 8, err)
                                : ry_fail(err, RENYI_ERR_NOMEM, -1, "%s: out of memory", f->path);
    ry_free(al, text);
    return st;
}

static renyi_status build_header(json_t *header, const ry_safetensors_content *content,
                                 renyi_error *err)
{
    uint64_t at = 0;
    if (!header) return ry_fail(err, RENYI_ERR_NOMEM, -1, "out of memory for the header");
    RY_TRY(add_meta(header, content->meta, err));
    for (size_t i = 0; i < content->n_tensors; i++)
        RY_TRY(describe_tensor(header, &content->tensors[i], &at, err));
    return RENYI_OK;
}

static renyi_status write_tensor(ry_output_file *f, const ry_safetensors_content *content,
                                 const ry_tensor *t, void *piece, renyi_error *err)
{
    uint64_t bytes;
    (void)ry_tensor_wanted_bytes(t, &bytes); /* checked by describe_tensor */
    for (uint64_t at = 0; at < bytes; at += PIECE_BYTES) {
        const size_t n = bytes - at < PIECE_BYTES ? (size_t)(bytes - at) : PIECE_BYTES;
        const void *from = (const unsigned char *)t->data + at;
        if (content->fill) {
            RY_TRY(content->fill(content->fill_user, t, at, piece, n, err));
            from = piece;
        }
        RY_TRY(ry_output_file_write(f, from, n, err));
    }
    return RENYI_OK;
}

static renyi_status write_data(ry_output_file *f, const ry_safetensors_content *content,
                               const renyi_allocator *al, renyi_error *err)
{
    renyi_status st = RENYI_OK;
    void *piece = content->fill ? ry_alloc(al, PIECE_BYTES, 1) : NULL;
    if (content->fill && !piece) return ry_fail_nomem(err, PIECE_BYTES);
    for (size_t i = 0; !st && i < content->n_tensors; i++)
        st = write_tensor(f, content, &content->tensors[i], piece, err);
    ry_free(al, piece);
    return st;
}

renyi_status ry_safetensors_write(const char *path, const ry_safetensors_content *content,
                                  const renyi_allocator *al, renyi_error *err)
{
    ry_output_file f;
    json_t *header = json_object();
    renyi_status st = build_header(header, content, err);
    if (st) {
        json_decref(header);
        return ry_fail_in(err, st, path);
    }
    st = ry_output_file_open(&f, path, al, err);
    if (!st) {
        st = write_header(&f, header, al, err);
        if (!st) st = write_data(&f, content, al, err);
        st = ry_output_file_close(&f, st, al, err);
    }
    json_decref(header);
    return st;
}
