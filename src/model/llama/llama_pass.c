/* llama_pass.c - a pass of new rows through the layers of a Llama: token embedding, cached
 * attention and gated MLP, logits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "model/common/weight_loader.h"
#include "model/llama/llama_plan.h"

#include <string.h>

/* One thread. */
typedef struct worker {
    ry_llama_plan *p;
    const ry_llama_pass *pass;
    ry_runner *run;
} worker;

/* A layer, and how many rows its cache has before those of the pass. */
typedef struct layer_at {
    uint32_t i;
    size_t base;
} layer_at;

/* Rows of a tile of attention: a multiple of six, the number of queries that the kernel takes at a
 * time. */
enum { ATTENTION_ROWS = 24 };

static void embed_rows(worker *w)
{
    const ry_llama_plan *p = w->p;
    const size_t C = p->model->config.dim, n = w->pass->n;
    const renyi_lm_input *in = w->pass->in;
    ry_step step = ry_runner_step(w->run, ry_row_tiles(n));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t r = t * RY_CONVERT_ROWS; r < ry_row_end(t, n); r++)
            if (in[r].embedding)
                memcpy(w->pass->x + r * C, in[r].embedding, C * sizeof(float));
            else
                ry_token_table_row(&p->model->tokens, (size_t)in[r].token, w->pass->x + r * C);
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

/* Where row r of the pass is in the sequence, for its rotation. */
static size_t position_of(const worker *w, const layer_at *l, size_t r)
{
    const ry_llama_plan *p = w->p;
    if (p->opt.cuts && p->opt.cuts->renumbers) return l->base + r;
    return w->pass->rows ? w->pass->rows[r] : p->position + r;
}

/* Rotates queries and keys by their positions; stores keys and values in the cache. */
static void rotate_and_cache(worker *w, const layer_at *l)
{
    const ry_llama_plan *p = w->p;
    const ry_llama_config *c = &p->model->config;
    const size_t row = ry_llama_row(p, ry_llama_qkv(c)), d = c->head_dim, n = w->pass->n;
    ry_step step = ry_runner_step(w->run, ry_row_tiles(n));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t r = t * RY_CONVERT_ROWS; r < ry_row_end(t, n); r++) {
            const float *angles = p->angles + position_of(w, l, r) * ry_rope_floats(d);
            float *q = p->wide + r * row, *k = q + ry_llama_q(c);
            ry_rope(q, c->n_heads + c->n_kv_heads, d, angles);
            p->kernels.cache_row(&p->caches[l->i], l->base + r, k, k + ry_llama_kv(c));
        }
    ry_step_end(&step);
}

/* h = attention of the rows from `first` on. Tiles are heads of the cache times blocks of rows; the
 * last rows have the most keys and come first. */
static void attend(worker *w, const layer_at *l, size_t first)
{
    const ry_llama_plan *p = w->p;
    const ry_llama_config *c = &p->model->config;
    const size_t rows = w->pass->n - first, G = c->n_kv_heads;
    const size_t blocks = (rows + ATTENTION_ROWS - 1) / ATTENTION_ROWS;
    ry_cached at = {.cache = &p->caches[l->i], .group = c->n_heads / G};
    at.q_row = ry_llama_row(p, ry_llama_qkv(c));
    at.out_row = ry_llama_row(p, ry_llama_q(c));
    ry_step step = ry_runner_step(w->run, G * blocks);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t begin = (blocks - 1 - t / G) * ATTENTION_ROWS, left = rows - begin;
        at.cache_head = t % G;
        const size_t column = at.cache_head * at.group * c->head_dim;
        at.n_rows = left < ATTENTION_ROWS ? left : ATTENTION_ROWS;
        at.first = l->base + first + begin;
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

/* Queries, keys and values of all rows; keys and values go to the cache. */
static void begin_layer(worker *w, const layer_at *l)
{
    ry_llama_plan *p = w->p;
    const ry_llama_pass *pass = w->pass;
    const ry_llama_ops *ops = &p->ops[pass->n == 1 ? RY_LLAMA_ONE : RY_LLAMA_MANY][l->i];
    norm_linear(w, ops->qkv, pass->n, pass->x, p->model->layers[l->i].norm1, p->wide);
    rotate_and_cache(w, l);
    if (pass->look && pass->look->layer == l->i) ry_llama_look_at(w->run, p, pass, p->wide);
}

/* Attention, projection and MLP for the rows from `first` on. */
static void finish_layer(worker *w, const layer_at *l, size_t first)
{
    ry_llama_plan *p = w->p;
    const size_t rows = w->pass->n - first;
    const ry_llama_ops *ops = &p->ops[rows == 1 ? RY_LLAMA_ONE : RY_LLAMA_MANY][l->i];
    float *x = w->pass->x + first * p->model->config.dim;
    attend(w, l, first);
    ry_runner_linear(w->run, ops->proj, plain_rows(rows), p->h, x);
    norm_linear(w, ops->gate_up, rows, x, p->model->layers[l->i].norm2, p->wide);
    add_gated_mlp(w, ops->down, rows, x);
}

static void run_stage(worker *w, const ry_llama_stage *stage)
{
    const uint32_t L = w->p->model->config.n_layers;
    layer_at l = {.base = stage->n + w->pass->done};
    for (l.i = stage->first; l.i < stage->end; l.i++) {
        begin_layer(w, &l);
        if (w->pass->only_looks) return;
        if (l.i + 1 < L) finish_layer(w, &l, 0);
    }
}

/* After the last layer only the last row is read, and only for logits; the other rows contribute
 * keys and values. */
static void run_thread(ry_runner *run, void *user)
{
    worker w = *(const worker *)user;
    w.run = run;
    ry_llama_plan *p = w.p;
    const ry_llama *m = p->model;
    const ry_llama_pass *pass = w.pass;
    const ry_llama_stage *last = &p->stages[p->n_stages - 1];
    const layer_at l = {m->config.n_layers - 1, last->n + pass->done};

    if (pass->in) embed_rows(&w);
    for (uint32_t s = pass->first_stage; s < pass->end_stage; s++) run_stage(&w, &p->stages[s]);
    if (!pass->logits) return;
    finish_layer(&w, &l, pass->n - 1);
    norm_linear(&w, p->head, 1, pass->x + (pass->n - 1) * m->config.dim, m->norm, pass->logits);
}

/* ---- passes ---------------------------------------------------------------------------------- */

void ry_llama_run_pass(ry_llama_plan *p, const ry_llama_pass *pass)
{
    worker w = {.p = p, .pass = pass};
    ry_team_run(&p->team, run_thread, &w);
}

void ry_llama_forward(ry_llama_plan *p, const renyi_lm_input *in, uint32_t n, float *logits)
{
    const ry_llama_pass pass = {
        .in = in, .x = p->x, .n = n, .end_stage = p->n_stages, .logits = logits};
    ry_llama_run_pass(p, &pass);
    for (uint32_t s = 0; s < p->n_stages; s++) {
        ry_llama_stage *stage = &p->stages[s];
        for (uint32_t r = 0; stage->rows && r < n; r++) stage->rows[stage->n + r] = p->position + r;
        stage->n += n;
    }
    p->position += n;
}

void ry_llama_rewind(ry_llama_plan *p, uint32_t position)
{
    for (uint32_t s = 0; s < p->n_stages; s++) {
        ry_llama_stage *stage = &p->stages[s];
        if (!stage->rows) stage->n = position;
        while (stage->rows && stage->n && stage->rows[stage->n - 1] >= position) stage->n--;
    }
    p->position = position;
}
