/* gallery_file.c - the index of a gallery, read and written. Nothing in a file is believed: names
 * stay below the folder, numbers are numbers, rows have length 1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "eval/gallery/gallery_index.h"
#include "formats/safetensors.h"

#include <math.h>
#include <string.h>

#define VERSION_KEY "renyi.index"
#define VERSION "1"

enum { MAX_DIM = 65536, MAX_NAME = 4096, N_TENSORS = 4 };

/* ---- read ---------------------------------------------------------------------------------- */

/* A name below the folder: no way out of it. */
static int is_name(const char *name, size_t length)
{
    if (!length || length > MAX_NAME || strlen(name) != length || name[0] == '/') return 0;
    for (const char *part = name;; part++) {
        const size_t n = strcspn(part, "/");
        if (!n || (n <= 2 && strspn(part, ".") >= n)) return 0; /* "", ".", ".." */
        part += n;
        if (!*part) return 1;
    }
}

static renyi_status take_names(renyi_gallery *g, const json_t *list, const char *what,
                               renyi_error *err)
{
    const size_t n = json_array_size(list);
    if (!n || n > RY_GALLERY_MOST)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: \"files\" is no list of 1 to %d names", what,
                       RY_GALLERY_MOST);
    g->pictures = RY_POOL_TAKE(&g->pool, n, ry_picture);
    if (!g->pictures) return ry_fail_nomem(err, n * sizeof *g->pictures);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        const char *name = json_string_value(item);
        if (!name || !is_name(name, json_string_length(item)))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: name %zu of \"files\" is none of a file below the folder", what, i);
        if (i && strcmp(g->pictures[i - 1].file, name) >= 0)
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: \"files\" is not in order at name %zu",
                           what, i);
        g->pictures[i].file = ry_pool_text(&g->pool, name);
        if (!g->pictures[i].file) return ry_fail_nomem(err, strlen(name));
    }
    g->n = n;
    return RENYI_OK;
}

static renyi_status read_names(renyi_gallery *g, const ry_tensors *set, const char *what,
                               renyi_error *err)
{
    const ry_json_limits limits = {.max_values = RY_GALLERY_MOST + 2, .max_depth = 2};
    const char *text = ry_tensors_meta(set, "files");
    json_t *list = NULL;
    if (!text) return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: \"files\" is missing", what);
    RY_TRY(ry_json_parse(&list, text, strlen(text), what, &limits, err));
    const renyi_status st = take_names(g, list, what, err);
    json_decref(list);
    return st;
}

static renyi_status take_texts(renyi_gallery *g, const ry_tensors *set, const char *what,
                               renyi_error *err)
{
    const struct {
        const char *key, **to;
    } texts[] = {{"folder", &g->making.folder},
                 {"model", &g->making.model},
                 {"policy", &g->making.policy},
                 {"recipe", &g->making.recipe}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = ry_tensors_meta(set, texts[i].key);
        if (!text)
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: \"%s\" is missing", what, texts[i].key);
        *texts[i].to = ry_pool_text(&g->pool, text);
        if (!*texts[i].to) return ry_fail_nomem(err, strlen(text));
    }
    return RENYI_OK;
}

static renyi_status find_tensor(const ry_tensor **out, const ry_tensors *set, const char *name,
                                ry_dtype dtype, size_t rows, size_t columns, const char *what,
                                renyi_error *err)
{
    const ry_tensor *t = ry_tensors_find(set, name);
    const uint32_t n_dims = columns ? 2 : 1;
    *out = t;
    if (t && t->dtype == dtype && t->n_dims == n_dims && t->shape[0] == rows &&
        (!columns || t->shape[1] == columns))
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: tensor \"%s\" is missing, or not as \"files\" "
                   "and \"image\" want it",
                   what, name);
}

static renyi_status take_rows(float *out, const ry_tensor *t, const char *what, renyi_error *err)
{
    const size_t n = (size_t)t->shape[0], dim = (size_t)t->shape[1];
    memcpy(out, t->data, n * dim * sizeof *out);
    for (size_t i = 0; i < n; i++) {
        double square = 0.0;
        for (size_t k = 0; k < dim; k++)
            square += (double)out[i * dim + k] * (double)out[i * dim + k];
        if (!(fabs(square - 1.0) < 1e-3))
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: row %zu of \"%s\" is not of length 1",
                           what, i, t->name);
    }
    return RENYI_OK;
}

static renyi_status take_numbers(renyi_gallery *g, const ry_tensors *set, const char *what,
                                 renyi_error *err)
{
    const ry_tensor *image = ry_tensors_find(set, "image"), *probe, *time, *size;
    const uint64_t dim = image && image->n_dims == 2 ? image->shape[1] : 0;
    if (!dim || dim > MAX_DIM)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: tensor \"image\" is missing, or has no rows of 1 to %d numbers", what,
                       MAX_DIM);
    RY_TRY(find_tensor(&image, set, "image", RY_F32, g->n, (size_t)dim, what, err));
    RY_TRY(find_tensor(&probe, set, "probe", RY_F32, 1, (size_t)dim, what, err));
    RY_TRY(find_tensor(&time, set, "time", RY_I64, g->n, 0, what, err));
    RY_TRY(find_tensor(&size, set, "size", RY_U64, g->n, 0, what, err));
    float *row = RY_POOL_TAKE(&g->pool, (size_t)dim, float);
    g->dim = (uint32_t)dim;
    g->making.probe = row;
    g->rows = ry_alloc(&g->al, g->n * (size_t)dim, sizeof *g->rows);
    if (!g->rows || !row) return ry_fail_nomem(err, g->n * (size_t)dim * sizeof *g->rows);
    for (size_t i = 0; i < g->n; i++) {
        memcpy(&g->pictures[i].time, (const char *)time->data + i * 8, 8);
        memcpy(&g->pictures[i].size, (const char *)size->data + i * 8, 8);
    }
    RY_TRY(take_rows(row, probe, what, err));
    return take_rows(g->rows, image, what, err);
}

renyi_status ry_gallery_take(renyi_gallery *g, const ry_tensors *set, const char *what,
                             renyi_error *err)
{
    const char *version = ry_tensors_meta(set, VERSION_KEY);
    if (!version) return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: this is no index of photos", what);
    if (strcmp(version, VERSION) != 0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "%s: an index of version \"%.20s\", this library knows " VERSION, what,
                       version);
    RY_TRY(take_texts(g, set, what, err));
    RY_TRY(read_names(g, set, what, err));
    return take_numbers(g, set, what, err);
}

/* ---- write --------------------------------------------------------------------------------- */

/* What the file wants side by side and a gallery has in structs. */
typedef struct columns {
    int64_t *time;
    uint64_t *size;
    const char **names;
    char *files; /* JSON */
} columns;

static renyi_status make_columns(columns *c, const renyi_gallery *g, renyi_error *err)
{
    c->time = ry_alloc(&g->al, g->n, sizeof *c->time);
    c->size = ry_alloc(&g->al, g->n, sizeof *c->size);
    c->names = ry_alloc(&g->al, g->n, sizeof *c->names);
    if (!c->time || !c->size || !c->names) return ry_fail_nomem(err, g->n * sizeof *c->names);
    for (size_t i = 0; i < g->n; i++) {
        c->time[i] = g->pictures[i].time;
        c->size[i] = g->pictures[i].size;
        c->names[i] = g->pictures[i].file;
    }
    return ry_json_list_text(&c->files, c->names, g->n, &g->al, err);
}

static renyi_status write_file(const renyi_gallery *g, const columns *c, const char *path,
                               renyi_error *err)
{
    const ry_making *k = &g->making;
    const char *const meta[] = {VERSION_KEY, VERSION,   "files",  c->files, "folder",
                                k->folder,   "model",   k->model, "policy", k->policy,
                                "recipe",    k->recipe, NULL};
    const uint64_t n = g->n, dim = g->dim;
    const ry_tensor tensors[N_TENSORS] = {
        /* wide elements first */
        {.name = "time", .dtype = RY_I64, .n_dims = 1, .shape = {n}, .data = c->time},
        {.name = "size", .dtype = RY_U64, .n_dims = 1, .shape = {n}, .data = c->size},
        {.name = "image", .dtype = RY_F32, .n_dims = 2, .shape = {n, dim}, .data = g->rows},
        {.name = "probe", .dtype = RY_F32, .n_dims = 2, .shape = {1, dim}, .data = k->probe}};
    const ry_safetensors_content content = {tensors, N_TENSORS, meta, NULL, NULL};
    return ry_safetensors_write(path, &content, &g->al, err);
}

renyi_status renyi_gallery_save(const renyi_gallery *g, const char *path, renyi_error *err)
{
    columns c = {0};
    if (!g || !path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_save: NULL argument");
    if (!g->n) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_save: it holds no photos");
    renyi_status st = make_columns(&c, g, err);
    if (!st) st = write_file(g, &c, path, err);
    ry_free(&g->al, c.time);
    ry_free(&g->al, c.size);
    ry_free(&g->al, c.names);
    ry_free(&g->al, c.files);
    return st;
}
