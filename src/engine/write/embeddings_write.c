/* embeddings_write.c - rows to a file that others read: renyi_embeddings_write of gallery.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "formats/npy.h"
#include "formats/output_file.h"
#include "formats/safetensors.h"
#include "renyi/gallery.h"

#include <stdio.h>
#include <string.h>

/* ---- safetensors --------------------------------------------------------------------------- */

static ry_tensor tensor_of(const char *name, const float *rows, size_t n, size_t dim)
{
    return (ry_tensor){.name = name,
                       .dtype = RY_F32,
                       .n_dims = 2,
                       .shape = {n, dim},
                       .data = rows,
                       .bytes = (uint64_t)n * dim * sizeof *rows};
}

static renyi_status put_safetensors(const char *path, const renyi_embeddings *e,
                                    const char *const lists[4], renyi_error *err)
{
    static const char *const keys[] = {"files", "texts", "model", "policy"};
    const char *meta[2 * 4 + 1] = {NULL};
    ry_tensor tensors[2];
    size_t n_meta = 0, n_tensors = 0;
    for (size_t i = 0; i < 4; i++)
        if (lists[i]) {
            meta[n_meta++] = keys[i];
            meta[n_meta++] = lists[i];
        }
    if (e->n_images) tensors[n_tensors++] = tensor_of("image", e->images, e->n_images, e->dim);
    if (e->n_texts) tensors[n_tensors++] = tensor_of("text", e->texts, e->n_texts, e->dim);
    const ry_safetensors_content content = {tensors, n_tensors, meta, NULL, NULL};
    return ry_safetensors_write(path, &content, NULL, err);
}

static renyi_status write_safetensors(const char *path, const renyi_embeddings *e, renyi_error *err)
{
    char *texts[4] = {NULL};
    renyi_status st = RENYI_OK;
    if (e->n_images) st = ry_json_list_text(&texts[0], e->files, e->n_images, NULL, err);
    if (!st && e->n_texts) st = ry_json_list_text(&texts[1], e->words, e->n_texts, NULL, err);
    if (!st) st = ry_json_clean_text(&texts[2], e->model, NULL, err);
    if (!st) st = ry_json_clean_text(&texts[3], e->policy, NULL, err);
    if (!st) st = put_safetensors(path, e, (const char *const *)texts, err);
    for (size_t i = 0; i < 4; i++) ry_free(NULL, texts[i]);
    return st;
}

/* ---- lines of JSON ------------------------------------------------------------------------- */

/* A point whatever the locale says; nine digits tell every float from its neighbours. */
static size_t put_number(char *out, size_t room, float x)
{
    const size_t n = (size_t)snprintf(out, room, "%.9g", (double)x);
    char *comma = memchr(out, ',', n);
    if (comma) *comma = '.';
    return n;
}

/* line: room for dim numbers and what stands around them, without the name */
static renyi_status put_line(ry_output_file *f, const char *key, const char *name, const float *row,
                             size_t dim, char *line, renyi_error *err)
{
    enum { NUMBER = 20 };
    char *text = NULL;
    size_t n = 0;
    json_t *object = json_pack("{s:o}", key, ry_json_clean(name));
    if (!object) return ry_fail_nomem(err, strlen(name));
    RY_TRY(ry_json_text(&text, object, NULL, err));
    /* {"file":"a.jpg"} without its end, which comes behind the numbers */
    renyi_status st = ry_output_file_write(f, text, strlen(text) - 1, err);
    n += (size_t)snprintf(line, NUMBER, ",\"embedding\":[");
    for (size_t i = 0; i < dim; i++) {
        if (i) line[n++] = ',';
        n += put_number(line + n, NUMBER, row[i]);
    }
    memcpy(line + n, "]}\n", 3);
    if (!st) st = ry_output_file_write(f, line, n + 3, err);
    ry_free(NULL, text);
    return st;
}

static renyi_status write_jsonl(const char *path, const renyi_embeddings *e, renyi_error *err)
{
    const size_t room = (size_t)e->dim * 21 + 64, dim = e->dim;
    ry_output_file f;
    char *line = ry_alloc(NULL, room, 1);
    renyi_status st = line ? RENYI_OK : ry_fail_nomem(err, room);
    if (!st) st = ry_output_file_open(&f, path, NULL, err);
    if (!st) {
        for (size_t i = 0; !st && i < e->n_images; i++)
            st = put_line(&f, "file", e->files[i], e->images + i * dim, dim, line, err);
        for (size_t i = 0; !st && i < e->n_texts; i++)
            st = put_line(&f, "text", e->words[i], e->texts + i * dim, dim, line, err);
        st = ry_output_file_close(&f, st, NULL, err);
    }
    ry_free(NULL, line);
    return st;
}

/* ---- door ---------------------------------------------------------------------------------- */

renyi_status renyi_embeddings_write(const char *path, renyi_rows_format format,
                                    const renyi_embeddings *given, renyi_error *err)
{
    renyi_embeddings e;
    if (!path || !given) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_embeddings_write: NULL");
    RY_TRY(ry_struct_read(&e, sizeof e, given, "renyi_embeddings", err));
    if (!e.dim || !(e.n_images + e.n_texts) || (e.n_images && (!e.images || !e.files)) ||
        (e.n_texts && (!e.texts || !e.words)))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_embeddings: rows of a width, and a name for each, are wanted");
    const ry_npy_part parts[] = {{e.images, e.n_images}, {e.texts, e.n_texts}};
    switch (format) {
    case RENYI_ROWS_SAFETENSORS: return write_safetensors(path, &e, err);
    case RENYI_ROWS_NPY: return ry_npy_write(path, parts, 2, e.dim, NULL, err);
    case RENYI_ROWS_JSONL: return write_jsonl(path, &e, err);
    }
    return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_embeddings_write: format %d is none",
                   (int)format);
}
