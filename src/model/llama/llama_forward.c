/* llama_forward.c - runs a pass of new rows: token embedding, layers of cached attention and gated
 * MLP, logits of the last row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "model/common/weight_loader.h"
#include "model/llama/llama_plan.h"

#include <string.h>

/* One thread. */
typedef struct worker {
    ry_llama_plan *p;
    const renyi_lm_input *in;
    size_t n;
    float *logits;
    ry_runner *run;
} worker;

/* Rows of a tile of attention: a multiple of six, the number of queries that the kernel takes at a
 * time. */
enum { ATTENTION_ROWS = 24 };

static void embed_rows(worker *w)
{
    const ry_llama_plan *p = w->p;
    const size_t C = p->model->config.dim;
    ry_step step = ry_runner_step(w->run, ry_row_tiles(w->n));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t r = t * RY_CONVERT_ROWS; r < ry_row_end(t, w->n); r++)
            if (w->in[r].embedding)
                memcpy(p->x + r * C, w->in[r].embedding, C * sizeof(float));
            else
                ry_token_table_row(&p->model->tokens, (size_t)w->in[r].token, p->x + r * C);
    ry_step_end(&step);
}

static ry_extent plain_rows(size_t rows) { return (ry_extent){1, rows}; }

/* y = op(RMSNorm x), with the normalized rows in h */
static void norm_linear(worker *w, const ry_linear_op *op, size_t rows, const float *x,
                        const float *weight, float *y)
{
    const ry_llama_plan *p = w->p;
    const size_t C = p->model->config.dim;
    const ry_norm norm = {&p->kernels, weight, NULL, C, (float)p->model->config.norm_eps};
    ry_runner_norm(w->run, &norm, plain_rows(rows), x, p->h, ry_llama_row(p, C), op);
    ry_runner_product(w->run, op, plain_rows(rows), p->h, y);
}

/* Rotates queries and keys by their positions; stores keys and values in the cache. */
static void rotate_and_cache(worker *w, uint32_t layer)
{
    const ry_llama_plan *p = w->p;
    const ry_llama_config *c = &p->model->config;
    const size_t row = ry_llama_row(p, ry_llama_qkv(c)), d = c->head_dim;
    ry_step step = ry_runner_step(w->run, ry_row_tiles(w->n));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t r = t * RY_CONVERT_ROWS; r < ry_row_end(t, w->n); r++) {
            const size_t position = p->position + r;
            float *q = p->wide + r * row, *k = q + ry_llama_q(c);
            ry_rope(q, c->n_heads + c->n_kv_heads, d, p->angles + position * ry_rope_floats(d));
            p->kernels.cache_row(&p->caches[layer], position, k, k + ry_llama_kv(c));
        }
    ry_step_end(&step);
}

/* h = attention of the rows from `first` on. Tiles are heads of the cache times blocks of rows; the
 * last rows have the most keys and come first. */
static void attend(worker *w, uint32_t layer, size_t first)
{
    const ry_llama_plan *p = w->p;
    const ry_llama_config *c = &p->model->config;
    const size_t rows = w->n - first, G = c->n_kv_heads;
    const size_t blocks = (rows + ATTENTION_ROWS - 1) / ATTENTION_ROWS;
    ry_cached at = {.cache = &p->caches[layer], .group = c->n_heads / G};
    at.q_row = ry_llama_row(p, ry_llama_qkv(c));
    at.out_row = ry_llama_row(p, ry_llama_q(c));
    ry_step step = ry_runner_step(w->run, G * blocks);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t begin = (blocks - 1 - t / G) * ATTENTION_ROWS, left = rows - begin;
        at.cache_head = t % G;
        const size_t column = at.cache_head * at.group * c->head_dim;
        at.n_rows = left < ATTENTION_ROWS ? left : ATTENTION_ROWS;
        at.first = p->position + first + begin;
        at.q = p->wide + (first + begin) * at.q_row + column;
        at.out = p->h + begin * at.out_row + column;
        p->kernels.cached(&at, p->attention + w->run->thread * p->attention_each);
    }
    ry_step_end(&step);
}

/* x [rows, C] += down(silu(gate) * up), with gate and up in wide */
static void add_gated_mlp(worker *w, const ry_linear_op *down, size_t rows, float *x)
{
    const ry_llama_plan *p = w->p;
    const size_t M = p->model->config.mlp_dim;
    const size_t wide_row = ry_llama_row(p, 2 * M), act_row = ry_llama_row(p, M);
    ry_step step = ry_runner_step(w->run, ry_row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t first = t * RY_CONVERT_ROWS, count = ry_row_end(t, rows) - first;
        p->kernels.swiglu(p->act + first * act_row, act_row, p->wide + first * wide_row, wide_row,
                          count, M);
        ry_runner_convert(w->run, down, t, plain_rows(rows), p->act);
    }
    ry_step_end(&step);
    ry_runner_product(w->run, down, plain_rows(rows), p->act, x);
}

/* Attention, projection and MLP of layer i for the rows from `first` on. */
static void finish_layer(worker *w, uint32_t i, size_t first)
{
    ry_llama_plan *p = w->p;
    const size_t rows = w->n - first;
    const ry_llama_ops *ops = &p->ops[rows == 1 ? RY_LLAMA_ONE : RY_LLAMA_MANY][i];
    float *x = p->x + first * p->model->config.dim;
    attend(w, i, first);
    ry_runner_linear(w->run, ops->proj, plain_rows(rows), p->h, x);
    norm_linear(w, ops->gate_up, rows, x, p->model->layers[i].norm2, p->wide);
    add_gated_mlp(w, ops->down, rows, x);
}

/* After the last layer only the last row is read, and only for logits; the other rows contribute
 * keys and values. */
static void run_thread(ry_runner *run, void *user)
{
    worker mine = *(const worker *)user, *w = &mine;
    w->run = run;
    ry_llama_plan *p = w->p;
    const ry_llama *m = p->model;
    const uint32_t L = m->config.n_layers;
    const ry_llama_ops *ops = p->ops[w->n == 1 ? RY_LLAMA_ONE : RY_LLAMA_MANY];

    embed_rows(w);
    for (uint32_t i = 0; i < L; i++) {
        norm_linear(w, ops[i].qkv, w->n, p->x, m->layers[i].norm1, p->wide);
        rotate_and_cache(w, i);
        if (i + 1 < L) finish_layer(w, i, 0);
    }
    if (!w->logits) return;
    finish_layer(w, L - 1, w->n - 1);
    norm_linear(w, p->head, 1, p->x + (w->n - 1) * m->config.dim, m->norm, w->logits);
}

void ry_llama_forward(ry_llama_plan *p, const renyi_lm_input *in, uint32_t n, float *logits)
{
    worker w = {.p = p, .in = in, .n = n, .logits = logits};
    ry_team_run(&p->team, run_thread, &w);
    p->position += n;
}
