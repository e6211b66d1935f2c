/* vit_load.c - loads the weights of a ViT from a checkpoint, and resamples its position embedding
 * to another grid.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "model/common/weight_loader.h"
#include "model/vit/pool_head.h"
#include "model/vit/rotary.h"

#include <math.h>
#include <string.h>

/* ---- position embeddings ------------------------------------------------------------------- */

/* Bicubic resampling of a square grid of vectors is two products with one small matrix
 * R [n_out, n_in], for rows and for columns. */

/* Keys' cubic convolution kernel with free parameter a. */
static double cubic(double x, double a)
{
    x = fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
    return 0.0;
}

/* Sample positions below are floats as in torch; doubles would differ from it by more than all
 * other rounding together. */

/* Row `o` of R for the antialiased filter: taps outside the grid are left out and the others
 * scaled to a sum of 1. */
static void antialias_row(float *row, uint32_t o, uint32_t n_out, uint32_t n_in)
{
    const float scale = (float)n_in / (float)n_out;
    const double widen = scale > 1.0f ? scale : 1.0;
    const double centre = scale * ((float)o + 0.5f), support = 2.0 * widen;
    const double first = floor(centre - support + 0.5), end = floor(centre + support + 0.5);
    const uint32_t from = first > 0.0 ? (uint32_t)first : 0;
    const uint32_t to = end < n_in ? (uint32_t)end : n_in;
    double sum = 0.0;
    for (uint32_t i = from; i < to; i++) sum += cubic((i + 0.5 - centre) / widen, -0.5);
    for (uint32_t i = from; i < to; i++)
        row[i] = (float)(cubic((i + 0.5 - centre) / widen, -0.5) / sum);
}

/* Row `o` of R for the filter without antialiasing: a tap outside the grid reads the edge. offset:
 * added to n_out in the scale. */
static void plain_row(float *row, uint32_t o, uint32_t n_out, uint32_t n_in, double offset)
{
    /* torch divides floats if it is given sizes, and inverts a double if it is given a factor */
    const float scale =
        offset > 0.0 ? (float)(1.0 / ((n_out + offset) / n_in)) : (float)n_in / (float)n_out;
    const double at = scale * ((float)o + 0.5f) - 0.5f, base = floor(at);
    for (int tap = -1; tap <= 2; tap++) {
        const double i = fmin(fmax(base + tap, 0.0), (double)n_in - 1.0);
        row[(uint32_t)i] += (float)cubic(at - (base + tap), -0.75);
    }
}

static void fill_resampling(float *r, uint32_t n_out, uint32_t n_in, ry_pos_filter filter)
{
    memset(r, 0, (size_t)n_out * n_in * sizeof *r);
    for (uint32_t o = 0; o < n_out; o++) {
        float *row = r + (size_t)o * n_in;
        if (filter == RY_POS_ANTIALIAS)
            antialias_row(row, o, n_out, n_in);
        else
            plain_row(row, o, n_out, n_in, filter == RY_POS_OFFSET ? 0.1 : 0.0);
    }
}

/* out[o] = sum_i R[o, i] in[i] over vectors of `width` floats; stored one after the other. */
static void apply_resampling(float *out, const float *in, const float *r, uint32_t n_out,
                             uint32_t n_in, size_t width)
{
    for (uint32_t o = 0; o < n_out; o++) {
        float *y = out + o * width;
        memset(y, 0, width * sizeof *y);
        for (uint32_t i = 0; i < n_in; i++) {
            const float w = r[(size_t)o * n_in + i];
            const float *x = in + i * width;
            if (w == 0.0f) continue;
            for (size_t k = 0; k < width; k++) y[k] += w * x[k];
        }
    }
}

renyi_status ry_pos_embed_resample(float *out, uint32_t n_out, const float *in, uint32_t n_in,
                                   uint32_t dim, ry_pos_filter filter, const renyi_allocator *al,
                                   renyi_error *err)
{
    if (n_out == n_in) {
        memcpy(out, in, (size_t)n_in * n_in * dim * sizeof *out);
        return RENYI_OK;
    }
    /* R, then the grid after the columns were resampled: [n_in, n_out, dim]. */
    const size_t matrix = (size_t)n_out * n_in, half = matrix * dim;
    float *r = ry_alloc(al, matrix + half, sizeof *r);
    if (!r) return ry_fail_nomem(err, (matrix + half) * sizeof *r);
    float *mid = r + matrix;
    fill_resampling(r, n_out, n_in, filter);
    for (uint32_t y = 0; y < n_in; y++)
        apply_resampling(mid + (size_t)y * n_out * dim, in + (size_t)y * n_in * dim, r, n_out, n_in,
                         dim);
    apply_resampling(out, mid, r, n_out, n_in, (size_t)n_out * dim);
    ry_free(al, r);
    return RENYI_OK;
}

/* ---- parts of the model -------------------------------------------------------------------- */

typedef struct loader {
    ry_loader base;
    ry_vit *v;
    renyi_dtype dtype; /* of the blocks' products */
} loader;

/* One weight and its bias. Patch embedding and heads stay f32: they are a hundredth of the work,
 * and errors there affect every output. */
static ry_linear_source end_source(ry_tensor_role w, ry_tensor_role b, size_t n_out, size_t n_in,
                                   ry_epilogue epilogue)
{
    return (ry_linear_source){.w = {w},
                              .b = {b},
                              .parts = 1,
                              .n_out = n_out,
                              .n_in = n_in,
                              .epilogue = epilogue,
                              .dtype = RENYI_DTYPE_F32};
}

/* prefix row i = token i + its position, if it has one. pos: [n_placed, C] */
static renyi_status load_prefix(loader *ld, const float *pos)
{
    static const ry_tensor_role tokens[] = {RY_CLS_TOKEN, RY_DIST_TOKEN, RY_REGISTERS};
    const ry_vit_config *c = &ld->v->config;
    const size_t n = (size_t)c->n_prefix * c->dim, placed = (size_t)c->n_placed * c->dim;
    float *row = ld->v->prefix = ry_alloc(ld->base.al, n, sizeof *row);
    if (!row) return ry_fail_nomem(ld->base.err, n * sizeof *row);
    for (int i = 0; i < 3; i++) {
        const ry_tensor *t = ry_loader_find(&ld->base, tokens[i], 0);
        if (!t) continue;
        RY_TRY(ry_loader_read(&ld->base, t, row));
        row += ry_tensor_elements(t);
    }
    for (size_t k = 0; k < placed; k++) ld->v->prefix[k] += pos[k];
    return RENYI_OK;
}

static renyi_status make_angles(loader *ld)
{
    ry_vit *v = ld->v;
    const ry_vit_config *c = &v->config;
    const size_t head = c->dim / c->n_heads, n = (size_t)v->n_patches * head;
    v->rope = ry_alloc(ld->base.al, n, sizeof *v->rope);
    if (!v->rope) return ry_fail_nomem(ld->base.err, n * sizeof *v->rope);
    ry_rotary_angles(v->rope, c->image_size / c->patch_size, head, c->rope_theta);
    return load_prefix(ld, NULL);
}

static renyi_status load_positions(loader *ld)
{
    ry_vit *v = ld->v;
    const ry_vit_config *c = &v->config;
    const ry_tensor *t = ry_loader_find(&ld->base, RY_POS_EMBED, 0);
    const uint32_t side = c->image_size / c->patch_size;
    v->n_patches = side * side;
    v->pos = ry_calloc(ld->base.al, (size_t)v->n_patches * c->dim, sizeof *v->pos);
    if (!v->pos) return ry_fail_nomem(ld->base.err, (size_t)v->n_patches * c->dim * sizeof *v->pos);
    if (!t) return make_angles(ld);
    const uint32_t stored = (uint32_t)lround(sqrt((double)(t->shape[t->n_dims - 2] - c->n_placed)));
    RY_TRY(ry_loader_read(&ld->base, t, ld->base.scratch));
    RY_TRY(load_prefix(ld, ld->base.scratch));
    return ry_pos_embed_resample(v->pos, side, ld->base.scratch + (size_t)c->n_placed * c->dim,
                                 stored, c->dim, c->pos_filter, ld->base.al, ld->base.err);
}

static renyi_status load_heads(loader *ld)
{
    const ry_vit_config *c = &ld->v->config;
    const ry_linear_source head = end_source(RY_HEAD_W, RY_HEAD_B, c->n_classes,
                                             ry_vit_pooled_width(c, c->pool), RY_EPI_NONE);
    const ry_linear_source dist =
        end_source(RY_HEAD_DIST_W, RY_HEAD_DIST_B, c->n_classes, c->dim, RY_EPI_NONE);
    if (ry_loader_find(&ld->base, RY_HEAD_W, 0))
        RY_TRY(ry_loader_linear(&ld->base, &head, &ld->v->head));
    if (ry_loader_find(&ld->base, RY_HEAD_DIST_W, 0))
        RY_TRY(ry_loader_linear(&ld->base, &dist, &ld->v->head_dist));
    if (!c->proj_dim) return RENYI_OK;
    ry_linear_source projection =
        end_source(RY_EMBED_W, RY_EMBED_B, c->proj_dim, c->dim, RY_EPI_NONE);
    projection.transposed = c->layout == RY_LAYOUT_OPENAI;
    return ry_loader_linear(&ld->base, &projection, &ld->v->projection);
}

static renyi_status load_all(loader *ld)
{
    ry_vit *v = ld->v;
    const ry_vit_config *c = &v->config;
    const size_t patch_in = (size_t)3 * c->patch_size * c->patch_size;
    const ry_linear_source patches =
        end_source(RY_PATCH_W, RY_PATCH_B, c->dim, patch_in, RY_EPI_RESIDUAL);
    v->blocks = ry_calloc(ld->base.al, c->n_blocks, sizeof *v->blocks);
    if (!v->blocks) return ry_fail_nomem(ld->base.err, c->n_blocks * sizeof *v->blocks);
    RY_TRY(ry_loader_linear(&ld->base, &patches, &v->patch_embed));
    RY_TRY(load_positions(ld));
    if (c->pre_norm) {
        RY_TRY(ry_loader_vector(&ld->base, RY_PRE_NORM_W, 0, &v->pre_norm_w));
        RY_TRY(ry_loader_vector(&ld->base, RY_PRE_NORM_B, 0, &v->pre_norm_b));
    }
    const ry_block_shape shape = {.dim = c->dim,
                                  .mlp_dim = c->mlp_dim,
                                  .activation = c->activation,
                                  .dtype = ld->dtype,
                                  .layer_scale = c->layer_scale,
                                  .gated = c->gated};
    for (uint32_t i = 0; i < c->n_blocks; i++)
        RY_TRY(ry_loader_block(&ld->base, &shape, i, &v->blocks[i]));
    RY_TRY(ry_loader_vector(&ld->base, RY_NORM_W, 0, &v->norm_w));
    RY_TRY(ry_loader_vector(&ld->base, RY_NORM_B, 0, &v->norm_b));
    if (c->pool == RY_POOL_ATTENTION) RY_TRY(ry_pool_head_load(&v->pool, &ld->base, c));
    return load_heads(ld);
}

/* ---- the whole model ----------------------------------------------------------------------- */

/* Floats of the positions, or of the matrices and biases that ry_pool_head_load changes. Nothing
 * overflows: ry_vit_configure limits every factor. */
static size_t scratch_floats(const loader *ld)
{
    const ry_vit_config *c = &ld->v->config;
    const size_t dim = c->dim, pool = c->pool == RY_POOL_ATTENTION ? 3 * dim * (dim + 1) : 0;
    const ry_tensor *pos = ry_loader_find(&ld->base, RY_POS_EMBED, 0);
    const size_t n = pos ? (size_t)ry_tensor_elements(pos) : 0;
    return n > pool ? n : pool;
}

renyi_status ry_vit_load(ry_vit *out, const ry_vit_config *config, const ry_checkpoint *ckpt,
                         const renyi_options *opt, renyi_cpu level, renyi_dtype dtype,
                         renyi_error *err)
{
    loader ld = {.base = {.set = ckpt->tensors,
                          .opt = opt,
                          .al = &opt->allocator,
                          .level = level,
                          .err = err},
                 .v = out,
                 .dtype = dtype};
    *out = (ry_vit){.config = *config};
    if (!ry_vit_naming_find(&ld.base.naming, ckpt->tensors)) /* ry_vit_configure found it */
        return ry_fail(err, RENYI_ERR_ARG, -1, "the configuration belongs to another checkpoint");
    RY_TRY(ry_loader_begin(&ld.base, scratch_floats(&ld)));
    const renyi_status st = load_all(&ld);
    ry_loader_end(&ld.base);
    out->n_params = ld.base.n_params;
    if (st != RENYI_OK) ry_vit_free(out, ld.base.al);
    return st;
}

void ry_vit_free(ry_vit *v, const renyi_allocator *al)
{
    for (uint32_t i = 0; v->blocks && i < v->config.n_blocks; i++)
        ry_block_weights_free(&v->blocks[i], al);
    float *const vectors[] = {v->prefix, v->pos,    v->pre_norm_w, v->pre_norm_b,
                              v->norm_w, v->norm_b, v->rope};
    ry_linear *const linears[] = {v->patch_embed, v->projection, v->head, v->head_dist};
    for (int k = 0; k < 7; k++) ry_free(al, vectors[k]);
    for (int k = 0; k < 4; k++) ry_linear_free(linears[k], al);
    ry_pool_head_free(&v->pool, al);
    ry_free(al, v->blocks);
    *v = (ry_vit){0};
}
