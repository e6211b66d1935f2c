/* text_tower_plan.c - makes a plan: bound products, the arena.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/clip_text/text_tower_plan.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/status.h"

/* Steps of a block: LayerNorm and product twice, attention, conversion and product twice; and those
 * of both ends. */
enum { STEPS_PER_BLOCK = 9, STEPS_OF_ENDS = 6 };

static size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

/* Bytes of the converted rows of any product in the blocks. */
static size_t low_bytes(const ry_text *t, size_t rows)
{
    size_t most = 0;
    for (uint32_t i = 0; i < t->config.n_blocks; i++) {
        const ry_vit_block *b = &t->blocks[i];
        const ry_linear *const linears[] = {b->qkv, b->proj, b->fc1, b->fc2};
        for (int k = 0; k < 4; k++) most = max_size(most, ry_linear_input_bytes(linears[k], rows));
    }
    return most;
}

/* The only place that knows the order and the size of the buffers. */
static void layout(ry_arena *a, ry_text_plan *p)
{
    const ry_text_config *c = &p->text->config;
    const size_t R = p->max_tokens, C = c->dim;

    p->x = RY_TAKE(a, float, R *C);
    p->h = RY_TAKE(a, float, R *ry_text_row(p, C));
    p->wide = RY_TAKE(a, float, R *ry_text_row(p, max_size(3 * C, c->mlp_dim)));
    p->low = RY_TAKE(a, uint8_t, low_bytes(p->text, R));
    p->pooled_x = RY_TAKE(a, float, R *C);
    p->pooled_h = RY_TAKE(a, float, R *ry_text_row(p, C));
    p->embeddings = RY_TAKE(a, float, R * c->embed_dim);
    p->attention_each = ry_causal_scratch(c->context, C / c->n_heads);
    p->attention_each = (p->attention_each + 15) / 16 * 16; /* whole cache lines */
    p->attention = RY_TAKE(a, float, p->n_threads * p->attention_each);
    p->tickets = RY_TAKE(a, ry_ticket, p->n_tickets);
    ry_text_pass_layout(a, &p->pass);
}

static renyi_status take_arena(ry_text_plan *p, const renyi_allocator *al, renyi_error *err)
{
    ry_arena measure = {0};
    layout(&measure, p);
    if (measure.overflow)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%u tokens at a time do not fit in memory",
                       p->max_tokens);
    p->arena_bytes = measure.used;
    p->arena = ry_calloc(al, measure.used, 1); /* products may read rows that no text has filled */
    if (!p->arena) return ry_fail_nomem(err, measure.used);
    ry_arena bind = {p->arena, 0, measure.used, 0};
    layout(&bind, p);
    return RENYI_OK;
}

static renyi_status bind_linear(ry_linear_op **out, const ry_text_plan *p, const ry_linear *l,
                                size_t x_row, size_t y_row, const renyi_allocator *al,
                                renyi_error *err)
{
    const size_t R = p->max_tokens;
    const ry_rows x = {x_row, R * x_row}, y = {y_row, R * y_row};
    return ry_linear_op_new(out, l, R, x, y, p->n_threads, al, err);
}

static renyi_status bind(ry_text_plan *p, const renyi_allocator *al, renyi_error *err)
{
    const ry_text_config *c = &p->text->config;
    const size_t C = c->dim, h = ry_text_row(p, C);
    const size_t qkv = ry_text_row(p, 3 * C), mlp = ry_text_row(p, c->mlp_dim);
    for (uint32_t i = 0; i < c->n_blocks; i++) {
        const ry_vit_block *w = &p->text->blocks[i];
        ry_block_ops *b = &p->ops[i];
        RY_TRY(bind_linear(&b->qkv, p, w->qkv, h, qkv, al, err));
        RY_TRY(bind_linear(&b->proj, p, w->proj, h, C, al, err));
        RY_TRY(bind_linear(&b->fc1, p, w->fc1, h, mlp, al, err));
        RY_TRY(bind_linear(&b->fc2, p, w->fc2, mlp, C, al, err));
    }
    return bind_linear(&p->projection, p, p->text->projection, h, c->embed_dim, al, err);
}

renyi_status ry_text_plan_new(ry_text_plan **out, const ry_text *text,
                              const ry_text_plan_options *opt, const renyi_allocator *al,
                              renyi_error *err)
{
    const uint32_t L = text->config.n_blocks;
    *out = NULL;
    ry_text_plan *p = ry_calloc(al, 1, sizeof *p);
    if (!p) return ry_fail_nomem(err, sizeof *p);
    p->text = text;
    p->max_tokens = opt->max_tokens;
    p->n_threads = opt->n_threads;
    p->n_tickets = STEPS_PER_BLOCK * (size_t)L + STEPS_OF_ENDS;
    p->pass.max_rows = opt->max_tokens;
    p->pass.context = text->config.context;
    ry_kernels_init(&p->kernels, opt->level);
    p->ops = ry_calloc(al, L, sizeof *p->ops);
    renyi_status st = p->ops ? RENYI_OK : ry_fail_nomem(err, L * sizeof *p->ops);
    if (!st) st = take_arena(p, al, err);
    if (!st) st = bind(p, al, err);
    if (st) {
        ry_text_plan_free(p, al);
        return st;
    }
    *out = p;
    return RENYI_OK;
}

void ry_text_plan_free(ry_text_plan *p, const renyi_allocator *al)
{
    if (!p) return;
    for (uint32_t i = 0; p->ops && i < p->text->config.n_blocks; i++) {
        ry_linear_op *const ops[] = {p->ops[i].qkv, p->ops[i].proj, p->ops[i].fc1, p->ops[i].fc2};
        for (int k = 0; k < 4; k++) ry_linear_op_free(ops[k], al);
    }
    ry_linear_op_free(p->projection, al);
    ry_free(al, p->ops);
    ry_free(al, p->arena);
    ry_free(al, p);
}
