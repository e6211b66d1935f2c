/* weight_loader.c - see loader.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/weight_loader.h"

#include "base/alloc.h"
#include "base/status.h"
#include "model/common/tensor_read.h"
#include "model/vit/vit_quant.h"

#include <inttypes.h>
#include <string.h>

renyi_status ry_loader_begin(ry_loader *ld, size_t scratch_floats)
{
    uint32_t block;
    ld->total = 0;
    for (size_t i = 0; i < ry_tensors_count(ld->set); i++)
        ld->total +=
            ry_vit_name_match(&ld->naming, ry_tensors_at(ld->set, i)->name, &block) != NULL;
    ld->scratch = ry_alloc(ld->al, scratch_floats, sizeof *ld->scratch);
    if (!ld->scratch) return ry_fail_nomem(ld->err, scratch_floats * sizeof *ld->scratch);
    return RENYI_OK;
}

void ry_loader_end(ry_loader *ld)
{
    ry_free(ld->al, ld->scratch);
    ld->scratch = NULL;
}

/* ---- one tensor ---------------------------------------------------------------------------- */

renyi_status ry_loader_finished(ry_loader *ld, const ry_tensor *t)
{
    ry_tensors_drop_pages(ld->set, t);
    ld->done++;
    ld->n_params += ry_tensor_elements(t);
    if (ld->opt->progress && ld->opt->progress(ld->opt->progress_user, ld->done, ld->total))
        return ry_fail(ld->err, RENYI_ERR_ABORTED, -1,
                       "loading was stopped after %" PRIu64 " of %" PRIu64 " tensors", ld->done,
                       ld->total);
    return RENYI_OK;
}

renyi_status ry_loader_read(ry_loader *ld, const ry_tensor *t, float *out)
{
    RY_TRY(ry_vit_read(out, t, ld->set, ld->err));
    return ry_loader_finished(ld, t);
}

const ry_tensor *ry_loader_find(const ry_loader *ld, ry_vit_role role, uint32_t block)
{
    return ry_vit_tensor(&ld->naming, ld->set, role, block);
}

renyi_status ry_loader_vector(ry_loader *ld, ry_vit_role role, uint32_t block, float **out)
{
    const ry_tensor *t = ry_loader_find(ld, role, block);
    const size_t n = (size_t)ry_tensor_elements(t);
    *out = ry_alloc(ld->al, n, sizeof **out);
    if (!*out) return ry_fail_nomem(ld->err, n * sizeof **out);
    return ry_loader_read(ld, t, *out);
}

/* ---- one matrix ---------------------------------------------------------------------------- */

/* The calibrated range of the product's input, if there is one; q, k and v read the same input. */
static renyi_status load_range(ry_loader *ld, const ry_linear_source *s, ry_quant_range *out,
                               int *has)
{
    const ry_tensor *first = ry_loader_find(ld, s->w[0], s->block);
    RY_TRY(ry_vit_quant_range(out, has, first, ld->set, ld->err));
    for (uint32_t i = 1; i < s->parts; i++) {
        const ry_tensor *t = ry_loader_find(ld, s->w[i], s->block);
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

/* The parts of the matrix below each other in scratch, then their biases (zeros where there is
 * none) and their scales, if they are 8-bit. */
static renyi_status read_parts(ry_loader *ld, const ry_linear_source *s, int *has_bias,
                               int *has_scale)
{
    float *w = ld->scratch, *bias = w + s->n_out * s->n_in, *scale = bias + s->n_out;
    *has_bias = 0;
    *has_scale = 1;
    memset(bias, 0, s->n_out * sizeof *bias);
    for (size_t i = 0, at = 0, rows; i < s->parts; i++, at += rows) {
        const ry_tensor *b = ry_loader_find(ld, s->b[i], s->block);
        const ry_tensor *t = ry_loader_find(ld, s->w[i], s->block);
        rows = s->parts == 1 ? s->n_out : (size_t)t->shape[0];
        RY_TRY(ry_loader_read(ld, t, w + at * s->n_in));
        *has_scale &= ry_vit_quant_scale(scale + at, t, ld->set);
        if (!b) continue;
        RY_TRY(ry_loader_read(ld, b, bias + at));
        *has_bias = 1;
    }
    return RENYI_OK;
}

renyi_status ry_loader_linear(ry_loader *ld, const ry_linear_source *s, ry_linear **out)
{
    float *w = ld->scratch, *bias = w + s->n_out * s->n_in, *scale = bias + s->n_out;
    ry_quant_range range = {0.0f, 0.0f};
    int has_bias, has_range, has_scale;
    RY_TRY(load_range(ld, s, &range, &has_range));
    RY_TRY(read_parts(ld, s, &has_bias, &has_scale));
    const ry_linear_spec spec = {.w = s->transposed ? NULL : w,
                                 .bias = has_bias ? bias : NULL,
                                 .n_out = s->n_out,
                                 .n_in = s->n_in,
                                 .epilogue = s->epilogue,
                                 .dtype = s->dtype,
                                 .range = has_range ? &range : NULL,
                                 .scale = has_scale ? scale : NULL};
    RY_TRY(ry_linear_new(out, &spec, ld->level, ld->al, ld->err));
    if (!s->transposed) return RENYI_OK;
    return ry_linear_update(*out, w, 1, has_bias ? bias : NULL, ld->err);
}

/* ---- one block ----------------------------------------------------------------------------- */

/* Rows of qkv: all of q, then k, then v, whether the file has them in one matrix or in three. */
static renyi_status load_qkv(ry_loader *ld, const ry_block_shape *c, uint32_t block,
                             ry_linear **out)
{
    ry_linear_source s = {.w = {RY_QKV_W},
                          .b = {RY_QKV_B},
                          .parts = 1,
                          .block = block,
                          .n_out = 3 * c->dim,
                          .n_in = c->dim,
                          .epilogue = RY_EPI_NONE,
                          .dtype = c->dtype};
    const ry_vit_role w[3] = {RY_Q_W, RY_K_W, RY_V_W}, b[3] = {RY_Q_B, RY_K_B, RY_V_B};
    if (!ry_loader_find(ld, RY_QKV_W, block)) {
        memcpy(s.w, w, sizeof w);
        memcpy(s.b, b, sizeof b);
        s.parts = 3;
    }
    return ry_loader_linear(ld, &s, out);
}

renyi_status ry_loader_block(ry_loader *ld, const ry_block_shape *c, uint32_t i, ry_vit_block *out)
{
    ry_linear_source proj = {.w = {RY_PROJ_W},
                             .b = {RY_PROJ_B},
                             .parts = 1,
                             .block = i,
                             .n_out = c->dim,
                             .n_in = c->dim,
                             .epilogue = RY_EPI_RESIDUAL,
                             .dtype = c->dtype};
    ry_linear_source fc1 = proj, fc2 = proj;
    fc1.w[0] = RY_FC1_W, fc1.b[0] = RY_FC1_B, fc1.n_out = c->mlp_dim, fc1.epilogue = c->activation;
    fc2.w[0] = RY_FC2_W, fc2.b[0] = RY_FC2_B, fc2.n_in = c->mlp_dim;
    RY_TRY(ry_loader_vector(ld, RY_NORM1_W, i, &out->norm1_w));
    RY_TRY(ry_loader_vector(ld, RY_NORM1_B, i, &out->norm1_b));
    RY_TRY(load_qkv(ld, c, i, &out->qkv));
    RY_TRY(ry_loader_linear(ld, &proj, &out->proj));
    RY_TRY(ry_loader_vector(ld, RY_NORM2_W, i, &out->norm2_w));
    RY_TRY(ry_loader_vector(ld, RY_NORM2_B, i, &out->norm2_b));
    RY_TRY(ry_loader_linear(ld, &fc1, &out->fc1));
    return ry_loader_linear(ld, &fc2, &out->fc2);
}

size_t ry_loader_block_floats(size_t dim, size_t mlp_dim)
{
    const size_t qkv = ry_loader_floats(3 * dim, dim), fc1 = ry_loader_floats(mlp_dim, dim);
    const size_t fc2 = ry_loader_floats(dim, mlp_dim), mlp = fc1 > fc2 ? fc1 : fc2;
    return qkv > mlp ? qkv : mlp;
}

void ry_vit_block_free(ry_vit_block *b, const renyi_allocator *al)
{
    float *const vectors[] = {b->norm1_w, b->norm1_b, b->norm2_w, b->norm2_b};
    ry_linear *const linears[] = {b->qkv, b->proj, b->fc1, b->fc2};
    for (int k = 0; k < 4; k++) {
        ry_free(al, vectors[k]);
        ry_linear_free(linears[k], al);
    }
}
