/* llama_plan.c - makes the plan of a Llama (bound products, arena, cache of keys and values) and
 * runs passes of new rows: token embedding, layers of cached attention and gated MLP, logits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llama/llama_plan.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"
#include "kernels/rows/rows.h"
#include "model/common/weight_loader.h"

#include <string.h>

/* ---- plan ---------------------------------------------------------------------------------- */

/* Steps of a layer: norm and product of qkv, positions, attention, conversion and product of proj,
 * norm and product of gate and up, gating, product of down. Of the ends: tokens, norm, product.
 * test_runner.c checks that no pass needs more. */
enum { STEPS_PER_LAYER = 10, STEPS_OF_ENDS = 3 };

static size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

/* Bytes of the converted rows of any product. */
static size_t low_bytes(const ry_llama *m, size_t rows)
{
    size_t most = ry_linear_input_bytes(m->head, 1);
    for (uint32_t i = 0; i < m->config.n_layers; i++) {
        const ry_llama_layer *l = &m->layers[i];
        const ry_linear *const linears[] = {l->qkv, l->proj, l->gate_up, l->down};
        for (int k = 0; k < 4; k++) most = max_size(most, ry_linear_input_bytes(linears[k], rows));
    }
    return most;
}

/* The order and the sizes of all buffers. */
static void lay_out(ry_arena *a, ry_llama_plan *p)
{
    const ry_llama_config *c = &p->model->config;
    const size_t R = p->opt.max_rows, C = c->dim, M = c->mlp_dim;

    p->x = RY_TAKE(a, R * C, float);
    p->h = RY_TAKE(a, R * ry_llama_row(p, max_size(C, ry_llama_q(c))), float);
    p->wide = RY_TAKE(a, R * ry_llama_row(p, max_size(ry_llama_qkv(c), 2 * M)), float);
    p->act = RY_TAKE(a, R * ry_llama_row(p, M), float);
    p->team.low = RY_TAKE(a, low_bytes(p->model, R), uint8_t);
    p->angles = RY_TAKE(a, p->opt.max_context * ry_rope_floats(c->head_dim), float);
    p->attention_each = ry_cached_scratch(p->opt.max_context);
    p->attention = RY_TAKE(a, p->opt.n_threads * p->attention_each, float);
    p->caches = RY_TAKE(a, c->n_layers, ry_cache);
    p->team.tickets = RY_TAKE(a, p->team.n_tickets, ry_ticket);
}

static renyi_status take_arena(ry_llama_plan *p, const renyi_allocator *al, renyi_error *err)
{
    const ry_llama_config *c = &p->model->config;
    ry_arena measure = {0};
    lay_out(&measure, p);
    if (measure.overflow)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%u rows at a time do not fit in memory",
                       p->opt.max_rows);
    p->arena_bytes = measure.used;
    p->arena = ry_calloc(al, measure.used, 1); /* products may read rows that nothing fills */
    if (!p->arena) return ry_fail_nomem(err, measure.used);
    ry_arena bind = {p->arena, 0, measure.used, 0};
    lay_out(&bind, p);
    for (uint32_t i = 0; i < p->opt.max_context; i++)
        ry_rope_angles(p->angles + i * ry_rope_floats(c->head_dim), i, c->head_dim, c->rope_theta);
    return RENYI_OK;
}

/* Keys and values, layer by layer. Not zeroed: rows are written before they are read. */
static renyi_status take_cache(ry_llama_plan *p, const renyi_allocator *al, renyi_error *err)
{
    const ry_llama_config *c = &p->model->config;
    const size_t blocks = (p->opt.max_context + RY_CACHE_BLOCK - 1) / RY_CACHE_BLOCK;
    ry_cache one = {.n_heads = c->n_kv_heads, .head = c->head_dim, .half = p->opt.half};
    one.context = blocks * RY_CACHE_BLOCK;
    const size_t half = ry_cache_elements(&one) * (one.half ? sizeof(uint16_t) : sizeof(float));
    if (!ry_mul_size(2 * half, c->n_layers, &p->cache_bytes))
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "a context of %u rows does not fit in memory",
                       p->opt.max_context);
    p->cache = ry_alloc(al, p->cache_bytes, 1);
    if (!p->cache) return ry_fail_nomem(err, p->cache_bytes);
    for (uint32_t i = 0; i < c->n_layers; i++) {
        p->caches[i] = one;
        p->caches[i].k = (char *)p->cache + 2 * i * half;
        p->caches[i].v = (char *)p->cache + (2 * i + 1) * half;
    }
    return RENYI_OK;
}

static renyi_status bind_linear(ry_linear_op **out, const ry_llama_plan *p, const ry_linear *l,
                                size_t rows, size_t y_row, const renyi_allocator *al,
                                renyi_error *err)
{
    const size_t x_row = ry_llama_row(p, ry_linear_in(l));
    const ry_rows x = {x_row, rows * x_row}, y = {y_row, rows * y_row};
    return ry_linear_op_new(out, l, rows, x, y, p->opt.n_threads, al, err);
}

static renyi_status bind_layers(ry_llama_plan *p, ry_llama_rows kind, const renyi_allocator *al,
                                renyi_error *err)
{
    const ry_llama_config *c = &p->model->config;
    const size_t C = c->dim, R = kind == RY_LLAMA_ONE ? 1 : p->opt.max_rows;
    const size_t qkv = ry_llama_row(p, ry_llama_qkv(c)), gate_up = ry_llama_row(p, 2 * c->mlp_dim);
    ry_llama_ops *ops = p->ops[kind] = ry_calloc(al, c->n_layers, sizeof *ops);
    if (!ops) return ry_fail_nomem(err, c->n_layers * sizeof *ops);
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const ry_llama_layer *l = &p->model->layers[i];
        RY_TRY(bind_linear(&ops[i].qkv, p, l->qkv, R, qkv, al, err));
        RY_TRY(bind_linear(&ops[i].proj, p, l->proj, R, C, al, err));
        RY_TRY(bind_linear(&ops[i].gate_up, p, l->gate_up, R, gate_up, al, err));
        RY_TRY(bind_linear(&ops[i].down, p, l->down, R, C, al, err));
    }
    return RENYI_OK;
}

renyi_status ry_llama_plan_new(ry_llama_plan **out, const ry_llama *model,
                               const ry_llama_plan_options *opt, const renyi_allocator *al,
                               renyi_error *err)
{
    const ry_llama_config *c = &model->config;
    *out = NULL;
    ry_llama_plan *p = ry_calloc(al, 1, sizeof *p);
    if (!p) return ry_fail_nomem(err, sizeof *p);
    p->model = model;
    p->opt = *opt;
    p->team.n_threads = opt->n_threads;
    p->team.n_tickets = STEPS_PER_LAYER * (size_t)c->n_layers + STEPS_OF_ENDS;
    ry_kernels_init(&p->kernels, opt->level);
    renyi_status st = take_arena(p, al, err);
    if (!st) st = take_cache(p, al, err);
    if (!st) st = bind_layers(p, RY_LLAMA_ONE, al, err);
    if (!st) st = bind_layers(p, RY_LLAMA_MANY, al, err);
    if (!st) st = bind_linear(&p->head, p, model->head, 1, c->vocab, al, err);
    if (st) {
        ry_llama_plan_free(p, al);
        return st;
    }
    *out = p;
    return RENYI_OK;
}

void ry_llama_plan_free(ry_llama_plan *p, const renyi_allocator *al)
{
    if (!p) return;
    for (int kind = 0; kind < RY_LLAMA_N; kind++) {
        for (uint32_t i = 0; p->ops[kind] && i < p->model->config.n_layers; i++) {
            const ry_llama_ops *o = &p->ops[kind][i];
            ry_linear_op *const ops[] = {o->qkv, o->proj, o->gate_up, o->down};
            for (int k = 0; k < 4; k++) ry_linear_op_free(ops[k], al);
        }
        ry_free(al, p->ops[kind]);
    }
    ry_linear_op_free(p->head, al);
    ry_free(al, p->cache);
    ry_free(al, p->arena);
    ry_free(al, p);
}

/* ---- passes -------------------------------------------------------------------------------- */

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
