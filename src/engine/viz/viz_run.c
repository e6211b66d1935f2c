/* viz_run.c - the public functions of viz.h: plans what is to be shown and fills one result per
 * image.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/core/model_handle.h"
#include "engine/viz/viz_plan.h"

#include <math.h>
#include <string.h>

/* ---- making -------------------------------------------------------------------------------- */

static renyi_status open_scores(renyi_viz *v, renyi_error *err)
{
    const ry_vit_config *c = &v->model->vit.config;
    const size_t tokens = (size_t)c->n_prefix + v->model->vit.n_patches;
    const char *names[RY_MAX_METRICS];
    for (uint32_t i = 0; i < v->n_scored; i++) names[i] = v->scored[i].name;
    const ry_scores_options o = {.n_metrics = v->n_scored,
                                 .metrics = names,
                                 .keep = 1.0,
                                 .max_batch = 1,
                                 .n_threads = v->n_threads,
                                 .watch = v->attention ? ry_viz_watch : NULL,
                                 .user = v};
    if (v->attention) {
        const size_t n = 2 * tokens * c->dim * v->n_layers;
        v->seen = RY_POOL_TAKE(&v->pool, n, float);
        if (!v->seen) return ry_fail_nomem(err, n * sizeof *v->seen);
    }
    return ry_scores_new(&v->scores, v->model, &o, err);
}

static renyi_status fill_viz(renyi_viz *v, const renyi_viz_options *o, renyi_error *err)
{
    RY_TRY(ry_viz_read_options(v, o, err));
    RY_TRY(ry_viz_read_policies(v, o, err));
    return open_scores(v, err);
}

renyi_status renyi_viz_new(renyi_viz **out, const renyi_model *m, const renyi_viz_options *opt,
                           renyi_error *err)
{
    renyi_viz_options o;
    if (!out || !m) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_viz_new: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_viz_options", err));
    renyi_viz *v = ry_calloc(&o.allocator, 1, sizeof *v);
    if (!v) return ry_fail_nomem(err, sizeof *v);
    v->model = m;
    v->al = o.allocator;
    v->pool.al = &v->al;
    v->progress = o.progress;
    v->progress_user = o.progress_user;
    v->n_threads = o.n_threads ? o.n_threads : ry_cpu_threads(1);
    const renyi_status st = fill_viz(v, &o, err);
    if (st) {
        renyi_viz_free(v);
        return st;
    }
    *out = v;
    return RENYI_OK;
}

void renyi_viz_free(renyi_viz *v)
{
    if (!v) return;
    const renyi_allocator al = v->al;
    ry_scores_free(v->scores);
    ry_pool_free(&v->pool);
    ry_free(&al, v);
}

/* ---- running ------------------------------------------------------------------------------- */

/* The result that a caller gets, and the memory that its lists are in. */
typedef struct holder {
    renyi_viz_result result;
    renyi_allocator al;
    ry_pool pool;
} holder;

static renyi_status fill_image(const renyi_viz *v, const renyi_image *image, const char *name,
                               holder *h, renyi_error *err)
{
    const ry_vit_config *c = &v->model->vit.config;
    renyi_viz_result *r = &h->result;
    const size_t bytes = (size_t)c->image_size * c->image_size * 3;
    uint8_t *rgb = ry_pool_take(&h->pool, bytes, 1);
    uint32_t *layers = RY_POOL_TAKE(&h->pool, v->n_layers, uint32_t);
    r->photo.name = ry_pool_text(&h->pool, name ? name : "photo");
    r->model = ry_pool_text(&h->pool, c->architecture);
    if (!rgb || !layers || !r->photo.name || !r->model) return ry_fail_nomem(err, bytes);
    memcpy(layers, v->layers, v->n_layers * sizeof *layers);
    r->photo.rgb = rgb;
    r->photo.size = c->image_size;
    r->photo.patch = c->patch_size;
    r->photo.grid = c->image_size / c->patch_size;
    r->n_blocks = c->n_blocks;
    r->n_patches = v->model->vit.n_patches;
    r->n_prefix = c->n_prefix;
    r->n_heads = c->n_heads;
    r->n_layers = v->n_layers;
    r->layers = layers;
    return renyi_image_fit(rgb, image, &c->preprocess, &v->model->al, err);
}

/* Leaves the part of the photo that patches cover. */
static void cut_rest(renyi_viz_result *r, uint32_t size)
{
    const uint32_t side = r->photo.grid * r->photo.patch;
    uint8_t *rgb = (uint8_t *)r->photo.rgb; /* our own: fill_image */
    r->photo.size = side;
    for (uint32_t y = 1; size > side && y < side; y++)
        memmove(rgb + (size_t)y * side * 3, rgb + (size_t)y * size * 3, (size_t)side * 3);
}

static renyi_status fill_result(renyi_viz *v, const renyi_image *image, const char *name, holder *h,
                                renyi_error *err)
{
    renyi_viz_result *r = &h->result;
    RY_TRY(fill_image(v, image, name, h, err));
    ry_scores_run(v->scores, r->photo.rgb, NULL, 1);
    RY_TRY(ry_viz_fill_dense(v, r, &h->pool, err));
    RY_TRY(ry_viz_fill_answer(v, &v->policies[0], ry_scores_logits(v->scores, 0), NAN, &r->dense,
                              &h->pool, err));
    if (v->attention) RY_TRY(ry_viz_fill_attention(v, r, &h->pool, err));
    RY_TRY(ry_viz_fill_rows(v, r, &h->pool, err));
    cut_rest(r, v->model->vit.config.image_size);
    return RENYI_OK;
}

renyi_status renyi_viz_run(renyi_viz *v, const renyi_image *image, const char *name,
                           renyi_viz_result **out, renyi_error *err)
{
    if (!v || !image || !out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_viz_run: NULL argument");
    *out = NULL;
    holder *h = ry_calloc(&v->al, 1, sizeof *h);
    if (!h) return ry_fail_nomem(err, sizeof *h);
    h->al = v->al;
    h->pool.al = &h->al;
    const renyi_status st = fill_result(v, image, name, h, err);
    if (st) {
        renyi_viz_result_free(&h->result);
        return st;
    }
    *out = &h->result;
    return RENYI_OK;
}

void renyi_viz_result_free(renyi_viz_result *r)
{
    if (!r) return;
    holder *h = (holder *)r; /* its first member */
    const renyi_allocator al = h->al;
    ry_pool_free(&h->pool);
    ry_free(&al, h);
}
