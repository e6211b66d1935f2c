/* safetensors.c - the reader.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/safetensors.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/limits.h"
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

static renyi_status bad(const reader *r, const char *name, const char *what)
{
    return ry_fail(r->err, RENYI_ERR_FORMAT, -1, "%s: tensor '%.120s': %s", r->what, name, what);
}

/* ---- the header ---------------------------------------------------------------------------- */

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

/* ---- one tensor ---------------------------------------------------------------------------- */

static int to_u64(const json_t *v, uint64_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0) return 0;
    *out = (uint64_t)json_integer_value(v);
    return 1;
}

static renyi_status read_shape(const reader *r, located *l, const json_t *shape)
{
    if (!json_is_array(shape)) return bad(r, l->t.name, "\"shape\" is not an array");
    const size_t n = json_array_size(shape);
    if (n > RY_MAX_DIMS)
        return ry_fail(r->err, RENYI_ERR_LIMIT, -1,
                       "%s: tensor '%.120s': %zu dimensions; at most %d accepted", r->what,
                       l->t.name, n, RY_MAX_DIMS);
    for (size_t i = 0; i < n; i++)
        if (!to_u64(json_array_get(shape, i), &l->t.shape[i]))
            return bad(r, l->t.name, "\"shape\" holds something else than whole numbers from 0");
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
    /* whole numbers (position_ids and the like) are never weights: old writers placed them anywhere
     */
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
    if (!json_is_object(spec)) return bad(r, name, "its entry is not an object");
    const char *dtype = json_string_value(json_object_get(spec, "dtype"));
    if (!dtype) return bad(r, name, "\"dtype\" is not a string");
    if (!ry_dtype_parse(dtype, &l->t.dtype))
        return ry_fail(r->err, RENYI_ERR_UNSUPPORTED, -1,
                       "%s: tensor '%.120s': unknown dtype '%.40s'", r->what, name, dtype);
    RY_TRY(read_shape(r, l, json_object_get(spec, "shape")));
    const json_t *offsets = json_object_get(spec, "data_offsets");
    if (json_array_size(offsets) != 2 || !to_u64(json_array_get(offsets, 0), &l->begin) ||
        !to_u64(json_array_get(offsets, 1), &l->end))
        return bad(r, name, "\"data_offsets\" is not a pair of whole numbers from 0");
    if (json_object_size(spec) != 3)
        return bad(r, name, "members besides dtype, shape and data_offsets");
    return check_extent(r, l);
}

/* ---- all tensors --------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const located *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1; /* empty ones first */
    return strcmp(x->t.name, y->t.name);
}

/* Sorted by place, each must begin where the one before ended, and the last end at the end. */
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
