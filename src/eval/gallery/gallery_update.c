/* gallery_update.c - brings a gallery up to date with its folder: embeds what is new or changed,
 * removes what is gone, and compares how rows were made.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/utf8.h"
#include "engine/core/engine_options.h"
#include "eval/gallery/gallery_index.h"
#include "renyi/clip.h"
#include "renyi/eval.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- how rows are made ---------------------------------------------------------------------- */

/* The origin of rows is compared by the preprocessing and by the row of a fixed image (the probe):
 * other weights give another row; another CPU or 8-bit weights give nearly the same. */
#define SAME_COSINE 0.995 /* f32, bf16 and int8 of one model are above this; other models below */

/* pixels [size, size, 3]: squares of random colours over gradients, so that all layers respond. */
static void draw_probe(uint8_t *pixels, size_t size)
{
    enum { BLOCK = 8 };
    for (size_t y = 0; y < size; y++)
        for (size_t x = 0; x < size; x++) {
            ry_rng rng = ry_rng_new((y / BLOCK) * 4099 + x / BLOCK + 1);
            const uint64_t noise = ry_rng_next(&rng);
            const size_t slopes[3] = {255 * x / size, 255 * y / size, 255 * (x + y) / (2 * size)};
            for (size_t c = 0; c < 3; c++)
                pixels[(y * size + x) * 3 + c] =
                    (uint8_t)((slopes[c] + ((noise >> (8 * c)) & 0xff)) / 2);
        }
}

static renyi_status run_probe(float *row, renyi_session *s, const renyi_preprocess *spec,
                              const renyi_allocator *al, renyi_error *err)
{
    const size_t size = spec->size;
    uint8_t *pixels = ry_alloc(al, size * size, 3);
    if (!pixels) return ry_fail_nomem(err, 3 * size * size);
    draw_probe(pixels, size);
    const renyi_status st = renyi_run_pixels(s, pixels, 1, row, err);
    ry_free(al, pixels);
    if (!st) renyi_normalise_rows(row, 1, renyi_session_outputs(s));
    return st;
}

/* Everything that decides which pixels an image becomes, as text. */
static char *recipe_text(ry_pool *pool, const renyi_preprocess *p, const renyi_embed_options *o)
{
    char text[512];
    snprintf(text, sizeof text,
             "size=%u crop_mode=%d interpolation=%d crop=%.9g mean=%.9g,%.9g,%.9g "
             "std=%.9g,%.9g,%.9g exif=%u%s",
             p->size, (int)p->crop_mode, (int)p->interpolation, p->crop_pct, p->mean[0], p->mean[1],
             p->mean[2], p->std[0], p->std[1], p->std[2], o->apply_exif != 0,
             o->decode == RENYI_DECODE_SCALED ? " decode=scaled" : "");
    return ry_pool_text(pool, text);
}

static renyi_status describe_rows(ry_row_origin *out, ry_pool *pool, const renyi_model *m,
                                  const renyi_embed_options *opt, renyi_error *err)
{
    renyi_embed_options o;
    renyi_preprocess spec;
    renyi_session *s = NULL;
    *out = (ry_row_origin){0};
    RY_TRY(ry_embed_options_read(&o, &spec, m, opt, err));
    RY_TRY(ry_embed_session(&s, m, &o, 1, err));
    float *probe = RY_POOL_TAKE(pool, renyi_session_outputs(s), float);
    out->probe = probe;
    out->policy = ry_pool_text(pool, renyi_session_policy(s));
    out->recipe = recipe_text(pool, &spec, &o);
    renyi_status st = probe && out->policy && out->recipe ? RENYI_OK : ry_fail_nomem(err, 4096);
    if (!st) st = run_probe(probe, s, &spec, pool->al, err);
    renyi_session_free(s);
    return st;
}

static renyi_status check_comparable(const ry_row_origin *a, const ry_row_origin *b, size_t dim,
                                     renyi_error *err)
{
    double cosine = 0.0;
    if (strcmp(a->policy, b->policy) != 0)
        return ry_fail(err, RENYI_ERR_ARG, -1, "it was made with the policy \"%.200s\"", a->policy);
    if (strcmp(a->recipe, b->recipe) != 0)
        return ry_fail(err, RENYI_ERR_ARG, -1, "it was made with other preprocessing");
    for (size_t k = 0; k < dim; k++) cosine += (double)a->probe[k] * (double)b->probe[k];
    if (!(cosine >= SAME_COSINE))
        return ry_fail(err, RENYI_ERR_ARG, -1, "it was made by another model (\"%.200s\")",
                       a->model);
    return RENYI_OK;
}

/* A running update: the new content of the gallery. */
typedef struct update {
    const renyi_gallery *old;
    int is_rebuilt; /* no old row can be reused */
    ry_pool pool;
    ry_row_origin origin;
    ry_gallery_image *images; /* [n] */
    const char **paths;       /* [n] in the dataset */
    float *rows;              /* [n, dim] */
    uint8_t *has_row;         /* [n] 1 = row i is filled */
    size_t n;
    uint32_t dim;
    const renyi_embed_options *o;
    renyi_gallery_changes changes;
} update;

/* ---- the folder ----------------------------------------------------------------------------- */

static void report_failure(update *u, const char *path, const char *message)
{
    u->changes.failed++;
    if (u->o->on_failure) u->o->on_failure(u->o->user, path, message);
}

/* Names in the index must be UTF-8, or they would change. */
static int is_utf8(const char *text)
{
    for (size_t at = 0, n = strlen(text); at < n;) {
        uint32_t c;
        at += ry_utf8_get(text + at, n - at, &c);
        if (c == RY_UTF8_BAD) return 0;
    }
    return 1;
}

static void add_image(update *u, const renyi_dataset_image *image)
{
    struct stat st;
    if (!is_utf8(image->file)) {
        report_failure(u, image->path, "its name is not UTF-8; rename it to add it to the index");
        return;
    }
    if (stat(image->path, &st)) {
        report_failure(u, image->path, strerror(errno));
        return;
    }
#ifdef __APPLE__
    const struct timespec changed = st.st_mtimespec;
#else
    const struct timespec changed = st.st_mtim;
#endif
    u->paths[u->n] = image->path;
    u->images[u->n++] = (ry_gallery_image){
        .file = image->file,
        .size = (uint64_t)st.st_size,
        .time = (int64_t)((uint64_t)changed.tv_sec * 1000000000u + (uint64_t)changed.tv_nsec)};
}

/* An image and its path, to be sorted together. */
typedef struct entry {
    ry_gallery_image image;
    const char *path;
} entry;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->image.file, ((const entry *)b)->image.file);
}

/* By whole names in byte order; the dataset lists them folder by folder. */
static renyi_status sort_images(update *u, renyi_error *err)
{
    const renyi_allocator *al = &u->old->al;
    entry *list = ry_alloc(al, u->n, sizeof *list);
    if (!list) return ry_fail_nomem(err, u->n * sizeof *list);
    for (size_t i = 0; i < u->n; i++) list[i] = (entry){u->images[i], u->paths[i]};
    if (u->n) qsort(list, u->n, sizeof *list, by_name);
    for (size_t i = 0; i < u->n; i++) {
        u->images[i] = list[i].image;
        u->paths[i] = list[i].path;
    }
    ry_free(al, list);
    return RENYI_OK;
}

static renyi_status list_images(update *u, const renyi_dataset *data, renyi_error *err)
{
    renyi_dataset_info info;
    renyi_dataset_get_info(data, &info);
    const size_t n = (size_t)info.n_images;
    u->images = RY_POOL_TAKE(&u->pool, n, ry_gallery_image);
    u->paths = ry_alloc(&u->old->al, n, sizeof *u->paths);
    u->has_row = ry_calloc(&u->old->al, n, 1);
    u->rows = ry_calloc(&u->old->al, n, u->dim * sizeof *u->rows);
    if (!u->images || !u->paths || !u->has_row || !u->rows)
        return ry_fail_nomem(err, n * u->dim * sizeof *u->rows);
    for (size_t i = 0; i < n; i++) {
        renyi_dataset_image image;
        renyi_dataset_get_image(data, i, &image);
        add_image(u, &image);
    }
    RY_TRY(sort_images(u, err));
    for (size_t i = 0; i < u->n; i++) { /* the names are freed with the dataset */
        u->images[i].file = ry_pool_text(&u->pool, u->images[i].file);
        if (!u->images[i].file) return ry_fail_nomem(err, 1);
    }
    return RENYI_OK;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Copies the rows of images that have not changed. Both lists are sorted. */
static void reuse_rows(update *u)
{
    const renyi_gallery *g = u->old;
    size_t i = 0, j = 0;
    while (i < u->n || j < g->n) {
        const int order = i == u->n   ? 1
                          : j == g->n ? -1
                                      : strcmp(u->images[i].file, g->images[j].file);
        if (order > 0) {
            u->changes.removed++;
            j++;
            continue;
        }
        if (order == 0) {
            const ry_gallery_image *old = &g->images[j];
            u->has_row[i] =
                !u->is_rebuilt && old->size == u->images[i].size && old->time == u->images[i].time;
            if (u->has_row[i])
                memcpy(u->rows + i * u->dim, g->rows + j * u->dim, u->dim * sizeof *u->rows);
            u->changes.kept += u->has_row[i];
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
        const int order = strcmp(g->images[middle].file, file);
        if (!order) return 1;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* The images that are being embedded, and when the index was saved. */
typedef struct embedding {
    update *u;
    const size_t *todo; /* [n] places in the update */
    size_t n, n_taken;  /* n_taken: of them have their row, or failed */
    float *rows;        /* [n, dim] */
    uint8_t *is_done;   /* [n] */
    double saved_at;    /* ry_clock of the last save, or the start */
    double save_takes;  /* seconds of the last save */
    renyi_status st;    /* of saving; the message is in *err */
    renyi_error *err;
} embedding;

/* Copies the rows of the images before `end` to their places. */
static void take_rows(embedding *e, size_t end)
{
    update *u = e->u;
    const size_t dim = u->dim;
    for (size_t k = e->n_taken; k < end; k++) {
        const size_t i = e->todo[k];
        if (!e->is_done[k]) {
            u->changes.failed++;
            continue;
        }
        memcpy(u->rows + i * dim, e->rows + k * dim, dim * sizeof *u->rows);
        u->has_row[i] = 1;
        if (is_known(u->old, u->images[i].file))
            u->changes.changed++;
        else
            u->changes.added++;
    }
    e->n_taken = end;
}

/* A fixed number of images would rewrite a large index again and again; time limits the cost. */
static int is_save_due(const embedding *e, double now)
{
    const double least = 2.0, share = 20.0 * e->save_takes;
    return e->u->o->save_to && now - e->saved_at >= (least > share ? least : share);
}

/* The progress callback of renyi_embed_photos: images are finished in order. */
static int on_embedded(void *user, uint64_t done, uint64_t total)
{
    embedding *e = user;
    const update *u = e->u;
    const double now = ry_clock();
    take_rows(e, (size_t)done);
    if (done < total && is_save_due(e, now)) {
        const ry_index_part part = {&u->origin, u->images, u->rows, u->has_row, u->n, u->dim};
        e->st = ry_index_write(u->o->save_to, &part, &u->old->al, e->err);
        e->saved_at = ry_clock();
        e->save_takes = e->saved_at - now;
        if (e->st) return 1;
    }
    return u->o->progress ? u->o->progress(u->o->user, done, total) : 0;
}

static void on_failed(void *user, const char *path, const char *message)
{
    const renyi_embed_options *o = ((const embedding *)user)->u->o;
    if (o->on_failure) o->on_failure(o->user, path, message);
}

/* Embeds the images todo[0..n_todo) and copies their rows to their places. */
static renyi_status embed_images(update *u, const renyi_model *m, const size_t *todo, size_t n_todo,
                                 renyi_error *err)
{
    const renyi_allocator *al = &u->old->al;
    const size_t bytes = u->dim * sizeof *u->rows;
    const char **paths = ry_alloc(al, n_todo, sizeof *paths);
    embedding e = {.u = u, .todo = todo, .n = n_todo, .saved_at = ry_clock(), .err = err};
    renyi_embed_options o = *u->o;
    o.user = &e;
    o.progress = on_embedded;
    o.on_failure = on_failed;
    e.rows = ry_alloc(al, n_todo, bytes);
    e.is_done = ry_calloc(al, n_todo, 1);
    renyi_status st = paths && e.rows && e.is_done ? RENYI_OK : ry_fail_nomem(err, n_todo * bytes);
    for (size_t k = 0; !st && k < n_todo; k++) paths[k] = u->paths[todo[k]];
    if (!st) {
        renyi_error why = {0};
        st = renyi_embed_photos(m, paths, n_todo, &o, e.rows, e.is_done, &why);
        if (e.st)
            st = e.st; /* and its message */
        else if (st && err)
            *err = why;
    }
    ry_free(al, paths);
    ry_free(al, e.rows);
    ry_free(al, e.is_done);
    return st;
}

static renyi_status embed_missing(update *u, const renyi_model *m, renyi_error *err)
{
    size_t *todo = ry_alloc(&u->old->al, u->n, sizeof *todo), n_todo = 0;
    if (!todo) return ry_fail_nomem(err, u->n * sizeof *todo);
    for (size_t i = 0; i < u->n; i++)
        if (!u->has_row[i]) todo[n_todo++] = i;
    const renyi_status st = embed_images(u, m, todo, n_todo, err);
    ry_free(&u->old->al, todo);
    return st;
}

/* ---- public
 * functions-------------------------------------------------------------------------------- */

/* Numbers of a row; opt may be NULL. */
static renyi_status row_width(uint32_t *out, const renyi_model *m, const renyi_embed_options *opt,
                              renyi_error *err)
{
    renyi_embed_options o;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_embed_options", err));
    if (o.output == RENYI_OUTPUT_PATCHES)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "an index has one row for each image, not one for each patch; use the "
                       "features of the class token or of the mean");
    *out = renyi_model_outputs(m, o.output ? o.output : RENYI_OUTPUT_EMBEDDING);
    return RENYI_OK;
}

static renyi_status describe_update(update *u, const char *folder, const renyi_model *m,
                                    const char *name, renyi_error *err)
{
    renyi_model_info info;
    renyi_model_get_info(m, &info);
    RY_TRY(row_width(&u->dim, m, u->o, err));
    RY_TRY(describe_rows(&u->origin, &u->pool, m, u->o, err));
    u->origin.folder = ry_pool_text(&u->pool, folder);
    u->origin.model = ry_pool_text(&u->pool, name ? name : info.architecture);
    if (!u->origin.folder || !u->origin.model) return ry_fail_nomem(err, strlen(folder));
    u->is_rebuilt =
        u->old->dim && (u->old->dim != u->dim || strcmp(u->old->origin.folder, folder) != 0 ||
                        check_comparable(&u->old->origin, &u->origin, u->dim, NULL));
    u->changes.is_anew = u->is_rebuilt;
    return RENYI_OK;
}

static void on_left_out(void *user, const char *path, const char *reason)
{
    report_failure(user, path, reason);
}

static void on_note(void *user, const char *text)
{
    const update *u = user;
    if (u->o->on_note) u->o->on_note(u->o->user, text);
}

static renyi_status update_rows(update *u, const char *folder, const renyi_model *m,
                                renyi_error *err)
{
    const renyi_dataset_options o = {.struct_size = sizeof o,
                                     .unlabelled = 1,
                                     .max_images = RY_GALLERY_MOST,
                                     .allocator = u->old->al,
                                     .user = u,
                                     .on_failure = on_left_out,
                                     .on_note = on_note};
    renyi_dataset *data = NULL;
    RY_TRY(renyi_dataset_open(&data, folder, NULL, &o, err));
    renyi_status st = list_images(u, data, err);
    if (!st) reuse_rows(u);
    if (!st) st = embed_missing(u, m, err);
    renyi_dataset_free(data);
    return st;
}

/* Drops images without a row and replaces the content of the gallery. */
static void replace_gallery(update *u, renyi_gallery *g)
{
    size_t n = 0;
    for (size_t i = 0; i < u->n; i++) {
        if (!u->has_row[i]) continue;
        u->images[n] = u->images[i];
        if (n != i) memcpy(u->rows + n * u->dim, u->rows + i * u->dim, u->dim * sizeof *u->rows);
        n++;
    }
    ry_pool_free(&g->pool);
    ry_free(&g->al, g->rows);
    g->pool = u->pool;
    g->origin = u->origin;
    g->images = u->images;
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
    renyi_status st = describe_update(&u, folder, m, name, err);
    if (!st) st = update_rows(&u, folder, m, err);
    ry_free(&g->al, u.paths);
    if (!st || (st == RENYI_ERR_ABORTED && u.n)) {
        replace_gallery(&u, g);
    } else {
        ry_pool_free(&u.pool);
        ry_free(&g->al, u.rows);
    }
    ry_free(&g->al, u.has_row);
    if (changes) *changes = u.changes;
    return st;
}

renyi_status renyi_gallery_check(const renyi_gallery *g, const renyi_model *m,
                                 const renyi_embed_options *opt, renyi_error *err)
{
    uint32_t dim = 0;
    ry_row_origin origin;
    if (!g || !m) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_gallery_check: NULL argument");
    if (!g->dim) return ry_fail(err, RENYI_ERR_ARG, -1, "the index holds no images");
    RY_TRY(row_width(&dim, m, opt, err));
    if (dim != g->dim)
        return ry_fail(err, RENYI_ERR_ARG, -1, "its rows have %u numbers, this model's have %u",
                       g->dim, dim);
    ry_pool pool = {.al = &g->al};
    renyi_status st = describe_rows(&origin, &pool, m, opt, err);
    if (!st) st = check_comparable(&g->origin, &origin, g->dim, err);
    ry_pool_free(&pool);
    return st;
}
