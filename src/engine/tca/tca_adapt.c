/* tca_adapt.c - TCA, test-time adaptation of a model to the images it sees: options and memory of a
 * renyi_tca, and the hooks by which a session gives its cuts anchors and corrects its answers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/tca/tca_adapt.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/core/model_handle.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { MIN_SIZE = 2, MAX_SIZE = 1024 };

/* 0 = `otherwise`, the default. */
static renyi_status check_number(const char *name, double *x, double otherwise, renyi_error *err)
{
    if (*x == 0.0) *x = otherwise;
    if (*x > 0.0 && *x <= 1e6) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "renyi_tca_options: %s is %g; above 0 and at most 1e6 is allowed", name, *x);
}

static renyi_status read_options(renyi_tca_options *o, const renyi_tca_options *given,
                                 renyi_error *err)
{
    RY_TRY(ry_struct_read(o, sizeof *o, given, "renyi_tca_options", err));
    if (!o->size) o->size = 3;
    if (o->size < MIN_SIZE || o->size > MAX_SIZE)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_tca_options: size is %u; %d to %d items per class are allowed",
                       o->size, MIN_SIZE, MAX_SIZE);
    RY_TRY(check_number("scale", &o->scale, 0.1, err));
    RY_TRY(check_number("lambda", &o->lambda, 3.0, err));
    return check_number("beta", &o->beta, 5.0, err);
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Takes count * each * size bytes and adds them to t->bytes. */
static void *take_bytes(renyi_tca *t, size_t count, size_t each, size_t size, int *failed)
{
    size_t elements, bytes;
    void *p = NULL;
    if (ry_mul_size(count, each, &elements) && ry_mul_size(elements, size, &bytes))
        p = ry_alloc(&t->al, elements, size);
    if (p)
        t->bytes += bytes;
    else
        *failed = 1;
    return p;
}

static renyi_status take_memory(renyi_tca *t, renyi_error *err)
{
    const size_t L = t->shape.n_blocks, C = t->shape.dim, G = t->shape.n_classes;
    int failed = 0;
    t->layer_root = take_bytes(t, L, 1, sizeof *t->layer_root, &failed);
    if (failed) return ry_fail_nomem(err, L * sizeof *t->layer_root);
    ry_tca_weigh_layers(t);
    const size_t row = ry_tca_layers(t) * C;
    t->tokens = take_bytes(t, t->n_slots, L * C, sizeof *t->tokens, &failed);
    t->mean = take_bytes(t, t->n_slots, C, sizeof *t->mean, &failed);
    t->rows = take_bytes(t, t->n_slots, row, sizeof *t->rows, &failed);
    t->step = take_bytes(t, t->n_slots, 1, sizeof *t->step, &failed);
    t->now = take_bytes(t, row, 1, sizeof *t->now, &failed);
    t->items = take_bytes(t, G, t->opt.size + 1, sizeof *t->items, &failed);
    t->counts = take_bytes(t, G, 1, sizeof *t->counts, &failed);
    t->anchors = take_bytes(t, G, t->opt.no_anchors ? 0 : L * C, sizeof *t->anchors, &failed);
    t->inverse = take_bytes(t, G, t->opt.no_anchors ? 0 : L, sizeof *t->inverse, &failed);
    return failed ? ry_fail_nomem(err, (size_t)t->n_slots * L * C * sizeof *t->tokens) : RENYI_OK;
}

renyi_status ry_tca_create(renyi_tca **out, const ry_tca_shape *shape, const renyi_tca_options *opt,
                           const renyi_allocator *al, renyi_error *err)
{
    const uint64_t slots = (uint64_t)shape->n_classes * opt->size + 1;
    *out = NULL;
    if (slots > UINT32_MAX)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%u classes of %u items each are too many",
                       shape->n_classes, opt->size);
    renyi_tca *t = ry_calloc(al, 1, sizeof *t);
    if (!t) return ry_fail_nomem(err, sizeof *t);
    if (al) t->al = *al;
    t->shape = *shape;
    t->opt = *opt;
    t->n_slots = (uint32_t)slots;
    t->bytes = sizeof *t;
    const renyi_status st = take_memory(t, err);
    if (st) {
        renyi_tca_free(t);
        return st;
    }
    renyi_tca_reset(t);
    *out = t;
    return RENYI_OK;
}

renyi_status ry_tca_reserve(renyi_tca *t, uint32_t max_batch, renyi_error *err)
{
    int failed = 0;
    if (max_batch <= t->max_batch) return RENYI_OK;
    const size_t before = t->bytes;
    renyi_tca_answer *answers = take_bytes(t, max_batch, 1, sizeof *answers, &failed);
    float *logits = take_bytes(t, max_batch, t->shape.n_classes, sizeof *logits, &failed);
    if (failed) {
        ry_free(&t->al, answers);
        ry_free(&t->al, logits);
        t->bytes = before;
        return ry_fail_nomem(err, max_batch * sizeof *logits * t->shape.n_classes);
    }
    t->bytes -= t->max_batch * (sizeof *answers + sizeof *logits * t->shape.n_classes);
    ry_free(&t->al, t->answers);
    ry_free(&t->al, t->logits);
    t->answers = answers;
    t->logits = logits;
    t->max_batch = max_batch;
    t->n_last = 0;
    return RENYI_OK;
}

/* ---- the public functions ------------------------------------------------------------------ */

/* A hash that tells models and classes apart without reading all weights. */
static uint64_t model_key(const renyi_model *m)
{
    const ry_vit_config *c = &m->vit.config;
    const uint64_t facts[] = {c->n_classes,  c->n_blocks,     c->dim,
                              c->image_size, m->vit.n_params, m->rows_hash};
    uint64_t key = ry_hash(facts, sizeof facts);
    for (uint32_t i = 0; i < c->n_classes; i++) {
        const char *name = ry_model_own_label(m, i);
        const uint64_t next[] = {key, name ? ry_hash(name, strlen(name)) : 0};
        key = ry_hash(next, sizeof next);
    }
    return key;
}

static ry_tca_shape shape_of(const renyi_model *m)
{
    const ry_vit_config *c = &m->vit.config;
    return (ry_tca_shape){c->n_classes, c->n_blocks, c->dim, model_key(m)};
}

renyi_status renyi_tca_new(renyi_tca **out, const renyi_model *m, const renyi_tca_options *opt,
                           renyi_error *err)
{
    renyi_tca_options o;
    if (!out || !m) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tca_new: NULL argument");
    *out = NULL;
    RY_TRY(read_options(&o, opt, err));
    if (!m->vit.config.n_classes)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "the model has no classes to adapt; renyi_model_zeroshot gives it some");
    if (!ry_vit_class_rows(&m->vit.config))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "TCA compares images by their class token, and this model has none");
    const ry_tca_shape shape = shape_of(m);
    return ry_tca_create(out, &shape, &o, &m->al, err);
}

renyi_status ry_tca_check_model(const renyi_tca *t, const renyi_model *m, renyi_error *err)
{
    if (shape_of(m).key == t->shape.key) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "renyi_session_options.adapt was made for another model or other classes");
}

void renyi_tca_free(renyi_tca *t)
{
    if (!t) return;
    const renyi_allocator al = t->al;
    void *const blocks[] = {t->tokens,  t->mean,       t->rows,    t->step,
                            t->now,     t->items,      t->counts,  t->anchors,
                            t->inverse, t->layer_root, t->answers, t->logits};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) ry_free(&al, blocks[i]);
    ry_free(&al, t);
}

void renyi_tca_reset(renyi_tca *t)
{
    if (!t) return;
    memset(t->counts, 0, t->shape.n_classes * sizeof *t->counts);
    t->n_used = 1;
    t->free = 0;
    t->n_seen = t->n_ready = 0;
    t->has_anchors = 0;
    t->n_images = t->n_anchored = t->n_changed = 0;
    t->first_anchored = UINT64_MAX;
    t->n_last = 0;
}

void renyi_tca_get_info(const renyi_tca *t, renyi_tca_info *info)
{
    uint32_t items = 0;
    for (uint32_t c = 0; c < t->shape.n_classes; c++) items += t->counts[c];
    *info = (renyi_tca_info){.n_classes = t->shape.n_classes,
                             .size = t->opt.size,
                             .scale = t->opt.scale,
                             .lambda = t->opt.lambda,
                             .beta = t->opt.beta,
                             .n_images = t->n_images,
                             .n_anchored = t->n_anchored,
                             .n_changed = t->n_changed,
                             .first_anchored = t->first_anchored,
                             .n_items = items,
                             .n_seen_classes = t->n_seen,
                             .n_ready_classes = t->n_ready,
                             .has_anchors = t->has_anchors != 0,
                             .bytes = t->bytes};
}

renyi_status renyi_tca_last(const renyi_tca *t, uint32_t image, renyi_tca_answer *out,
                            renyi_error *err)
{
    if (!t || !out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tca_last: NULL argument");
    if (image >= t->n_last)
        return ry_fail(err, RENYI_ERR_ARG, -1, "image %u; the last run had %u", image, t->n_last);
    *out = t->answers[image];
    return RENYI_OK;
}

/* ---- the policy's hook, with anchors ------------------------------------------------------- */

/* The anchors of a block are class tokens after the block before. Block 0 has none: there the class
 * token is the same for every image. */
static void anchor_needs(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
{
    const ry_tca_run *r = self;
    r->inner.needs(r->inner.self, block, n_tokens, out);
    out->anchor = out->place != RY_CUT_NONE && block > 0 && !r->tca->opt.no_anchors;
}

static uint32_t pass_tiles(const void *self, uint32_t block, uint32_t phase)
{
    const ry_tca_run *r = self;
    return r->inner.tiles(r->inner.self, block, phase);
}

static void pass_work(void *self, const ry_block_view *view, ry_cut *cut, uint32_t phase,
                      uint32_t tile)
{
    const ry_tca_run *r = self;
    r->inner.work(r->inner.self, view, cut, phase, tile);
}

static void pass_watch(void *self, const ry_block_view *view, const ry_cut *cut)
{
    const ry_tca_run *r = self;
    r->inner.watch(r->inner.self, view, cut);
}

static const float *find_anchor(void *self, uint32_t block, const float *x)
{
    const ry_tca_run *r = self;
    const float *row = ry_tca_anchor(r->tca, block - 1, x);
    r->tca->is_anchored |= row != NULL;
    return row;
}

const ry_token_hook *ry_tca_hook(ry_tca_run *r, const ry_token_hook *inner)
{
    r->inner = *inner;
    r->hook = (ry_token_hook){
        anchor_needs, pass_tiles, pass_work, inner->watch ? pass_watch : NULL, r, find_anchor};
    return &r->hook;
}

/* ---- one image of a run -------------------------------------------------------------------- */

void ry_tca_begin(ry_tca_run *r)
{
    r->tca->n_last = 0;
    r->tca->is_anchored = 0;
}

void ry_tca_tap(void *user, uint32_t block, const float *x, uint32_t n_tokens)
{
    const renyi_tca *t = ((const ry_tca_run *)user)->tca;
    const size_t C = t->shape.dim;
    (void)n_tokens;
    if (block == t->shape.n_blocks) return; /* the input of block 0 */
    memcpy(ry_tca_tokens(t, t->free) + block * C, x, C * sizeof *x);
}

/* The class with the largest logit; of equal ones the lowest. */
static uint32_t top_class(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t c = 1; c < n; c++)
        if (logits[c] > logits[best]) best = c;
    return best;
}

/* -sum p log p of p = softmax(logits); NaN if a logit is not finite. top: the largest logit */
static double entropy_of(const float *logits, uint32_t n, float top)
{
    double sum = 0.0, weighted = 0.0;
    for (uint32_t c = 0; c < n; c++) {
        const double x = (double)logits[c] - (double)top, e = exp(x);
        sum += e;
        weighted += e > 0.0 ? e * x : 0.0;
    }
    return log(sum) - weighted / sum;
}

static void count_answer(renyi_tca *t, const renyi_tca_answer *a)
{
    if (a->anchored && t->first_anchored == UINT64_MAX) t->first_anchored = t->n_images;
    t->n_anchored += a->anchored;
    t->n_changed += a->label != a->corrected;
    t->n_images++;
}

void ry_tca_answered(void *user, uint32_t image, float *logits)
{
    const ry_tca_run *r = user;
    renyi_tca *t = r->tca;
    const uint32_t G = t->shape.n_classes;
    renyi_tca_answer *a = &t->answers[image];

    assert(image < t->max_batch);
    *a = (renyi_tca_answer){.logits = t->logits + (size_t)image * G,
                            .label = top_class(logits, G),
                            .anchored = t->is_anchored != 0};
    memcpy(t->logits + (size_t)image * G, logits, G * sizeof *logits);
    a->entropy = entropy_of(logits, G, logits[a->label]);
    if (isfinite(a->entropy)) { /* else the image is not remembered */
        ry_tca_fill_slot(t, t->free);
        ry_tca_remember(t, a->label, (float)a->entropy);
        if (!t->opt.no_correction) ry_tca_correct(t, logits, r->n_threads);
    }
    a->corrected = top_class(logits, G);
    count_answer(t, a);
    t->is_anchored = 0;
    t->n_last = image + 1;
}
