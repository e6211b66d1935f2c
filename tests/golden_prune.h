/* golden_prune.h - what the golden tests of pruning share: a model with the photos and results of
 * the reference, and a hook that lets a rule decide, shows the decision, and then puts the
 * reference's choice in its place. Without that one swapped pair of near-equal scores would make
 * every later layer incomparable.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_GOLDEN_PRUNE_H
#define RENYI_TESTS_GOLDEN_PRUNE_H

#include "engine/model.h"
#include "formats/safetensors.h"
#include "image/patches.h"
#include "model/vit_plan.h"
#include "prune/pruner.h"
#include "shared.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { GOLDEN_PHOTOS = 12, GOLDEN_CLASSES = 1000 };

typedef struct golden_model {
    const char *name, *model, *photos; /* below shared/ */
} golden_model;

static const golden_model golden_models[] = {
    {"vit_tiny", "models/vit_tiny_patch16_224.augreg_in21k_ft_in1k", "golden/vit_tiny.safetensors"},
    {"deit_tiny", "models/deit_tiny_patch16_224.fb_in1k", "golden/deit_tiny.safetensors"}};

typedef struct golden {
    renyi_model *model;
    ry_tensors *photos, *taps; /* the same set when the results lie beside the photos */
    float lut[3][256];
} golden;

static inline ry_tensors *golden_tensors(const char *path)
{
    ry_tensors *t;
    renyi_error err = {0};
    if (ry_safetensors_open(&t, path, NULL, NULL, &err)) fail_msg("%s", err.message);
    return t;
}

/* `taps` below shared/, NULL = in the file of the photos. 0, and a loud line, when one is absent.
 */
static inline int golden_open(golden *g, const golden_model *m, const char *taps, renyi_cpu level)
{
    renyi_error err = {0};
    const char *model = shared_path(m->model), *photos = shared_path(m->photos);
    const char *results = taps ? shared_path(taps) : photos;
    if (!model || !photos || !results) return 0;
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level};
    if (renyi_model_open(&g->model, model, &opt, &err)) fail_msg("%s", err.message);
    g->photos = golden_tensors(photos);
    g->taps = taps ? golden_tensors(results) : g->photos;
    ry_normalize_lut(g->lut, g->model->vit.config.preprocess.mean,
                     g->model->vit.config.preprocess.std);
    return 1;
}

static inline void golden_close(golden *g)
{
    renyi_model_free(g->model);
    if (g->taps != g->photos) ry_tensors_free(g->taps);
    ry_tensors_free(g->photos);
}

/* The tensor `policy`.`what`.`block`, or without a block for block < 0; NULL when there is none. */
static inline const ry_tensor *golden_find(const golden *g, const char *policy, const char *what,
                                           int block)
{
    char name[96];
    if (block < 0)
        snprintf(name, sizeof name, "%s.%s", policy, what);
    else
        snprintf(name, sizeof name, "%s.%s.%d", policy, what, block);
    return ry_tensors_find(g->taps, name);
}

/* Its part of one image; the first dimension counts images. */
static inline const void *golden_tap(const golden *g, const char *policy, const char *what,
                                     int block, uint32_t image, size_t width)
{
    const ry_tensor *t = golden_find(g, policy, what, block);
    if (!t) fail_msg("golden file has no %s.%s of block %d", policy, what, block);
    if (t->shape[1] != width || (t->dtype != RY_F32 && t->dtype != RY_I32))
        fail_msg("%s: %u wide, wanted %zu", t->name, (unsigned)t->shape[1], width);
    return (const float *)t->data + image * width; /* both types have 4 bytes */
}

/* Largest difference relative to the largest reference value. */
static inline double golden_error(const float *got, const float *want, size_t n)
{
    double worst = 0.0, top = 0.0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(got[i])) return INFINITY;
        worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
        top = fmax(top, fabs((double)want[i]));
    }
    return worst / top;
}

static inline ry_pruner *golden_pruner(const golden *g, const char *text, uint32_t batch)
{
    const ry_vit *v = &g->model->vit;
    const uint32_t grid = v->config.image_size / v->config.patch_size;
    const ry_policy_shape shape = {v->config.n_blocks, v->n_patches, v->config.n_prefix, grid, 0};
    ry_policy policy;
    ry_pruner *p;
    renyi_error err = {0};
    if (ry_policy_parse(&policy, text, &err)) fail_msg("%s: %s", text, err.message);
    if (ry_policy_check(&policy, &shape, &err)) fail_msg("%s: %s", text, err.message);
    const ry_pruner_spec spec = {.policy = &policy,
                                 .shape = shape,
                                 .dim = v->config.dim,
                                 .n_heads = v->config.n_heads,
                                 .max_batch = batch,
                                 .level = g->model->level};
    if (ry_pruner_new(&p, &spec, NULL, &err)) fail_msg("%s: %s", text, err.message);
    return p;
}

/* ---- replay --------------------------------------------------------------------------------- */

typedef struct golden_replay {
    ry_token_hook inner; /* the pruner's */
    /* Compares the decision of one image with the reference's and overwrites it; from any thread,
     * but for one image only from one. */
    void (*judge)(void *user, const ry_block_view *view, ry_cut *cut);
    /* Optional: what entered block `look_at`, which must have no cut. */
    void (*look)(void *user, const ry_block_view *view);
    uint32_t look_at;
    void *user;
} golden_replay;

static inline void golden_needs(const void *self, uint32_t block, uint32_t n, ry_block_needs *out)
{
    const golden_replay *r = self;
    r->inner.needs(r->inner.self, block, n, out);
    if (r->look && block == r->look_at) out->look = 1;
}

/* One phase more than the rule has: there the judge sits. */
static inline uint32_t golden_tiles(const void *self, uint32_t block, uint32_t phase)
{
    const golden_replay *r = self;
    const uint32_t tiles = r->inner.tiles(r->inner.self, block, phase);
    if (tiles) return tiles;
    return phase && r->inner.tiles(r->inner.self, block, phase - 1) ? 1 : 0;
}

static inline void golden_work(void *self, const ry_block_view *view, ry_cut *cut, uint32_t phase,
                               uint32_t tile)
{
    golden_replay *r = self;
    if (r->inner.tiles(r->inner.self, view->block, phase))
        r->inner.work(r->inner.self, view, cut, phase, tile);
    else
        r->judge(r->user, view, cut);
}

static inline void golden_watch(void *self, const ry_block_view *view, const ry_cut *cut)
{
    golden_replay *r = self;
    (void)cut;
    if (r->look && view->block == r->look_at) r->look(r->user, view);
}

static inline ry_token_hook golden_hook(golden_replay *r)
{
    return (ry_token_hook){golden_needs, golden_tiles, golden_work, golden_watch, r, NULL};
}

/* All photos, `batch` at a time, through a plan with the hook; logits: [photos, classes]. */
static inline void golden_run(const golden *g, const ry_token_hook *hook, uint32_t photos,
                              uint32_t batch, unsigned threads, float *logits)
{
    ry_vit_plan *plan;
    renyi_error err = {0};
    const size_t each =
        3 * (size_t)g->model->vit.config.image_size * g->model->vit.config.image_size;
    const uint8_t *pixels = ry_tensors_find(g->photos, "images.pixels")->data;
    const ry_vit_plan_options opt = {
        .level = g->model->level, .hook = hook, .max_batch = batch, .n_threads = threads};
    if (ry_vit_plan_new(&plan, &g->model->vit, &opt, NULL, &err)) fail_msg("%s", err.message);
    for (uint32_t i = 0; i < photos; i += batch) {
        const ry_vit_input in = {.pixels = pixels + i * each,
                                 .lut = (const float(*)[256])g->lut,
                                 .n = photos - i < batch ? photos - i : batch};
        assert_int_equal(ry_vit_forward(plan, &in, logits + (size_t)i * GOLDEN_CLASSES), RENYI_OK);
    }
    ry_vit_plan_free(plan, NULL);
}

#endif
