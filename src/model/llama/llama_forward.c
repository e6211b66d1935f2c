/* llama_forward.c - runs a pass of new rows: tokens, layers of attention to the cache and gated
 * MLP, logits of the last row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "model/common/runner.h"
#include "model/common/token_table.h"
#include "model/llama/llama_plan.h"

#include <omp.h>
#include <string.h>

/* One thread. */
typedef struct worker {
    ry_llama_plan *p;
    const renyi_lm_input *in;
    size_t n;
    float *logits;
    ry_runner run;
} worker;

/* Rows of a tile of attention: whole sixes of queries, which is what the kernel takes at a time. */
enum { ATTENTION_ROWS = 24 };

static void embed(worker *w)
{
    const ry_llama_plan *p = w->p;
    const size_t C = p->model->config.dim;
    ry_step step = ry_runner_step(&w->run, ry_row_tiles(w->n));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t r = t * RY_CONVERT_ROWS; r < ry_row_end(t, w->n); r++)
            if (w->in[r].embedding)
                memcpy(p->x + r * C, w->in[r].embedding, C * sizeof(float));
            else
                ry_token_table_row(&p->model->tokens, (size_t)w->in[r].token, p->x + r * C);
    ry_step_end(&step);
}

/* y = op(RMSNorm x), with the normalised rows in h */
static void norm_linear(worker *w, const ry_linear_op *op, size_t rows, const float *x,
                        const float *weight, float *y)
{
    const ry_llama_plan *p = w->p;
    const size_t C = p->model->config.dim, h_row = ry_llama_row(p, C);
    ry_step step = ry_runner_step(&w->run, ry_row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t first = t * RY_CONVERT_ROWS, count = ry_row_end(t, rows) - first;
        p->kernels.rmsnorm(p->h + first * h_row, h_row, x + first * C, C, count, C, weight,
                           (float)p->model->config.norm_eps);
        ry_runner_convert(&w->run, op, t, rows, p->h);
    }
    ry_step_end(&step);
    ry_runner_product(&w->run, op, rows, p->h, y);
}

/* Positions into queries and keys; keys and values into the cache. */
static void remember(worker *w, uint32_t layer)
{
    const ry_llama_plan *p = w->p;
    const ry_llama_config *c = &p->model->config;
    const size_t row = ry_llama_row(p, ry_llama_qkv(c)), d = c->head_dim;
    ry_step step = ry_runner_step(&w->run, ry_row_tiles(w->n));
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
 * last rows see most, and come first. */
static void attention(worker *w, uint32_t layer, size_t first)
{
    const ry_llama_plan *p = w->p;
    const ry_llama_config *c = &p->model->config;
    const size_t rows = w->n - first, G = c->n_kv_heads;
    const size_t blocks = (rows + ATTENTION_ROWS - 1) / ATTENTION_ROWS;
    ry_cached at = {.cache = &p->caches[layer], .group = c->n_heads / G};
    at.q_row = ry_llama_row(p, ry_llama_qkv(c));
    at.out_row = ry_llama_row(p, ry_llama_q(c));
    ry_step step = ry_runner_step(&w->run, G * blocks);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t begin = (blocks - 1 - t / G) * ATTENTION_ROWS, left = rows - begin;
        at.cache_head = t % G;
        const size_t column = at.cache_head * at.group * c->head_dim;
        at.n_rows = left < ATTENTION_ROWS ? left : ATTENTION_ROWS;
        at.first = p->position + first + begin;
        at.q = p->wide + (first + begin) * at.q_row + column;
        at.out = p->h + begin * at.out_row + column;
        p->kernels.cached(&at, p->attention + w->run.thread * p->attention_each);
    }
    ry_step_end(&step);
}

/* x [rows, C] += down(gate . up), from what is in wide */
static void gated(worker *w, const ry_linear_op *down, size_t rows, float *x)
{
    const ry_llama_plan *p = w->p;
    const size_t M = p->model->config.mlp_dim;
    const size_t wide_row = ry_llama_row(p, 2 * M), act_row = ry_llama_row(p, M);
    ry_step step = ry_runner_step(&w->run, ry_row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t first = t * RY_CONVERT_ROWS, count = ry_row_end(t, rows) - first;
        p->kernels.swiglu(p->act + first * act_row, act_row, p->wide + first * wide_row, wide_row,
                          count, M);
        ry_runner_convert(&w->run, down, t, rows, p->act);
    }
    ry_step_end(&step);
    ry_runner_product(&w->run, down, rows, p->act, x);
}

/* The rows from `first` on become those of the next layer. */
static void finish_layer(worker *w, uint32_t i, size_t first)
{
    ry_llama_plan *p = w->p;
    const size_t rows = w->n - first;
    const ry_llama_ops *ops = &p->ops[rows == 1 ? RY_LLAMA_ONE : RY_LLAMA_MANY][i];
    float *x = p->x + first * p->model->config.dim;
    attention(w, i, first);
    ry_runner_linear(&w->run, ops->proj, rows, p->h, x);
    norm_linear(w, ops->gate_up, rows, x, p->model->layers[i].norm2, p->wide);
    gated(w, ops->down, rows, x);
}

/* Of the last layer only the last row is read, and only for logits: of the others keys and values
 * are all that is wanted. */
static void forward(worker *w)
{
    ry_llama_plan *p = w->p;
    const ry_llama *m = p->model;
    const uint32_t L = m->config.n_layers;
    const ry_llama_ops *ops = p->ops[w->n == 1 ? RY_LLAMA_ONE : RY_LLAMA_MANY];

    embed(w);
    for (uint32_t i = 0; i < L; i++) {
        norm_linear(w, ops[i].qkv, w->n, p->x, m->layers[i].norm1, p->wide);
        remember(w, i);
        if (i + 1 < L) finish_layer(w, i, 0);
    }
    if (!w->logits) return;
    finish_layer(w, L - 1, w->n - 1);
    norm_linear(w, p->head, 1, p->x + (w->n - 1) * m->config.dim, m->norm, w->logits);
}

void ry_llama_forward(ry_llama_plan *p, const renyi_lm_input *in, uint32_t n, float *logits)
{
    for (size_t i = 0; i < p->n_tickets; i++) ry_ticket_reset(&p->tickets[i]);
#pragma omp parallel num_threads(p->opt.n_threads)
    {
        worker w = {.p = p, .in = in, .n = n, .logits = logits};
        w.run = (ry_runner){p->tickets, p->n_tickets, 0, (unsigned)omp_get_thread_num(), p->low};
        omp_set_num_threads(1); /* a tile never spawns threads of its own */
        forward(&w);
    }
    p->position += n;
}
