/* safetensors_write.c - the writer: header first, then the bytes of every tensor piece by piece, so
 * that a model larger than memory can be written.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/status.h"
#include "formats/safetensors.h"
#include "formats/tensor_set.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 1 << 20 }; /* a multiple of every element size */

/* ---- the header ---------------------------------------------------------------------------- */

/* {"dtype", "shape", "data_offsets"}; advances *at to the end of the tensor. */
static renyi_status describe(json_t *header, const ry_tensor *t, uint64_t *at, renyi_error *err)
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

/* Length prefix + JSON, padded with spaces so that the data begins at a multiple of 64: of the
 * vectors and cache lines of programs that map the file. */
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
        RY_TRY(describe(header, &content->tensors[i], &at, err));
    return RENYI_OK;
}

/* ---- the data ------------------------------------------------------------------------------ */

static renyi_status write_tensor(ry_output_file *f, const ry_safetensors_content *content,
                                 const ry_tensor *t, void *piece, renyi_error *err)
{
    uint64_t bytes;
    (void)ry_tensor_wanted_bytes(t, &bytes); /* checked by describe */
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
