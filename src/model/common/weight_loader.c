/* weight_loader.c - reads tensors one at a time and packs them for the kernels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/weight_loader.h"

#include "base/alloc.h"
#include "base/status.h"
#include "model/common/tensor_quant.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

renyi_status ry_loader_begin(ry_loader *ld, size_t scratch_floats)
{
    uint32_t block;
    ld->total = 0;
    for (size_t i = 0; i < ry_tensors_count(ld->set); i++)
        ld->total +=
            ry_tensor_name_match(&ld->naming, ry_tensors_at(ld->set, i)->name, &block) != NULL;
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
    RY_TRY(ry_tensor_read(out, t, ld->set, ld->err));
    return ry_loader_finished(ld, t);
}

const ry_tensor *ry_loader_find(const ry_loader *ld, ry_tensor_role role, uint32_t block)
{
    return ry_tensor_of_role(&ld->naming, ld->set, role, block);
}

renyi_status ry_loader_vector(ry_loader *ld, ry_tensor_role role, uint32_t block, float **out)
{
    const ry_tensor *t = ry_loader_find(ld, role, block);
    const size_t n = (size_t)ry_tensor_elements(t);
    *out = ry_alloc(ld->al, n, sizeof **out);
    if (!*out) return ry_fail_nomem(ld->err, n * sizeof **out);
    return ry_loader_read(ld, t, *out);
}

/* ---- one matrix ---------------------------------------------------------------------------- */

/* The calibrated range of the product's input, if any. q, k and v have the same input, so their
 * ranges must agree. */
static renyi_status load_range(ry_loader *ld, const ry_linear_source *s, ry_quant_range *out,
                               int *has)
{
    const ry_tensor *first = ry_loader_find(ld, s->w[0], s->block);
    RY_TRY(ry_quant_input_range(out, has, first, ld->set, ld->err));
    for (uint32_t i = 1; i < s->parts; i++) {
        const ry_tensor *t = ry_loader_find(ld, s->w[i], s->block);
        ry_quant_range r = *out;
        int has_range;
        RY_TRY(ry_quant_input_range(&r, &has_range, t, ld->set, ld->err));
        if (has_range != *has || r.low != out->low || r.high != out->high)
            return ry_fail(ld->err, RENYI_ERR_FORMAT, -1,
                           "'%.120s' and '%.120s' read the same numbers, but do not have the same "
                           "range: " RY_QUANTIZE_AGAIN,
                           first->name, t->name);
    }
    return RENYI_OK;
}

/* Into scratch: the parts of the matrix below each other, then their biases (0 where a part has
 * none), then their scales, if they are 8-bit. */
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
        *has_scale &= ry_quant_scales(scale + at, t, ld->set);
        if (!b) continue;
        RY_TRY(ry_loader_read(ld, b, bias + at));
        *has_bias = 1;
    }
    return RENYI_OK;
}

/* Row j of the matrix, its bias and its 8-bit scale times gamma[j]. The integers of an 8-bit row
 * stay what they are, but for the sign of gamma. */
static renyi_status apply_scale(ry_loader *ld, const ry_linear_source *s, int has_scale)
{
    float *w = ld->scratch, *bias = w + s->n_out * s->n_in, *scale = bias + s->n_out;
    float *gamma = scale + s->n_out;
    RY_TRY(ry_loader_read(ld, ry_loader_find(ld, s->scale, s->block), gamma));
    for (size_t j = 0; j < s->n_out; j++) {
        for (size_t k = 0; k < s->n_in; k++) w[j * s->n_in + k] *= gamma[j];
        bias[j] *= gamma[j];
        if (has_scale && gamma[j] != 0.0f) scale[j] *= fabsf(gamma[j]);
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
    if (s->scaled) RY_TRY(apply_scale(ld, s, has_scale));
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

/* ---- one matrix, some rows at a time ------------------------------------------------------- */

/* Rows first .. first + count - 1 of a tensor [rows, n_in] */
static renyi_status read_slice(const ry_tensor *t, size_t first, size_t count, float *to,
                               renyi_error *err)
{
    const size_t n_in = (size_t)t->shape[1], row = n_in * ry_dtype_size(t->dtype);
    ry_tensor slice = *t;
    slice.shape[0] = count;
    slice.data = (const char *)t->data + first * row;
    slice.bytes = count * row;
    RY_TRY(ry_tensor_to_f32(&slice, to, err));
    for (size_t i = 0; i < count * n_in; i++)
        if (!isfinite(to[i]))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "tensor '%.120s' holds %s in row %zu; finite weights expected", t->name,
                           isnan(to[i]) ? "NaN" : "infinity", first + i / n_in);
    return RENYI_OK;
}

renyi_status ry_parts_rows(const ry_parts *p, size_t first, size_t count, float *to,
                           renyi_error *err)
{
    size_t begin = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const ry_tensor *t = p->part[i];
        const size_t rows = (size_t)t->shape[0], from = first > begin ? first - begin : 0;
        if (first + count > begin && from < rows) {
            const size_t end = first + count - begin < rows ? first + count - begin : rows;
            RY_TRY(read_slice(t, from, end - from, to, err));
            to += (end - from) * t->shape[1];
        }
        begin += rows;
    }
    return RENYI_OK;
}

typedef struct row_reader {
    ry_loader *ld;
    ry_parts parts;
} row_reader;

/* ry_linear_reader.rows */
static renyi_status read_rows(void *user, size_t first, size_t count, float *to, renyi_error *err)
{
    const row_reader *r = user;
    size_t end = 0;
    RY_TRY(ry_parts_rows(&r->parts, first, count, to, err));
    for (uint32_t i = 0; i < r->parts.n; i++) { /* parts whose last row is here */
        end += (size_t)r->parts.part[i]->shape[0];
        if (end > first && end <= first + count)
            RY_TRY(ry_loader_finished(r->ld, r->parts.part[i]));
    }
    return RENYI_OK;
}

renyi_status ry_loader_rows(ry_loader *ld, const ry_linear_source *s, ry_linear **out)
{
    row_reader r = {.ld = ld, .parts.n = s->parts};
    const ry_linear_reader reader = {read_rows, &r};
    const ry_linear_spec spec = {.n_out = s->n_out,
                                 .n_in = s->n_in,
                                 .epilogue = s->epilogue,
                                 .dtype = s->dtype,
                                 .reader = &reader,
                                 .few_rows = 1};
    assert(!s->transposed);
    for (uint32_t i = 0; i < s->parts; i++) r.parts.part[i] = ry_loader_find(ld, s->w[i], s->block);
    return ry_linear_new(out, &spec, ld->level, ld->al, ld->err);
}

/* ---- one block ----------------------------------------------------------------------------- */

/* The rows of qkv are all of q, then k, then v; the file has one matrix or three. */
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
    const ry_tensor_role w[3] = {RY_Q_W, RY_K_W, RY_V_W}, b[3] = {RY_Q_B, RY_K_B, RY_V_B};
    if (!ry_loader_find(ld, RY_QKV_W, block)) {
        memcpy(s.w, w, sizeof w);
        memcpy(s.b, b, sizeof b);
        s.parts = 3;
    }
    return ry_loader_linear(ld, &s, out);
}

renyi_status ry_loader_block(ry_loader *ld, const ry_block_shape *c, uint32_t i,
                             ry_block_weights *out)
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
    if (c->gated) {
        const int split = ry_loader_find(ld, RY_UP_W, i) != NULL;
        fc1.n_out = 2 * c->mlp_dim, fc1.epilogue = RY_EPI_NONE, fc1.parts = split ? 2 : 1;
        fc1.w[1] = RY_UP_W, fc1.b[1] = RY_UP_B;
    }
    fc2.w[0] = RY_FC2_W, fc2.b[0] = RY_FC2_B, fc2.n_in = c->mlp_dim;
    proj.scaled = fc2.scaled = c->layer_scale;
    proj.scale = RY_SCALE1, fc2.scale = RY_SCALE2;
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

void ry_block_weights_free(ry_block_weights *b, const renyi_allocator *al)
{
    float *const vectors[] = {b->norm1_w, b->norm1_b, b->norm2_w, b->norm2_b};
    ry_linear *const linears[] = {b->qkv, b->proj, b->fc1, b->fc2};
    for (int k = 0; k < 4; k++) {
        ry_free(al, vectors[k]);
        ry_linear_free(linears[k], al);
    }
}

/* ---- token embeddings ---------------------------------------------------------------------- */

static renyi_status check_table(ry_loader *ld, const ry_tensor *t, size_t piece_floats)
{
    const size_t n = (size_t)ry_tensor_elements(t), size = ry_dtype_size(t->dtype);
    for (size_t at = 0; at < n; at += piece_floats) {
        ry_tensor piece = *t;
        piece.n_dims = 1;
        piece.shape[0] = n - at < piece_floats ? n - at : piece_floats;
        piece.bytes = piece.shape[0] * size;
        piece.data = (const char *)t->data + at * size;
        RY_TRY(ry_tensor_to_f32(&piece, ld->scratch, ld->err));
        for (size_t i = 0; i < piece.shape[0]; i++)
            if (!isfinite(ld->scratch[i]))
                return ry_fail(ld->err, RENYI_ERR_FORMAT, -1,
                               "tensor '%.120s' holds %s at element %zu of %zu; finite weights "
                               "expected",
                               t->name, isnan(ld->scratch[i]) ? "NaN" : "infinity", at + i, n);
    }
    return RENYI_OK;
}

renyi_status ry_token_table_load(ry_tensor *out, ry_loader *ld, size_t piece)
{
    const ry_tensor *from = ry_loader_find(ld, RY_TOKEN_EMBED, 0);
    RY_TRY(check_table(ld, from, piece));
    void *copy = ry_alloc(ld->al, (size_t)from->bytes, 1);
    if (!copy) return ry_fail_nomem(ld->err, (size_t)from->bytes);
    memcpy(copy, from->data, (size_t)from->bytes);
    ry_tensors_drop_pages(ld->set, from);
    *out = *from;
    out->name = "";
    out->data = copy;
    ld->done++;
    ld->n_params += ry_tensor_elements(from);
    return RENYI_OK;
}

void ry_token_table_free(ry_tensor *t, const renyi_allocator *al)
{
    ry_free(al, (void *)(uintptr_t)t->data);
    *t = (ry_tensor){0};
}

void ry_token_table_row(const ry_tensor *t, size_t token, float *out)
{
    ry_tensor row = *t;
    row.n_dims = 1;
    row.shape[0] = t->shape[1];
    row.bytes = row.shape[0] * ry_dtype_size(t->dtype);
    row.data = (const char *)t->data + token * row.bytes;
    const renyi_status st = ry_tensor_to_f32(&row, out, NULL);
    assert(!st); /* loading checked the type */
    (void)st;
}
