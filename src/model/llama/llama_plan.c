/* llama_plan.c - makes the plan of a Llama: bound products, arena, cache of keys and values.
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
 * norm and product of gate and up, gating, product of down. Of the ends: tokens, norm, product. Of
 * a look: keys, rows, columns.
 * test_runner.c checks that no pass needs more. */
enum { STEPS_PER_LAYER = 10, STEPS_OF_ENDS = 3, STEPS_OF_LOOK = 3 };

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

/* Rows of a pass that a look reads at most. */
static size_t look_rows(const ry_llama_plan *p)
{
    for (uint32_t i = 0; i < p->opt.cuts->n; i++)
        if (p->opt.cuts->cut[i].queries > RY_QUERIES_LAST) return p->opt.max_rows;
    return 1;
}

/* Buffers that only cuts need. */
static void lay_out_cuts(ry_arena *a, ry_llama_plan *p)
{
    const size_t N = p->opt.max_context;
    p->stream = RY_TAKE(a, N * p->model->config.dim, float);
    p->rows = RY_TAKE(a, N, uint32_t);
    p->kept = RY_TAKE(a, N, uint32_t);
    p->place = RY_TAKE(a, N, uint32_t);
    p->raters = RY_TAKE(a, N, uint8_t);
    p->sums.mean = RY_TAKE(a, look_rows(p) * N, float);
    p->sums.sum = RY_TAKE(a, N, double);
    p->sums.top = RY_TAKE(a, N, double);
    p->sums.score = RY_TAKE(a, N, float);
    p->sums.key_sizes = RY_TAKE(a, N, float);
    for (uint32_t i = 0; i < p->n_stages; i++) {
        uint32_t *rows = RY_TAKE(a, N, uint32_t);
        if (p->stages) p->stages[i].rows = rows;
    }
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
    p->stages = RY_TAKE(a, p->n_stages, ry_llama_stage);
    if (p->opt.cuts) lay_out_cuts(a, p);
}

static void make_stages(ry_llama_plan *p)
{
    const uint32_t L = p->model->config.n_layers;
    for (uint32_t i = 0; i < p->n_stages; i++) {
        p->stages[i].first = i ? p->opt.cuts->cut[i - 1].layer : 0;
        p->stages[i].end = i + 1 < p->n_stages ? p->opt.cuts->cut[i].layer : L;
    }
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
    make_stages(p);
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
    p->team.n_tickets = STEPS_PER_LAYER * (size_t)c->n_layers + STEPS_OF_ENDS + STEPS_OF_LOOK;
    p->n_stages = 1 + (opt->cuts ? opt->cuts->n : 0);
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
