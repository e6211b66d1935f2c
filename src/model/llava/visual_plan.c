/* visual_plan.c - makes a plan: bound products, the arena.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llava/visual_plan.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/status.h"

/* Bytes of the converted rows of any product; N tokens are looked at, or none. */
static size_t low_bytes(const ry_visual_plan *p, size_t N)
{
    const ry_visual *v = p->visual;
    size_t most = N ? ry_linear_input_bytes(v->qk, N) : 0;
    for (int i = 0; i < 2; i++) {
        const size_t mine = ry_linear_input_bytes(v->project[i], p->max_rows);
        most = mine > most ? mine : most;
    }
    return most;
}

/* The only place that knows the order and the size of the buffers. */
static void layout(ry_arena *a, ry_visual_plan *p, int look)
{
    const ry_visual *v = p->visual;
    const size_t C = v->config.tower.dim, R = p->max_rows, rows = p->kernels.attention_rows;
    const size_t N = look ? (size_t)v->tower.n_patches + v->config.tower.n_prefix : 0;
    const ry_column_spec norm = {.kind = RY_COLUMN_NORM, .order = 4};

    p->class_token = RY_TAKE(a, float, C);
    p->h = RY_TAKE(a, float, look ? N *ry_linear_row(v->qk, C) : 0);
    p->qk_rows = RY_TAKE(a, float, look ? N *ry_visual_qk_row(p) : 0);
    p->low = RY_TAKE(a, uint8_t, low_bytes(p, look ? N : 0));
    p->class_row = RY_TAKE(a, float, N);
    p->columns = RY_TAKE(a, float, N);
    p->column_parts =
        RY_TAKE(a, double, ry_attention_blocks(N, rows) * ry_column_sets(&norm, 1) * N);
    p->attention_each = look ? (ry_attention_scratch(N, C, rows) + 15) / 16 * 16 : 0;
    p->attention = RY_TAKE(a, float, p->n_threads * p->attention_each);
    p->features = RY_TAKE(a, float, R *C);
    p->mid = RY_TAKE(a, float, R *ry_linear_row(v->project[1], v->config.mid_dim));
    p->rows = RY_TAKE(a, float, R * v->config.lm_dim);
    p->tickets = RY_TAKE(a, ry_ticket, RY_VISUAL_TICKETS);
}

static renyi_status take_arena(ry_visual_plan *p, int look, const renyi_allocator *al,
                               renyi_error *err)
{
    ry_arena measure = {0};
    layout(&measure, p, look);
    if (measure.overflow)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%zu visual tokens do not fit in memory",
                       p->max_rows);
    p->arena_bytes = measure.used;
    p->arena = ry_calloc(al, measure.used, 1); /* products may read rows that nobody has filled */
    if (!p->arena) return ry_fail_nomem(err, measure.used);
    ry_arena bind = {p->arena, 0, measure.used, 0};
    layout(&bind, p, look);
    return RENYI_OK;
}

static ry_rows packed(size_t row, size_t count) { return (ry_rows){row, row * count}; }

static renyi_status bind(ry_visual_plan *p, int look, const renyi_allocator *al, renyi_error *err)
{
    const ry_visual *v = p->visual;
    const size_t C = v->config.tower.dim, R = p->max_rows;
    const size_t N = (size_t)v->tower.n_patches + v->config.tower.n_prefix;
    const size_t mid = ry_linear_row(v->project[1], v->config.mid_dim);
    const unsigned t = p->n_threads;
    if (look)
        RY_TRY(ry_linear_op_new(&p->qk, v->qk, N, packed(ry_linear_row(v->qk, C), N),
                                packed(ry_visual_qk_row(p), N), t, al, err));
    RY_TRY(ry_linear_op_new(&p->project[0], v->project[0], R, packed(C, R), packed(mid, R), t, al,
                            err));
    return ry_linear_op_new(&p->project[1], v->project[1], R, packed(mid, R),
                            packed(v->config.lm_dim, R), t, al, err);
}

renyi_status ry_visual_plan_new(ry_visual_plan **out, const ry_visual *visual,
                                const ry_visual_plan_options *opt, const renyi_allocator *al,
                                renyi_error *err)
{
    const ry_vit_plan_options tower = {.level = opt->level,
                                       .hook = opt->hook,
                                       .max_batch = 1,
                                       .n_threads = opt->n_threads,
                                       .all_rows = 1,
                                       .output = RENYI_OUTPUT_EMBEDDING};
    *out = NULL;
    ry_visual_plan *p = ry_calloc(al, 1, sizeof *p);
    if (!p) return ry_fail_nomem(err, sizeof *p);
    p->visual = visual;
    p->n_threads = opt->n_threads;
    p->max_rows = (size_t)visual->tower.n_patches + 1;
    ry_kernels_init(&p->kernels, opt->level);
    renyi_status st = ry_vit_plan_new(&p->tower, &visual->tower, &tower, al, err);
    if (!st) st = take_arena(p, opt->look, al, err);
    if (!st) st = bind(p, opt->look, al, err);
    if (st) {
        ry_visual_plan_free(p, al);
        return st;
    }
    *out = p;
    return RENYI_OK;
}

void ry_visual_plan_free(ry_visual_plan *p, const renyi_allocator *al)
{
    if (!p) return;
    ry_vit_plan_free(p->tower, al);
    ry_linear_op_free(p->qk, al);
    ry_linear_op_free(p->project[0], al);
    ry_linear_op_free(p->project[1], al);
    ry_free(al, p->arena);
    ry_free(al, p);
}

size_t ry_visual_plan_bytes(const ry_visual_plan *p)
{
    return p->arena_bytes + p->tower->arena_bytes;
}
