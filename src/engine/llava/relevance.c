/* relevance.c - opens the parts of a CLIP that compare patches with a question, and compares them.
 *
 * A patch goes through CLIP's final LayerNorm and projection, as the class token does in CLIP, and
 * is compared with the embedding of the question. CLIP's patches are the less similar to a text the
 * more they have to do with it, so the relevance is minus the cosine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/llava/relevance.h"

#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "kernels/rows/rows.h"
#include "model/common/weight_loader.h"

#include <math.h>

/* ---- the parts of a CLIP ------------------------------------------------------------------- */

static renyi_status load_projection(renyi_relevance *r, ry_loader *ld, const ry_vit_config *c)
{
    const ry_linear_source source = {.w = {RY_EMBED_W},
                                     .b = {RY_EMBED_B},
                                     .parts = 1,
                                     .n_out = c->proj_dim,
                                     .n_in = c->dim,
                                     .epilogue = RY_EPI_NONE,
                                     .dtype = RENYI_DTYPE_F32,
                                     .transposed = c->layout == RY_LAYOUT_OPENAI};
    RY_TRY(ry_loader_begin(ld, 0));
    RY_TRY(ry_loader_vector(ld, RY_NORM_W, 0, &r->norm_w));
    RY_TRY(ry_loader_vector(ld, RY_NORM_B, 0, &r->norm_b));
    return ry_loader_linear(ld, &source, &r->projection);
}

static renyi_status read_clip(renyi_relevance *r, const ry_checkpoint *ckpt,
                              const renyi_options *opt, renyi_cpu level, renyi_error *err)
{
    ry_vit_config c;
    renyi_options quiet = *opt;
    ry_loader ld = {.set = ckpt->tensors, .opt = &quiet, .al = &r->al, .level = level, .err = err};
    quiet.progress = NULL;
    RY_TRY(ry_vit_configure(&c, ckpt, 0, err));
    if (!c.is_clip || !c.proj_dim)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "not a whole CLIP with its projections of images and texts");
    r->dim = c.dim;
    r->embed_dim = c.proj_dim;
    r->eps = (float)c.norm_eps;
    ry_vit_naming_find(&ld.naming, ckpt->tensors); /* ry_vit_configure found it */
    const renyi_status st = load_projection(r, &ld, &c);
    ry_loader_end(&ld);
    return st;
}

static renyi_status fill_relevance(renyi_relevance *r, const char *path, const char *tokenizer,
                                   const renyi_options *opt, renyi_cpu level, renyi_error *err)
{
    ry_checkpoint ckpt = {0};
    renyi_text_info info;
    renyi_status st = ry_checkpoint_open(&ckpt, path, &opt->limits, &r->al, err);
    if (!st) {
        st = read_clip(r, &ckpt, opt, level, err);
        if (st) st = ry_fail_in(err, st, path);
    }
    ry_checkpoint_close(&ckpt, &r->al);
    RY_TRY(st);
    RY_TRY(renyi_text_open(&r->text, path, opt, err));
    RY_TRY(renyi_tokenizer_open(&r->tokenizer, tokenizer ? tokenizer : path, opt, err));
    renyi_text_get_info(r->text, &info);
    if (info.embed_dim == r->embed_dim) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: images are projected to %u numbers and texts to %u", path, r->embed_dim,
                   info.embed_dim);
}

renyi_status renyi_relevance_open(renyi_relevance **out, const char *path, const char *tokenizer,
                                  const renyi_options *options, renyi_error *err)
{
    renyi_options opt;
    ry_compute compute;
    if (!out || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_relevance_open: %s is NULL",
                       out ? "path" : "out");
    *out = NULL;
    RY_TRY(ry_compute_choose(&compute, &opt, options, err));
    opt.struct_size = sizeof opt; /* it is passed on */
    renyi_relevance *r = ry_calloc(&opt.allocator, 1, sizeof *r);
    if (!r) return ry_fail_nomem(err, sizeof *r);
    r->al = opt.allocator;
    const renyi_status st = fill_relevance(r, path, tokenizer, &opt, compute.level, err);
    if (st) {
        renyi_relevance_free(r);
        return st;
    }
    *out = r;
    return RENYI_OK;
}

void renyi_relevance_free(renyi_relevance *r)
{
    if (!r) return;
    const renyi_allocator al = r->al;
    renyi_text_free(r->text);
    renyi_tokenizer_free(r->tokenizer);
    ry_linear_free(r->projection, &al);
    ry_free(&al, r->norm_w);
    ry_free(&al, r->norm_b);
    ry_free(&al, r);
}

/* ---- one question -------------------------------------------------------------------------- */

struct ry_relevance {
    const renyi_relevance *of;
    renyi_text_session *session;
    ry_kernels kernels;
    ry_linear_op *product;
    size_t n_patches, n_prefix, h_row, out_row;
    int has_question;
    void *memory;    /* of the following */
    float *question; /* [E] of length 1 */
    float *score;    /* [P] */
    float *h, *rows; /* [P, h_row], [P, out_row] patches after the LayerNorm, and projected */
    size_t bytes;
};

static renyi_status take_memory(ry_relevance *r, const renyi_allocator *al, renyi_error *err)
{
    const size_t P = r->n_patches;
    ry_arena a = {0};
    for (int bind = 0; bind < 2; bind++) {
        r->question = RY_TAKE(&a, r->of->embed_dim, float);
        r->score = RY_TAKE(&a, P, float);
        r->h = RY_TAKE(&a, P * r->h_row, float);
        r->rows = RY_TAKE(&a, P * r->out_row, float);
        if (bind) break;
        r->bytes = a.used;
        r->memory = a.overflow ? NULL : ry_calloc(al, a.used, 1);
        if (!r->memory) return ry_fail_nomem(err, a.used);
        a = (ry_arena){r->memory, 0, a.used, 0};
    }
    return RENYI_OK;
}

static renyi_status fill(ry_relevance *r, unsigned n_threads, const renyi_allocator *al,
                         renyi_error *err)
{
    const renyi_text_session_options opt = {.struct_size = sizeof opt, .n_threads = n_threads};
    const size_t P = r->n_patches;
    r->h_row = ry_linear_row(r->of->projection, r->of->dim);
    r->out_row = ry_linear_row(r->of->projection, r->of->embed_dim);
    RY_TRY(renyi_text_session_new(&r->session, r->of->text, &opt, err));
    RY_TRY(ry_linear_op_new(&r->product, r->of->projection, P, (ry_rows){r->h_row, r->h_row * P},
                            (ry_rows){r->out_row, r->out_row * P}, n_threads, al, err));
    return take_memory(r, al, err);
}

renyi_status ry_relevance_new(ry_relevance **out, const renyi_relevance *of, const ry_visual *side,
                              unsigned n_threads, renyi_cpu level, const renyi_allocator *al,
                              renyi_error *err)
{
    *out = NULL;
    if (of->dim != side->config.tower.dim)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "the CLIP that compares patches with the question has an image tower of "
            "width %u, the model one of %u; give the CLIP that the model's tower is from",
            of->dim, side->config.tower.dim);
    ry_relevance *r = ry_calloc(al, 1, sizeof *r);
    if (!r) return ry_fail_nomem(err, sizeof *r);
    r->of = of;
    r->n_patches = side->tower.n_patches;
    r->n_prefix = side->config.tower.n_prefix;
    ry_kernels_init(&r->kernels, level);
    const renyi_status st = fill(r, n_threads, al, err);
    if (st) {
        ry_relevance_free(r, al);
        return st;
    }
    *out = r;
    return RENYI_OK;
}

void ry_relevance_free(ry_relevance *r, const renyi_allocator *al)
{
    if (!r) return;
    renyi_text_session_free(r->session);
    ry_linear_op_free(r->product, al);
    ry_free(al, r->memory);
    ry_free(al, r);
}

size_t ry_relevance_bytes(const ry_relevance *r)
{
    return r->bytes + renyi_text_session_bytes(r->session);
}

int ry_relevance_has_question(const ry_relevance *r) { return r->has_question; }

renyi_status ry_relevance_question(ry_relevance *r, const char *text, renyi_error *err)
{
    r->has_question = 0;
    RY_TRY(renyi_embed_texts(r->session, r->of->tokenizer, &text, 1, 1, r->question, err));
    r->has_question = 1;
    return RENYI_OK;
}

typedef struct job {
    ry_relevance *r;
    const float *x; /* [P, C] */
} job;

static void compare(const ry_relevance *r, size_t j)
{
    const size_t E = r->of->embed_dim;
    const float *row = r->rows + j * r->out_row, *t = r->question;
    double dot = 0.0, square = 0.0;
    for (size_t k = 0; k < E; k++) {
        dot += (double)row[k] * (double)t[k];
        square += (double)row[k] * (double)row[k];
    }
    r->score[j] = square > 0.0 ? (float)(-dot / sqrt(square)) : 0.0f;
}

static void run_thread(ry_runner *runner, void *user)
{
    const job *j = user;
    const ry_relevance *r = j->r;
    const ry_extent run = {1, r->n_patches};
    const ry_norm norm = {&r->kernels, r->of->norm_w, r->of->norm_b, r->of->dim, r->of->eps};
    ry_runner_norm(runner, &norm, run, j->x, r->h, r->h_row, r->product);
    ry_runner_product(runner, r->product, run, r->h, r->rows);
    ry_step step = ry_runner_step(runner, r->n_patches);
    for (size_t t; ry_step_next(&step, &t);) compare(r, t);
    ry_step_end(&step);
}

const float *ry_relevance_run(ry_relevance *r, ry_visual_plan *plan)
{
    job j = {r, plan->x + r->n_prefix * r->of->dim};
    plan->work.tower_macs += (double)r->n_patches * r->of->dim * r->of->embed_dim;
    ry_team_run(&plan->team, run_thread, &j);
    return r->score;
}
