/* weight_loader.c - reads tensors one at a time and packs them for the kernels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/weight_loader.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/common/tensor_quant.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_THREADS = 16 }; /* more would wait for the memory */

renyi_status ry_loader_begin(ry_loader *ld, size_t scratch_floats)
{
    uint32_t block;
    ld->total = 0;
    ld->scratch_floats = scratch_floats;
    for (size_t i = 0; i < ry_tensors_count(ld->set); i++)
        ld->total +=
            ry_tensor_name_match(&ld->naming, ry_tensors_at(ld->set, i)->name, &block) != NULL;
    ld->scratch = ry_alloc(ld->al, scratch_floats, sizeof *ld->scratch);
    if (!ld->scratch) return ry_fail_nomem(ld->err, scratch_floats * sizeof *ld->scratch);
    const unsigned threads = ry_cpu_threads(1);
    const renyi_status st = ry_thread_pool_new(
        &ld->pool, threads < MAX_THREADS ? threads : MAX_THREADS, ld->al, ld->err);
    if (st) ry_loader_end(ld);
    return st;
}

void ry_loader_end(ry_loader *ld)
{
    ry_thread_pool_free(ld->pool, ld->al);
    ry_free(ld->al, ld->scratch);
    ld->pool = NULL;
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

/* ---- rows of a matrix ---------------------------------------------------------------------- */

ry_linear_blocks ry_parts_blocks(const ry_parts *p, renyi_dtype dtype)
{
    const ry_dtype type = p->part[0]->dtype;
    for (uint32_t i = 1; i < p->n; i++)
        if (p->part[i]->dtype != type) return RY_BLOCKS_NONE;
    if (type == RY_Q4_0 && (dtype == RENYI_DTYPE_INT4 || dtype == RENYI_DTYPE_INT8))
        return RY_BLOCKS_Q4;
    return type == RY_Q8_0 && dtype == RENYI_DTYPE_INT8 ? RY_BLOCKS_Q8 : RY_BLOCKS_NONE;
}

static size_t row_bytes(const ry_parts *p)
{
    return p->blocks ? ry_dtype_bytes(p->part[0]->dtype, p->n_in) : p->n_in * sizeof(float);
}

/* Consecutive rows of a part as they are stored. */
static renyi_status read_stored(const ry_parts *p, const ry_tensor *t, ry_range rows, void *to,
                                renyi_error *err)
{
    const ry_range range = {rows.first * p->n_in, rows.count * p->n_in};
    return p->blocks ? ry_tensor_read_blocks(to, t, range, err)
                     : ry_tensor_read_range(to, t, p->set, range, err);
}

/* Rows of a part with paired rows, one by one. */
static renyi_status read_paired(const ry_parts *p, const ry_tensor *t, ry_range rows, char *to,
                                renyi_error *err)
{
    const size_t head = p->paired_head, half = head / 2;
    for (size_t i = 0; i < rows.count; i++, to += row_bytes(p)) {
        const size_t at = rows.first + i, inside = at % head;
        const ry_range stored = {at - inside + inside % half * 2 + inside / half, 1};
        RY_TRY(read_stored(p, t, stored, to, err));
    }
    return RENYI_OK;
}

renyi_status ry_parts_rows(const ry_parts *p, size_t first, size_t count, void *out,
                           renyi_error *err)
{
    size_t begin = 0;
    char *to = out;
    for (uint32_t i = 0; i < p->n; i++) {
        const ry_tensor *t = p->part[i];
        const size_t rows = (size_t)ry_tensor_elements(t) / p->n_in;
        const size_t from = first > begin ? first - begin : 0;
        if (first + count > begin && from < rows) {
            const size_t end = first + count - begin < rows ? first + count - begin : rows;
            const ry_range part = {from, end - from};
            RY_TRY(p->paired_head && i < 2 ? read_paired(p, t, part, to, err)
                                           : read_stored(p, t, part, to, err));
            to += part.count * row_bytes(p);
        }
        begin += rows;
    }
    return RENYI_OK;
}

/* The same of a tensor [n_in, n_out]: row j is its column j. */
static renyi_status read_columns(const ry_parts *p, size_t first, size_t count, float *to,
                                 renyi_error *err)
{
    enum { COLUMNS = 64 };
    float line[COLUMNS];
    const size_t n_out = (size_t)ry_tensor_elements(p->part[0]) / p->n_in;
    for (size_t j = 0, n; j < count; j += n) {
        n = count - j < COLUMNS ? count - j : COLUMNS;
        for (size_t k = 0; k < p->n_in; k++) {
            const ry_range range = {k * n_out + first + j, n};
            RY_TRY(ry_tensor_read_range(line, p->part[0], p->set, range, err));
            for (size_t i = 0; i < n; i++) to[(j + i) * p->n_in + k] = line[i];
        }
    }
    return RENYI_OK;
}

/* A matrix while it is packed. */
typedef struct matrix {
    ry_parts parts;
    int transposed;
    const float *gamma; /* [n_out] every row is multiplied by it; or NULL */
} matrix;

/* ry_linear_reader.rows */
static renyi_status read_rows(void *user, size_t first, size_t count, void *out, renyi_error *err)
{
    const matrix *m = user;
    const size_t n_in = m->parts.n_in;
    float *to = out;
    RY_TRY(m->transposed ? read_columns(&m->parts, first, count, to, err)
                         : ry_parts_rows(&m->parts, first, count, to, err));
    for (size_t j = 0; m->gamma && j < count; j++)
        for (size_t k = 0; k < n_in; k++) to[j * n_in + k] *= m->gamma[first + j];
    return RENYI_OK;
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

/* What belongs to the outputs of a matrix, in one block of memory [3, n_out]. */
typedef struct columns {
    float *bias;  /* 0 where a part has none */
    float *scale; /* of 8-bit weights */
    float *gamma; /* rows, biases and scales are multiplied by it */
    int has_bias, has_scale;
} columns;

static renyi_status read_columns_of(columns *c, ry_loader *ld, const ry_linear_source *s,
                                    const ry_parts *parts)
{
    const uint32_t biases = s->bias_parts ? s->bias_parts : s->parts;
    memset(c->bias, 0, s->n_out * sizeof *c->bias);
    for (size_t i = 0; i < biases; i++) {
        const ry_tensor *b = ry_loader_find(ld, s->b[i], s->block);
        if (!b) continue;
        RY_TRY(ry_loader_read(ld, b, c->bias + i * (s->n_out / biases)));
        c->has_bias = 1;
    }
    c->has_scale = 1;
    for (size_t i = 0, at = 0; i < parts->n; i++) {
        c->has_scale &= ry_quant_scales(c->scale + at, parts->part[i], ld->set);
        at += (size_t)ry_tensor_elements(parts->part[i]) / s->n_in;
    }
    if (!s->scaled) return RENYI_OK;
    RY_TRY(ry_loader_read(ld, ry_loader_find(ld, s->scale, s->block), c->gamma));
    for (size_t j = 0; j < s->n_out; j++) {
        c->bias[j] *= c->gamma[j];
        /* the integers of an 8-bit row stay what they are, but for the sign of gamma */
        if (c->has_scale && c->gamma[j] != 0.0f) c->scale[j] *= fabsf(c->gamma[j]);
    }
    return RENYI_OK;
}

static renyi_status load_linear(ry_loader *ld, const ry_linear_source *s, columns *c,
                                ry_linear **out)
{
    matrix m = {
        .parts = {.n = s->parts, .n_in = s->n_in, .set = ld->set, .paired_head = s->paired_head},
        .transposed = s->transposed,
        .gamma = s->scaled ? c->gamma : NULL};
    ry_quant_range range = {0.0f, 0.0f};
    int has_range;
    for (uint32_t i = 0; i < s->parts; i++) m.parts.part[i] = ry_loader_find(ld, s->w[i], s->block);
    if (s->few_rows) m.parts.blocks = ry_parts_blocks(&m.parts, s->dtype);
    RY_TRY(load_range(ld, s, &range, &has_range));
    RY_TRY(read_columns_of(c, ld, s, &m.parts));
    const ry_linear_reader reader = {read_rows, &m};
    const ry_linear_spec spec = {.bias = c->has_bias ? c->bias : NULL,
                                 .n_out = s->n_out,
                                 .n_in = s->n_in,
                                 .epilogue = s->epilogue,
                                 .dtype = s->dtype,
                                 .range = has_range ? &range : NULL,
                                 .scale = c->has_scale ? c->scale : NULL,
                                 .reader = &reader,
                                 .blocks = m.parts.blocks,
                                 .pool = ld->pool,
                                 .few_rows = s->few_rows};
    RY_TRY(ry_linear_new(out, &spec, ld->level, ld->al, ld->err));
    for (uint32_t i = 0; i < s->parts; i++) RY_TRY(ry_loader_finished(ld, m.parts.part[i]));
    return RENYI_OK;
}

renyi_status ry_loader_linear(ry_loader *ld, const ry_linear_source *s, ry_linear **out)
{
    float *memory = ry_alloc(ld->al, 3 * s->n_out, sizeof *memory);
    if (!memory) return ry_fail_nomem(ld->err, 3 * s->n_out * sizeof *memory);
    columns c = {.bias = memory, .scale = memory + s->n_out, .gamma = memory + 2 * s->n_out};
    const renyi_status st = load_linear(ld, s, &c, out);
    ry_free(ld->al, memory);
    return st;
}

/* ---- one block ----------------------------------------------------------------------------- */

/* The rows of qkv are all of q, then k, then v; the file has one matrix or three, and one bias or
 * up to three. */
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
        s.parts = 3;
    }
    if (!ry_loader_find(ld, RY_QKV_B, block)) {
        memcpy(s.b, b, sizeof b);
        s.bias_parts = 3;
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

static renyi_status check_table(ry_loader *ld, const ry_tensor *t)
{
    const size_t n = (size_t)ry_tensor_elements(t);
    for (ry_range r = {0, 0}; r.first < n; r.first += r.count) {
        r.count = n - r.first < ld->scratch_floats ? n - r.first : ld->scratch_floats;
        RY_TRY(ry_tensor_read_range(ld->scratch, t, ld->set, r, ld->err));
    }
    return RENYI_OK;
}

renyi_status ry_token_table_load(ry_tensor *out, ry_loader *ld)
{
    const ry_tensor *from = ry_loader_find(ld, RY_TOKEN_EMBED, 0);
    RY_TRY(check_table(ld, from));
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
    row.bytes = ry_dtype_bytes(t->dtype, row.shape[0]);
    row.data = (const char *)t->data + token * row.bytes;
    const renyi_status st = ry_tensor_to_f32(&row, out, NULL);
    assert(!st); /* loading checked the type */
    (void)st;
}
