/* vit_load.c - from the tensors of a checkpoint to packed weights, one tensor at a time, so that
 * the peak is one copy of the weights and one matrix. SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "model/pos_embed.h"
#include "model/vit.h"
#include "model/vit_quant.h"
#include "model/vit_read.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct loader {
    ry_vit *v;
    ry_vit_naming naming;
    const ry_tensors *set;
    const renyi_options *opt;
    const renyi_allocator *al;
    renyi_cpu level;
    renyi_dtype dtype;    /* of the blocks' products */
    float *scratch;       /* room for the largest matrix, its bias and scale */
    uint64_t done, total; /* tensors */
    renyi_error *err;
} loader;

/* ---- one tensor ---------------------------------------------------------------------------- */

/* The tensor of a role as floats into out [elements]. NULL stands for an absent bias: zeros. */
static renyi_status read_tensor(loader *ld, const ry_tensor *t, float *out)
{
    const size_t n = (size_t)ry_tensor_elements(t);
    RY_TRY(ry_vit_read(out, t, ld->set, ld->err));
    ry_tensors_drop_pages(ld->set, t);
    ld->done++;
    ld->v->n_params += n;
    if (ld->opt->progress && ld->opt->progress(ld->opt->progress_user, ld->done, ld->total))
        return ry_fail(ld->err, RENYI_ERR_ABORTED, -1,
                       "loading was stopped after %" PRIu64 " of %" PRIu64 " tensors", ld->done,
                       ld->total);
    return RENYI_OK;
}

static const ry_tensor *find(const loader *ld, ry_vit_role role, uint32_t block)
{
    return ry_vit_tensor(&ld->naming, ld->set, role, block);
}

static renyi_status load_vector(loader *ld, ry_vit_role role, uint32_t block, float **out)
{
    const ry_tensor *t = find(ld, role, block);
    const size_t n = (size_t)ry_tensor_elements(t);
    *out = ry_alloc(ld->al, n, sizeof **out);
    if (!*out) return ry_fail_nomem(ld->err, n * sizeof **out);
    return read_tensor(ld, t, *out);
}

/* ---- one matrix ---------------------------------------------------------------------------- */

/* Where the weights and biases of a linear come from: one pair, or three stacked (q, k, v). */
typedef struct linear_source {
    ry_vit_role w[3], b[3];
    uint32_t parts, block;
    size_t n_out, n_in; /* of all parts together */
    ry_epilogue epilogue;
} linear_source;

/* Patch embedding and heads stay f32: a hundredth of the work, and all precision passes them. */
static int is_end(const linear_source *s)
{
    return s->w[0] == RY_PATCH_W || s->w[0] == RY_HEAD_W || s->w[0] == RY_HEAD_DIST_W;
}

/* The calibrated range of the product's input, if there is one; q, k and v read the same input. */
static renyi_status load_range(loader *ld, const linear_source *s, ry_quant_range *out, int *has)
{
    const ry_tensor *first = find(ld, s->w[0], s->block);
    RY_TRY(ry_vit_quant_range(out, has, first, ld->set, ld->err));
    for (uint32_t i = 1; i < s->parts; i++) {
        const ry_tensor *t = find(ld, s->w[i], s->block);
        ry_quant_range r = *out;
        int its;
        RY_TRY(ry_vit_quant_range(&r, &its, t, ld->set, ld->err));
        if (its != *has || r.low != out->low || r.high != out->high)
            return ry_fail(ld->err, RENYI_ERR_FORMAT, -1,
                           "'%.120s' and '%.120s' read the same numbers, but do not have the same "
                           "range: " RY_QUANTISE_AGAIN,
                           first->name, t->name);
    }
    return RENYI_OK;
}

static renyi_status load_linear(loader *ld, const linear_source *s, ry_linear **out)
{
    float *w = ld->scratch, *bias = w + s->n_out * s->n_in, *scale = bias + s->n_out;
    const size_t rows = s->n_out / s->parts;
    ry_quant_range range = {0.0f, 0.0f};
    int has_bias = 0, has_range = 0, has_scale = 1;
    RY_TRY(load_range(ld, s, &range, &has_range));
    memset(bias, 0, s->n_out * sizeof *bias);
    for (uint32_t i = 0; i < s->parts; i++) {
        const ry_tensor *b = find(ld, s->b[i], s->block), *t = find(ld, s->w[i], s->block);
        RY_TRY(read_tensor(ld, t, w + i * rows * s->n_in));
        has_scale &= ry_vit_quant_scale(scale + i * rows, t, ld->set);
        if (!b) continue;
        RY_TRY(read_tensor(ld, b, bias + i * rows));
        has_bias = 1;
    }
    const ry_linear_spec spec = {.w = w,
                                 .bias = has_bias ? bias : NULL,
                                 .n_out = s->n_out,
                                 .n_in = s->n_in,
                                 .epilogue = s->epilogue,
                                 .dtype = is_end(s) ? RENYI_DTYPE_F32 : ld->dtype,
                                 .range = has_range ? &range : NULL,
                                 .scale = has_scale ? scale : NULL};
    return ry_linear_new(out, &spec, ld->level, ld->al, ld->err);
}

static linear_source one_pair(ry_vit_role w, ry_vit_role b, uint32_t block, size_t n_out,
                              size_t n_in, ry_epilogue epilogue)
{
    return (linear_source){{w}, {b}, 1, block, n_out, n_in, epilogue};
}

/* Rows of qkv: all of q, then k, then v, whatever the layout. */
static linear_source qkv_source(const loader *ld, uint32_t block)
{
    const size_t dim = ld->v->config.dim;
    if (ld->naming.layout == RY_LAYOUT_TIMM)
        return one_pair(RY_QKV_W, RY_QKV_B, block, 3 * dim, dim, RY_EPI_NONE);
    return (linear_source){
        {RY_Q_W, RY_K_W, RY_V_W}, {RY_Q_B, RY_K_B, RY_V_B}, 3, block, 3 * dim, dim, RY_EPI_NONE};
}

/* ---- the parts of the model ---------------------------------------------------------------- */

static renyi_status load_block(loader *ld, uint32_t i)
{
    const ry_vit_config *c = &ld->v->config;
    ry_vit_block *b = &ld->v->blocks[i];
    const linear_source qkv = qkv_source(ld, i);
    const linear_source proj = one_pair(RY_PROJ_W, RY_PROJ_B, i, c->dim, c->dim, RY_EPI_RESIDUAL);
    const linear_source fc1 = one_pair(RY_FC1_W, RY_FC1_B, i, c->mlp_dim, c->dim, c->activation);
    const linear_source fc2 = one_pair(RY_FC2_W, RY_FC2_B, i, c->dim, c->mlp_dim, RY_EPI_RESIDUAL);
    RY_TRY(load_vector(ld, RY_NORM1_W, i, &b->norm1_w));
    RY_TRY(load_vector(ld, RY_NORM1_B, i, &b->norm1_b));
    RY_TRY(load_linear(ld, &qkv, &b->qkv));
    RY_TRY(load_linear(ld, &proj, &b->proj));
    RY_TRY(load_vector(ld, RY_NORM2_W, i, &b->norm2_w));
    RY_TRY(load_vector(ld, RY_NORM2_B, i, &b->norm2_b));
    RY_TRY(load_linear(ld, &fc1, &b->fc1));
    return load_linear(ld, &fc2, &b->fc2);
}

/* prefix row i = token i + its position; both live in scratch or in *v only. */
static renyi_status load_prefix(loader *ld, const float *pos)
{
    static const ry_vit_role tokens[] = {RY_CLS_TOKEN, RY_DIST_TOKEN};
    const size_t dim = ld->v->config.dim, n = ld->v->config.n_prefix;
    ld->v->prefix = ry_alloc(ld->al, n * dim, sizeof(float));
    if (!ld->v->prefix) return ry_fail_nomem(ld->err, n * dim * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        float *row = ld->v->prefix + i * dim;
        RY_TRY(read_tensor(ld, find(ld, tokens[i], 0), row));
        for (size_t k = 0; k < dim; k++) row[k] += pos[i * dim + k];
    }
    return RENYI_OK;
}

static renyi_status load_positions(loader *ld)
{
    ry_vit *v = ld->v;
    const ry_vit_config *c = &v->config;
    const ry_tensor *t = find(ld, RY_POS_EMBED, 0);
    const uint32_t side = c->image_size / c->patch_size;
    const uint32_t stored = (uint32_t)lround(sqrt((double)(t->shape[1] - c->n_prefix)));
    const ry_pos_filter filter = c->layout == RY_LAYOUT_TIMM ? RY_POS_ANTIALIAS : RY_POS_PLAIN;
    RY_TRY(read_tensor(ld, t, ld->scratch));
    RY_TRY(load_prefix(ld, ld->scratch));
    v->n_patches = side * side;
    v->pos = ry_alloc(ld->al, (size_t)v->n_patches * c->dim, sizeof *v->pos);
    if (!v->pos) return ry_fail_nomem(ld->err, (size_t)v->n_patches * c->dim * sizeof *v->pos);
    return ry_pos_embed_resample(v->pos, side, ld->scratch + (size_t)c->n_prefix * c->dim, stored,
                                 c->dim, filter, ld->al, ld->err);
}

static renyi_status load_heads(loader *ld)
{
    const ry_vit_config *c = &ld->v->config;
    const linear_source head = one_pair(RY_HEAD_W, RY_HEAD_B, 0, c->n_classes, c->dim, RY_EPI_NONE);
    const linear_source dist =
        one_pair(RY_HEAD_DIST_W, RY_HEAD_DIST_B, 0, c->n_classes, c->dim, RY_EPI_NONE);
    if (find(ld, RY_HEAD_W, 0)) RY_TRY(load_linear(ld, &head, &ld->v->head));
    if (find(ld, RY_HEAD_DIST_W, 0)) RY_TRY(load_linear(ld, &dist, &ld->v->head_dist));
    return RENYI_OK;
}

static renyi_status load_all(loader *ld)
{
    ry_vit *v = ld->v;
    const ry_vit_config *c = &v->config;
    const size_t patch_in = (size_t)3 * c->patch_size * c->patch_size;
    const linear_source patches =
        one_pair(RY_PATCH_W, RY_PATCH_B, 0, c->dim, patch_in, RY_EPI_RESIDUAL);
    v->blocks = ry_calloc(ld->al, c->n_blocks, sizeof *v->blocks);
    if (!v->blocks) return ry_fail_nomem(ld->err, c->n_blocks * sizeof *v->blocks);
    RY_TRY(load_linear(ld, &patches, &v->patch_embed));
    RY_TRY(load_positions(ld));
    for (uint32_t i = 0; i < c->n_blocks; i++) RY_TRY(load_block(ld, i));
    RY_TRY(load_vector(ld, RY_NORM_W, 0, &v->norm_w));
    RY_TRY(load_vector(ld, RY_NORM_B, 0, &v->norm_b));
    return load_heads(ld);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Floats that the largest matrix with its bias and scale, or the positions, need. configure bounded
 * every factor, so nothing overflows. */
static size_t scratch_floats(const loader *ld)
{
    const ry_vit_config *c = &ld->v->config;
    const size_t dim = c->dim, patch_in = (size_t)3 * c->patch_size * c->patch_size;
    size_t n = (size_t)ry_tensor_elements(find(ld, RY_POS_EMBED, 0));
    n = larger(n, 3 * dim * (dim + 2));
    n = larger(n, c->mlp_dim * (dim + 2));
    n = larger(n, dim * ((size_t)c->mlp_dim + 2));
    n = larger(n, dim * (patch_in + 2));
    return larger(n, c->n_classes * (dim + 2));
}

static uint64_t count_tensors(const loader *ld)
{
    uint64_t n = 0;
    uint32_t block;
    for (size_t i = 0; i < ry_tensors_count(ld->set); i++)
        n += ry_vit_name_match(&ld->naming, ry_tensors_at(ld->set, i)->name, &block) != NULL;
    return n;
}

renyi_status ry_vit_load(ry_vit *out, const ry_vit_config *config, const ry_checkpoint *ckpt,
                         const renyi_options *opt, renyi_cpu level, renyi_dtype dtype,
                         renyi_error *err)
{
    loader ld = {.v = out,
                 .set = ckpt->tensors,
                 .opt = opt,
                 .al = &opt->allocator,
                 .level = level,
                 .dtype = dtype,
                 .err = err};
    *out = (ry_vit){.config = *config};
    if (!ry_vit_naming_find(&ld.naming, ld.set)) /* configure has found it in the same set */
        return ry_fail(err, RENYI_ERR_ARG, -1, "the configuration is of another checkpoint");
    ld.total = count_tensors(&ld);
    const size_t room = scratch_floats(&ld);
    ld.scratch = ry_alloc(ld.al, room, sizeof *ld.scratch);
    if (!ld.scratch) return ry_fail_nomem(err, room * sizeof *ld.scratch);
    const renyi_status st = load_all(&ld);
    ry_free(ld.al, ld.scratch);
    if (st != RENYI_OK) ry_vit_free(out, ld.al);
    return st;
}

void ry_vit_free(ry_vit *v, const renyi_allocator *al)
{
    for (uint32_t i = 0; v->blocks && i < v->config.n_blocks; i++) {
        ry_vit_block *b = &v->blocks[i];
        float *const vectors[] = {b->norm1_w, b->norm1_b, b->norm2_w, b->norm2_b};
        ry_linear *const linears[] = {b->qkv, b->proj, b->fc1, b->fc2};
        for (int k = 0; k < 4; k++) {
            ry_free(al, vectors[k]);
            ry_linear_free(linears[k], al);
        }
    }
    float *const vectors[] = {v->prefix, v->pos, v->norm_w, v->norm_b};
    ry_linear *const linears[] = {v->patch_embed, v->head, v->head_dist};
    for (int k = 0; k < 4; k++) ry_free(al, vectors[k]);
    for (int k = 0; k < 3; k++) ry_linear_free(linears[k], al);
    ry_free(al, v->blocks);
    *v = (ry_vit){0};
}
