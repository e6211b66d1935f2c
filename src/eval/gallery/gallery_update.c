/* gallery_update.c - a gallery and its folder: what is new, changed or gone.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "engine/core/engine_options.h"
#include "eval/gallery/gallery_index.h"
#include "renyi/eval.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* An update under way: the gallery as it will be. */
typedef struct update {
    const renyi_gallery *old;
    int is_anew; /* nothing of the old rows is of use */
    ry_pool pool;
    ry_making making;
    ry_picture *pictures; /* [n] */
    const char **paths;   /* [n] in the dataset */
    float *rows;          /* [n, dim] */
    uint8_t *is_there;    /* [n] row i is */
    size_t n;
    uint32_t dim;
    const renyi_embed_options *o;
    renyi_gallery_changes changes;
} update;

/* ---- the folder ---------------------------------------------------------------------------- */

static void report(update *u, const char *path, const char *message)
{
    u->changes.failed++;
    if (u->o->on_failure) u->o->on_failure(u->o->user, path, message);
}

/* The index is UTF-8, and must give the very same name back. */
static int is_utf8(const char *text)
{
    for (size_t at = 0, n = strlen(text); at < n;) {
        uint32_t c;
        at += ry_utf8_get(text + at, n - at, &c);
        if (c == RY_UTF8_BAD) return 0;
    }
    return 1;
}

static void add_photo(update *u, const renyi_dataset_image *image)
{
    struct stat st;
    if (!is_utf8(image->file)) {
        report(u, image->path, "its name is not UTF-8: rename it to have it in the index");
        return;
    }
    if (stat(image->path, &st)) {
        report(u, image->path, strerror(errno));
        return;
    }
    u->paths[u->n] = image->path;
    u->pictures[u->n++] = (ry_picture){.file = image->file,
                                       .size = (uint64_t)st.st_size,
                                       .time = (int64_t)((uint64_t)st.st_mtim.tv_sec * 1000000000u +
                                                         (uint64_t)st.st_mtim.tv_nsec)};
}

/* A photo and its path, to be sorted together. */
typedef struct entry {
    ry_picture picture;
    const char *path;
} entry;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->picture.file, ((const entry *)b)->picture.file);
}

/* Byte order of whole names; folder by folder, as they were listed, is another. */
static renyi_status sort_photos(update *u, renyi_error *err)
{
    const renyi_allocator *al = &u->old->al;
    entry *list = ry_alloc(al, u->n, sizeof *list);
    if (!list) return ry_fail_nomem(err, u->n * sizeof *list);
    for (size_t i = 0; i < u->n; i++) list[i] = (entry){u->pictures[i], u->paths[i]};
    if (u->n) qsort(list, u->n, sizeof *list, by_name);
    for (size_t i = 0; i < u->n; i++) {
        u->pictures[i] = list[i].picture;
        u->paths[i] = list[i].path;
    }
    ry_free(al, list);
    return RENYI_OK;
}

static renyi_status list_photos(update *u, const renyi_dataset *data, renyi_error *err)
{
    renyi_dataset_info info;
    renyi_dataset_get_info(data, &info);
    const size_t n = (size_t)info.n_images;
    u->pictures = RY_POOL_TAKE(&u->pool, n, ry_picture);
    u->paths = ry_alloc(&u->old->al, n, sizeof *u->paths);
    u->is_there = ry_calloc(&u->old->al, n, 1);
    u->rows = ry_calloc(&u->old->al, n, u->dim * sizeof *u->rows);
    if (!u->pictures || !u->paths || !u->is_there || !u->rows)
        return ry_fail_nomem(err, n * u->dim * sizeof *u->rows);
    for (size_t i = 0; i < n; i++) {
        renyi_dataset_image image;
        renyi_dataset_get_image(data, i, &image);
        add_photo(u, &image);
    }
    RY_TRY(sort_photos(u, err));
    for (size_t i = 0; i < u->n; i++) { /* the dataset's names go with it */
        u->pictures[i].file = ry_pool_text(&u->pool, u->pictures[i].file);
        if (!u->pictures[i].file) return ry_fail_nomem(err, 1);
    }
    return RENYI_OK;
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Both lists are sorted. Takes over the rows of photos that have not changed. */
static void compare(update *u)
{
    const renyi_gallery *g = u->old;
    size_t i = 0, j = 0;
    while (i < u->n || j < g->n) {
        const int order = i == u->n   ? 1
                          : j == g->n ? -1
                                      : strcmp(u->pictures[i].file, g->pictures[j].file);
        if (order > 0) {
            u->changes.removed++;
            j++;
            continue;
        }
        if (order == 0) {
            const ry_picture *old = &g->pictures[j];
            u->is_there[i] =
                !u->is_anew && old->size == u->pictures[i].size && old->time == u->pictures[i].time;
            if (u->is_there[i])
                memcpy(u->rows + i * u->dim, g->rows + j * u->dim, u->dim * sizeof *u->rows);
            u->changes.kept += u->is_there[i];
            j++;
        }
        i++;
    }
}

static int is_known(const renyi_gallery *g, const char *file)
{
    size_t low = 0, high = g->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(g->pictures[middle].file, file);
        if (!order) return 1;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* todo: [n_todo] places; their rows are embedded side by side and then put there. */
static renyi_status embed(update *u, const renyi_model *m, const size_t *todo, size_t n_todo,
                          renyi_error *err)
{
    const renyi_allocator *al = &u->old->al;
    const size_t bytes = u->dim * sizeof *u->rows;
    const char **paths = ry_alloc(al, n_todo, sizeof *paths);
    float *rows = ry_alloc(al, n_todo, bytes);
    uint8_t *is_done = ry_calloc(al, n_todo, 1);
    renyi_status st = paths && rows && is_done ? RENYI_OK : ry_fail_nomem(err, n_todo * bytes);
    for (size_t k = 0; !st && k < n_todo; k++) paths[k] = u->paths[todo[k]];
    if (!st) st = renyi_embed_photos(m, paths, n_todo, u->o, rows, is_done, err);
    for (size_t k = 0; (!st || st == RENYI_ERR_ABORTED) && k < n_todo; k++) {
        const size_t i = todo[k];
        if (!is_done[k]) {
            u->changes.failed += !st; /* after a stop: not tried */
            continue;
        }
        memcpy(u->rows + i * u->dim, rows + k * u->dim, bytes);
        u->is_there[i] = 1;
        if (is_known(u->old, u->pictures[i].file))
            u->changes.changed++;
        else
            u->changes.added++;
    }
    ry_free(al, paths);
    ry_free(al, rows);
    ry_free(al, is_done);
    return st;
}

static renyi_status embed_missing(update *u, const renyi_model *m, renyi_error *err)
{
    size_t *todo = ry_alloc(&u->old->al, u->n, sizeof *todo), n_todo = 0;
    if (!todo) return ry_fail_nomem(err, u->n * sizeof *todo);
    for (size_t i = 0; i < u->n; i++)
        if (!u->is_there[i]) todo[n_todo++] = i;
    const renyi_status st = embed(u, m, todo, n_todo, err);
    ry_free(&u->old->al, todo);
    return st;
}

/* ---- all ----------------------------------------------------------------------------------- */

static renyi_status describe(update *u, const char *folder, const renyi_model *m, const char *name,
                             renyi_error *err)
{
    renyi_model_info info;
    renyi_model_get_info(m, &info);
    u->dim = info.embed_dim;
    RY_TRY(ry_gallery_making(&u->making, &u->pool, m, u->o, err));
    u->making.folder = ry_pool_text(&u->pool, folder);
    u->making.model = ry_pool_text(&u->pool, name ? name : info.architecture);
    if (!u->making.folder || !u->making.model) return ry_fail_nomem(err, strlen(folder));
    u->is_anew =
        u->old->dim && (u->old->dim != u->dim || strcmp(u->old->making.folder, folder) != 0 ||
                        ry_gallery_same(&u->old->making, &u->making, u->dim, NULL));
    u->changes.is_anew = u->is_anew;
    return RENYI_OK;
}

static renyi_status run(update *u, const char *folder, const renyi_model *m, renyi_error *err)
{
    const renyi_dataset_options o = {.struct_size = sizeof o,
                                     .unlabelled = 1,
                                     .max_images = RY_GALLERY_MOST,
                                     .allocator = u->old->al};
    renyi_dataset *data = NULL;
    RY_TRY(renyi_dataset_open(&data, folder, NULL, &o, err));
    renyi_status st = list_photos(u, data, err);
    if (!st) compare(u);
    if (!st) st = embed_missing(u, m, err);
    renyi_dataset_free(data);
    return st;
}

/* Photos without a row go; the gallery becomes what the update found. */
static void settle(update *u, renyi_gallery *g)
{
    size_t n = 0;
    for (size_t i = 0; i < u->n; i++) {
        if (!u->is_there[i]) continue;
        u->pictures[n] = u->pictures[i];
        if (n != i) memcpy(u->rows + n * u->dim, u->rows + i * u->dim, u->dim * sizeof *u->rows);
        n++;
    }
    ry_pool_free(&g->pool);
    ry_free(&g->al, g->rows);
    g->pool = u->pool;
    g->making = u->making;
    g->pictures = u->pictures;
    g->rows = u->rows;
    g->n = n;
    g->dim = u->dim;
}

renyi_status renyi_gallery_update(renyi_gallery *g, const char *folder, const renyi_model *m,
                                  const char *name, const renyi_embed_options *opt,
                                  renyi_gallery_changes *changes, renyi_error *err)
{
    if (!g || !folder || !m)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_update: NULL argument");
    renyi_embed_options o;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_embed_options", err));
    o.struct_size = sizeof o;
    o.allocator = g->al;
    update u = {.old = g, .pool.al = &g->al, .o = &o};
    renyi_status st = describe(&u, folder, m, name, err);
    if (!st) st = run(&u, folder, m, err);
    ry_free(&g->al, u.paths);
    if (!st || (st == RENYI_ERR_ABORTED && u.n)) {
        settle(&u, g);
    } else {
        ry_pool_free(&u.pool);
        ry_free(&g->al, u.rows);
    }
    ry_free(&g->al, u.is_there);
    if (changes) *changes = u.changes;
    return st;
}

renyi_status renyi_gallery_check(const renyi_gallery *g, const renyi_model *m,
                                 const renyi_embed_options *opt, renyi_error *err)
{
    renyi_model_info info;
    ry_making making;
    if (!g || !m) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_check: NULL argument");
    if (!g->dim) return ry_fail(err, RENYI_ERR_ARG, -1, "it holds no photos");
    renyi_model_get_info(m, &info);
    if (info.embed_dim != g->dim)
        return ry_fail(err, RENYI_ERR_ARG, -1, "its rows have %u numbers, this model's have %u",
                       g->dim, info.embed_dim);
    ry_pool pool = {.al = &g->al};
    renyi_status st = ry_gallery_making(&making, &pool, m, opt, err);
    if (!st) st = ry_gallery_same(&g->making, &making, g->dim, err);
    ry_pool_free(&pool);
    return st;
}
