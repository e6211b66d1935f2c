/* text_forward.c - runs a pass of texts: token embedding, blocks of causal attention and MLP,
 * projection of the last tokens. SPDX-License-Identifier: Apache-2.0 */
#include "model/text_plan.h"

#include <assert.h>
#include <omp.h>
#include <string.h>

/* One thread. All of them go through the same steps and share the tiles of each (base/steps.h). */
typedef struct worker {
    ry_text_plan *p;
    float *out;
    unsigned thread;
    size_t ticket; /* index of the next step's ticket */
} worker;

enum { ROWS = RY_CONVERT_ROWS }; /* of a tile of the steps that go row by row */

static ry_step begin(worker *w, size_t tiles)
{
    assert(w->ticket < w->p->n_tickets);
    return (ry_step){&w->p->tickets[w->ticket++], tiles, 0};
}

static size_t row_tiles(size_t rows) { return (rows + ROWS - 1) / ROWS; }

/* Rows of tile t: from t * ROWS to before this one. */
static size_t tile_end(size_t t, size_t rows)
{
    return (t + 1) * ROWS < rows ? (t + 1) * ROWS : rows;
}

/* y = op of rows that are there in the form that it reads */
static void product(worker *w, const ry_linear_op *op, size_t rows, const void *x, float *y)
{
    const ry_extent run = {1, rows};
    ry_step step = begin(w, ry_linear_op_tiles(op, run));
    for (size_t t; ry_step_next(&step, &t);) ry_linear_op_tile(op, t, run, w->thread, x, y);
    ry_step_end(&step);
}

static void linear(worker *w, const ry_linear_op *op, size_t rows, const float *x, float *y)
{
    if (!ry_linear_op_converts(op)) {
        product(w, op, rows, x, y);
        return;
    }
    const ry_extent run = {1, rows};
    ry_step step = begin(w, row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);) ry_linear_op_convert(op, t, run, x, w->p->low);
    ry_step_end(&step);
    product(w, op, rows, w->p->low, y);
}

/* y = op(LayerNorm x), with the normalised rows in h. If the product does not read floats, they are
 * converted while they are warm. */
static void norm_linear(worker *w, const ry_linear_op *op, size_t rows, const float *x,
                        const float *weight, const float *bias, float *h, float *y)
{
    const ry_text_plan *p = w->p;
    const int converts = ry_linear_op_converts(op);
    const size_t C = p->text->config.dim, h_row = ry_text_row(p, C);
    ry_step step = begin(w, row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t first = t * ROWS, count = tile_end(t, rows) - first;
        p->kernels.layernorm(h + first * h_row, h_row, x + first * C, C, count, C, weight, bias,
                             (float)p->text->config.norm_eps);
        if (converts) ry_linear_op_convert(op, t, (ry_extent){1, rows}, h, p->low);
    }
    ry_step_end(&step);
    product(w, op, rows, converts ? p->low : h, y);
}

/* x[r] = token + position */
static void embed_row(const ry_text_plan *p, size_t r)
{
    const size_t C = p->text->config.dim;
    const float *pos = p->text->pos + p->pass.positions[r] * C;
    float *x = p->x + r * C;
    ry_tensor token = p->text->tokens;
    token.n_dims = 1;
    token.shape[0] = C;
    token.bytes = C * ry_dtype_size(token.dtype);
    token.data = (const char *)token.data + (size_t)p->pass.ids[r] * token.bytes;
    const renyi_status st = ry_tensor_to_f32(&token, x, NULL);
    assert(!st); /* a float type, or it would not have been loaded */
    (void)st;
    for (size_t k = 0; k < C; k++) x[k] += pos[k];
}

static void embed(worker *w)
{
    const size_t rows = w->p->pass.n_rows;
    ry_step step = begin(w, row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t r = t * ROWS; r < tile_end(t, rows); r++) embed_row(w->p, r);
    ry_step_end(&step);
}

/* The row of a text's last token. */
static size_t last_row(const ry_text_pass *pass, size_t i)
{
    return pass->paths[i * pass->context + pass->texts[i].length - 1];
}

/* h = attention of the rows that each text has for itself; with only_last, row i of h that of the
 * last token of text i. */
static void attention(worker *w, int only_last)
{
    ry_text_plan *p = w->p;
    const ry_text_config *c = &p->text->config;
    const ry_text_pass *pass = &p->pass;
    ry_causal at = {.n_heads = c->n_heads, .head = c->dim / c->n_heads, .qkv = p->wide};
    at.qkv_row = ry_text_row(p, 3 * (size_t)c->dim);
    at.out_row = ry_text_row(p, c->dim);
    ry_step step = begin(w, pass->n_texts);
    for (size_t i; ry_step_next(&step, &i);) {
        const ry_text_span *text = &pass->texts[i];
        at.rows = pass->paths + i * pass->context;
        at.n_tokens = text->length;
        at.first = only_last ? text->length - 1 : text->shared;
        if (at.first == at.n_tokens) continue; /* all of it is somebody else's too */
        at.out = p->h + (only_last ? i : at.rows[at.first]) * at.out_row;
        p->kernels.causal(&at, p->attention + w->thread * p->attention_each);
    }
    ry_step_end(&step);
}

/* x [rows, C] += projection of attention in h, then += MLP(LayerNorm x) */
static void finish_block(worker *w, uint32_t i, size_t rows, float *x, float *h)
{
    ry_text_plan *p = w->p;
    const ry_vit_block *weights = &p->text->blocks[i];
    linear(w, p->ops[i].proj, rows, p->h, x);
    norm_linear(w, p->ops[i].fc1, rows, x, weights->norm2_w, weights->norm2_b, h, p->wide);
    linear(w, p->ops[i].fc2, rows, p->wide, x);
}

static void project_qkv(worker *w, uint32_t i)
{
    ry_text_plan *p = w->p;
    const ry_vit_block *weights = &p->text->blocks[i];
    norm_linear(w, p->ops[i].qkv, p->pass.n_rows, p->x, weights->norm1_w, weights->norm1_b, p->h,
                p->wide);
}

/* Only the last token of each text is read: the others give it keys and values, no more. */
static void last_block(worker *w, uint32_t i)
{
    ry_text_plan *p = w->p;
    const size_t C = p->text->config.dim;
    ry_step step = begin(w, p->pass.n_texts);
    for (size_t k; ry_step_next(&step, &k);)
        memcpy(p->pooled_x + k * C, p->x + last_row(&p->pass, k) * C, C * sizeof(float));
    ry_step_end(&step);
    project_qkv(w, i);
    attention(w, 1);
    finish_block(w, i, p->pass.n_texts, p->pooled_x, p->pooled_h);
}

static void forward(worker *w)
{
    ry_text_plan *p = w->p;
    const ry_text *t = p->text;
    const uint32_t L = t->config.n_blocks;
    const size_t E = t->config.embed_dim;

    embed(w);
    for (uint32_t i = 0; i + 1 < L; i++) {
        project_qkv(w, i);
        attention(w, 0);
        finish_block(w, i, p->pass.n_rows, p->x, p->h);
    }
    last_block(w, L - 1);
    norm_linear(w, p->projection, p->pass.n_texts, p->pooled_x, t->norm_w, t->norm_b, p->pooled_h,
                p->embeddings);
    ry_step step = begin(w, p->pass.n_texts);
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(w->out + p->pass.texts[i].index * E, p->embeddings + i * E, E * sizeof(float));
    ry_step_end(&step);
}

void ry_text_forward(ry_text_plan *p, float *out)
{
    for (size_t i = 0; i < p->n_tickets; i++) ry_ticket_reset(&p->tickets[i]);
#pragma omp parallel num_threads(p->n_threads)
    {
        worker w = {.p = p, .out = out, .thread = (unsigned)omp_get_thread_num()};
        omp_set_num_threads(1); /* a tile never spawns threads of its own */
        forward(&w);
    }
}
