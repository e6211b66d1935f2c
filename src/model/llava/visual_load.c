/* visual_load.c - the visual side of a LLaVA from the tensors of a checkpoint.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "model/common/weight_loader.h"
#include "model/llava/visual_names.h"

#include <string.h>

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* ---- the projector ------------------------------------------------------------------------- */

static renyi_status load_linears(ry_visual *v, ry_loader *ld)
{
    const ry_visual_config *c = &v->config;
    const ry_linear_source first = {.w = {RY_FC1_W},
                                    .b = {RY_FC1_B},
                                    .parts = 1,
                                    .n_out = c->mid_dim,
                                    .n_in = c->tower.dim,
                                    .epilogue = RY_EPI_GELU,
                                    .dtype = RENYI_DTYPE_F32};
    const ry_linear_source second = {.w = {RY_FC2_W},
                                     .b = {RY_FC2_B},
                                     .parts = 1,
                                     .n_out = c->lm_dim,
                                     .n_in = c->mid_dim,
                                     .epilogue = RY_EPI_NONE,
                                     .dtype = RENYI_DTYPE_F32};
    const size_t scratch = larger(ry_loader_floats(first.n_out, first.n_in),
                                  ry_loader_floats(second.n_out, second.n_in));
    RY_TRY(ry_loader_begin(ld, scratch));
    RY_TRY(ry_loader_linear(ld, &first, &v->project[0]));
    return ry_loader_linear(ld, &second, &v->project[1]);
}

static renyi_status load_projector(ry_visual *v, const ry_checkpoint *llava, ry_loader ld)
{
    ry_tensors *set;
    ry_visual_projector_find(&ld.naming, NULL, llava->tensors); /* configure has found it */
    RY_TRY(ry_visual_projector_tensors(&set, &ld.naming, llava->tensors, ld.al, ld.err));
    ld.set = set;
    const renyi_status st = load_linears(v, &ld);
    ry_loader_end(&ld);
    ry_tensors_free(set);
    v->n_params += ld.n_params;
    return st;
}

/* ---- the block behind the last ------------------------------------------------------------- */

static renyi_status load_queries(ry_visual *v, ry_loader *ld, renyi_dtype dtype)
{
    const uint32_t block = v->config.tower.n_blocks;
    const size_t C = v->config.tower.dim;
    const int together = ry_loader_find(ld, RY_QKV_W, block) != NULL;
    ry_linear_source qk = {.w = {RY_Q_W, RY_K_W},
                           .b = {RY_Q_B, RY_K_B},
                           .parts = 2,
                           .block = block,
                           .n_out = (together ? 3 : 2) * C,
                           .n_in = C,
                           .epilogue = RY_EPI_NONE,
                           .dtype = dtype};
    if (together) {
        qk.w[0] = RY_QKV_W;
        qk.b[0] = RY_QKV_B;
        qk.parts = 1;
    }
    RY_TRY(ry_loader_begin(ld, ry_loader_floats(qk.n_out, qk.n_in)));
    RY_TRY(ry_loader_vector(ld, RY_NORM1_W, block, &v->norm_w));
    RY_TRY(ry_loader_vector(ld, RY_NORM1_B, block, &v->norm_b));
    return ry_loader_linear(ld, &qk, &v->qk);
}

static renyi_status load_tower(ry_visual *v, const ry_visual_source *from, const renyi_options *opt,
                               ry_loader ld, renyi_dtype dtype)
{
    ry_visual_tower tower;
    RY_TRY(ry_visual_tower_open(&tower, from, ld.al, ld.err));
    renyi_status st =
        ry_vit_load(&v->tower, &v->config.tower, &tower.ckpt, opt, ld.level, dtype, ld.err);
    if (!st && v->config.tower.n_blocks < v->config.n_blocks) {
        ld.set = tower.ckpt.tensors;
        ry_vit_naming_find(&ld.naming, ld.set); /* the load has found it */
        st = load_queries(v, &ld, dtype);
        ry_loader_end(&ld);
    }
    ry_visual_tower_close(&tower);
    v->n_params += v->tower.n_params + ld.n_params;
    return st;
}

/* ---- the whole ----------------------------------------------------------------------------- */

renyi_status ry_visual_load(ry_visual *out, const ry_visual_config *config,
                            const ry_visual_source *from, const renyi_options *opt, renyi_cpu level,
                            renyi_dtype dtype, renyi_error *err)
{
    renyi_options quiet = *opt; /* the tower tells how far it is; what is small goes without */
    quiet.progress = NULL;
    const ry_loader ld = {.opt = &quiet, .al = &opt->allocator, .level = level, .err = err};
    memset(out, 0, sizeof *out);
    out->config = *config;
    renyi_status st = load_tower(out, from, opt, ld, dtype);
    if (!st) st = load_projector(out, from->llava, ld);
    if (st) ry_visual_free(out, &opt->allocator);
    return st;
}

void ry_visual_free(ry_visual *v, const renyi_allocator *al)
{
    ry_vit_free(&v->tower, al);
    ry_linear_free(v->project[0], al);
    ry_linear_free(v->project[1], al);
    ry_free(al, v->norm_w);
    ry_free(al, v->norm_b);
    ry_linear_free(v->qk, al);
    *v = (ry_visual){0};
}
