/* gallery.c - renyi_gallery: creates, opens and searches an index of images.
 *
 * Nothing in a file is trusted: names stay below the folder, numbers are finite, rows have
 * length 1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "eval/gallery/gallery_index.h"
#include "formats/safetensors.h"
#include "kernels/rows/rows.h"

#include <math.h>
#include <string.h>

renyi_status renyi_gallery_new(renyi_gallery **out, const renyi_options *opt, renyi_error *err)
{
    renyi_options o;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_new: out is NULL");
    *out = NULL;
    RY_TRY(ry_options_read(&o, opt, err));
    renyi_gallery *g = ry_calloc(&o.allocator, 1, sizeof *g);
    if (!g) return ry_fail_nomem(err, sizeof *g);
    g->al = o.allocator;
    g->pool.al = &g->al;
    g->limits = o.limits;
    g->origin = (ry_row_origin){.folder = "", .model = "", .policy = "", .recipe = ""};
    *out = g;
    return RENYI_OK;
}

renyi_status renyi_gallery_open(renyi_gallery **out, const char *path, const renyi_options *opt,
                                renyi_error *err)
{
    ry_tensors *set = NULL;
    if (!path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_open: path is NULL");
    RY_TRY(renyi_gallery_new(out, opt, err));
    const renyi_limits limits = ry_limits(&(*out)->limits);
    renyi_status st = ry_safetensors_open(&set, path, &limits, &(*out)->al, err);
    if (!st) st = ry_gallery_read(*out, set, path, err);
    ry_tensors_free(set);
    if (st) {
        renyi_gallery_free(*out);
        *out = NULL;
    }
    return st;
}

void renyi_gallery_free(renyi_gallery *g)
{
    if (!g) return;
    const renyi_allocator al = g->al;
    ry_pool_free(&g->pool);
    ry_free(&al, g->rows);
    ry_free(&al, g);
}

void renyi_gallery_get_info(const renyi_gallery *g, renyi_gallery_info *out)
{
    const ry_row_origin *origin = &g->origin;
    *out = (renyi_gallery_info){g->n, g->dim, origin->folder, origin->model, origin->policy};
}

void renyi_gallery_get_photo(const renyi_gallery *g, size_t i, renyi_gallery_photo *out)
{
    const ry_gallery_image *p = &g->images[i];
    *out = (renyi_gallery_photo){p->file, p->size, p->time, g->rows + i * g->dim};
}

/* ---- search --------------------------------------------------------------------------------- */

/* Inserts a hit into the list of the `most` best, best first; on a tie the earlier one stays first.
 */
static void insert_hit(renyi_hit *hits, size_t most, size_t *n, renyi_hit hit)
{
    if (*n == most && !(hit.score > hits[most - 1].score)) return;
    size_t at = *n < most ? (*n)++ : most - 1;
    for (; at && hit.score > hits[at - 1].score; at--) hits[at] = hits[at - 1];
    hits[at] = hit;
}

renyi_status renyi_gallery_search(const renyi_gallery *g, const float *row, size_t most,
                                  renyi_hit *hits, size_t *n, renyi_error *err)
{
    if (!g || !row || !n || (most && !hits))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_search: NULL argument");
    *n = 0;
    const double length = sqrt(ry_row_dot_double(row, row, g->dim));
    if (g->n && !(length > 0.0 && isfinite(length)))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_search: the row has length %g",
                       length);
    for (size_t i = 0; most && i < g->n; i++) {
        const double cosine = ry_row_dot_double(row, g->rows + i * g->dim, g->dim) / length;
        const double score = fmin(1.0, fmax(-1.0, cosine)); /* rows have length 1 up to rounding */
        insert_hit(hits, most, n, (renyi_hit){i, score});
    }
    return RENYI_OK;
}

enum { MAX_DIM = 65536, MAX_NAME = 4096 };

/* ---- read ----------------------------------------------------------------------------------- */

/* A name that cannot leave the folder. */
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

static renyi_status copy_names(renyi_gallery *g, const json_t *list, const char *what,
                               renyi_error *err)
{
    const size_t n = json_array_size(list);
    if (!n || n > RY_GALLERY_MOST)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: \"files\" is not a list of 1 to %d names",
                       what, RY_GALLERY_MOST);
    g->images = RY_POOL_TAKE(&g->pool, n, ry_gallery_image);
    if (!g->images) return ry_fail_nomem(err, n * sizeof *g->images);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        const char *name = json_string_value(item);
        if (!name || !is_name(name, json_string_length(item)))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: name %zu of \"files\" is not a file below the folder", what, i);
        if (i && strcmp(g->images[i - 1].file, name) >= 0)
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: \"files\" is not in order at name %zu",
                           what, i);
        g->images[i].file = ry_pool_text(&g->pool, name);
        if (!g->images[i].file) return ry_fail_nomem(err, strlen(name));
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
    const renyi_status st = copy_names(g, list, what, err);
    json_decref(list);
    return st;
}

static renyi_status read_texts(renyi_gallery *g, const ry_tensors *set, const char *what,
                               renyi_error *err)
{
    const struct {
        const char *key, **to;
    } texts[] = {{"folder", &g->origin.folder},
                 {"model", &g->origin.model},
                 {"policy", &g->origin.policy},
                 {"recipe", &g->origin.recipe}};
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
                                ry_dtype dtype, size_t rows, size_t index_columns, const char *what,
                                renyi_error *err)
{
    const ry_tensor *t = ry_tensors_find(set, name);
    const uint32_t n_dims = index_columns ? 2 : 1;
    *out = t;
    if (t && t->dtype == dtype && t->n_dims == n_dims && t->shape[0] == rows &&
        (!index_columns || t->shape[1] == index_columns))
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: tensor \"%s\" is missing, or its shape does not match \"files\" "
                   "and \"image\"",
                   what, name);
}

static renyi_status copy_rows(float *out, const ry_tensor *t, const char *what, renyi_error *err)
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

static renyi_status read_tensors(renyi_gallery *g, const ry_tensors *set, const char *what,
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
    g->origin.probe = row;
    g->rows = ry_alloc(&g->al, g->n * (size_t)dim, sizeof *g->rows);
    if (!g->rows || !row) return ry_fail_nomem(err, g->n * (size_t)dim * sizeof *g->rows);
    for (size_t i = 0; i < g->n; i++) {
        memcpy(&g->images[i].time, (const char *)time->data + i * 8, 8);
        memcpy(&g->images[i].size, (const char *)size->data + i * 8, 8);
    }
    RY_TRY(copy_rows(row, probe, what, err));
    return copy_rows(g->rows, image, what, err);
}

renyi_status ry_gallery_read(renyi_gallery *g, const ry_tensors *set, const char *what,
                             renyi_error *err)
{
    const char *version = ry_tensors_meta(set, RY_INDEX_KEY);
    if (!version)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: this is not an index of images", what);
    if (strcmp(version, RY_INDEX_VERSION) != 0)
        return ry_fail(
            err, RENYI_ERR_UNSUPPORTED, -1,
            "%s: an index of version \"%.20s\"; this library reads version " RY_INDEX_VERSION, what,
            version);
    RY_TRY(read_texts(g, set, what, err));
    RY_TRY(read_names(g, set, what, err));
    return read_tensors(g, set, what, err);
}
