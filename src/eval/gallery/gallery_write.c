/* gallery_write.c - writes an index of images: of a gallery, or the finished part of an update.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "eval/gallery/gallery_index.h"
#include "formats/safetensors.h"

#include <string.h>

enum { N_TENSORS = 4 };

/* The fields of the images as columns of the file. */
typedef struct index_columns {
    int64_t *time;
    uint64_t *size;
    const char **names;
    const float **rows;
    char *files; /* JSON */
    size_t n, dim;
} index_columns;

static renyi_status make_columns(index_columns *c, const ry_index_part *part,
                                 const renyi_allocator *al, renyi_error *err)
{
    c->dim = part->dim;
    c->time = ry_alloc(al, part->n, sizeof *c->time);
    c->size = ry_alloc(al, part->n, sizeof *c->size);
    c->names = ry_alloc(al, part->n, sizeof *c->names);
    c->rows = ry_alloc(al, part->n, sizeof *c->rows);
    if (!c->time || !c->size || !c->names || !c->rows)
        return ry_fail_nomem(err, part->n * sizeof *c->names);
    for (size_t i = 0; i < part->n; i++) {
        if (part->has_row && !part->has_row[i]) continue;
        c->time[c->n] = part->images[i].time;
        c->size[c->n] = part->images[i].size;
        c->names[c->n] = part->images[i].file;
        c->rows[c->n++] = part->rows + i * part->dim;
    }
    return ry_json_list_text(&c->files, c->names, c->n, al, err);
}

/* Rows are not adjacent in memory: a piece of "image" is collected from them. */
static renyi_status fill_tensor(void *user, const ry_tensor *t, uint64_t at, void *out, size_t n,
                                renyi_error *err)
{
    const index_columns *c = user;
    const size_t row_bytes = c->dim * sizeof(float);
    char *to = out;
    (void)err;
    if (t->data) {
        memcpy(out, (const char *)t->data + at, n);
        return RENYI_OK;
    }
    while (n) {
        const size_t inside = (size_t)(at % row_bytes), left = row_bytes - inside;
        const size_t part = n < left ? n : left;
        memcpy(to, (const char *)c->rows[at / row_bytes] + inside, part);
        to += part;
        at += part;
        n -= part;
    }
    return RENYI_OK;
}

static renyi_status write_columns(index_columns *c, const ry_row_origin *origin, const char *path,
                                  const renyi_allocator *al, renyi_error *err)
{
    const char *const meta[] = {RY_INDEX_KEY, RY_INDEX_VERSION, "files",  c->files,
                                "folder",     origin->folder,   "model",  origin->model,
                                "policy",     origin->policy,   "recipe", origin->recipe,
                                NULL};
    const uint64_t n = c->n, dim = c->dim;
    const ry_tensor tensors[N_TENSORS] = {
        /* wide elements first, for alignment */
        {.name = "time", .dtype = RY_I64, .n_dims = 1, .shape = {n}, .data = c->time},
        {.name = "size", .dtype = RY_U64, .n_dims = 1, .shape = {n}, .data = c->size},
        {.name = "image", .dtype = RY_F32, .n_dims = 2, .shape = {n, dim}},
        {.name = "probe", .dtype = RY_F32, .n_dims = 2, .shape = {1, dim}, .data = origin->probe}};
    const ry_safetensors_content content = {tensors, N_TENSORS, meta, fill_tensor, c};
    return ry_safetensors_write(path, &content, al, err);
}

renyi_status ry_index_write(const char *path, const ry_index_part *part, const renyi_allocator *al,
                            renyi_error *err)
{
    index_columns c = {0};
    renyi_status st = make_columns(&c, part, al, err);
    if (!st && c.n) st = write_columns(&c, part->origin, path, al, err);
    ry_free(al, c.time);
    ry_free(al, c.size);
    ry_free(al, c.names);
    ry_free(al, c.rows);
    ry_free(al, c.files);
    return st;
}

renyi_status renyi_gallery_save(const renyi_gallery *g, const char *path, renyi_error *err)
{
    if (!g || !path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_save: NULL argument");
    if (!g->n)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_save: the gallery holds no images");
    const ry_index_part all = {&g->origin, g->images, g->rows, NULL, g->n, g->dim};
    return ry_index_write(path, &all, &g->al, err);
}
