/* visual_plan.c - makes and runs the plan of the visual side of a LLaVA: the tower, the attention
 * of the block after it, the projector.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llava/visual_plan.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"

/* Steps of attention: LayerNorm, product, attention, scores. Of projecting: two products, each with
 * a conversion (test_runner.c checks that no pass needs more). Of a rule behind the tower: the
 * relevance of the patches and five phases. */
enum { STEPS = 8 };

/* ---- plan ---------------------------------------------------------------------------------- */

/* Bytes of the converted rows of any product; N: tokens of the attention, or 0. */
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

/* The order and the sizes of all buffers. */
static void lay_out(ry_arena *a, ry_visual_plan *p, int look)
{
    const ry_visual *v = p->visual;
    const size_t C = v->config.tower.dim, R = p->max_rows, rows = p->kernels.attention_rows;
    const size_t N = look ? (size_t)v->tower.n_patches + v->config.tower.n_prefix : 0;
    const ry_column_spec norm = {.kind = RY_COLUMN_NORM, .order = 4};

    p->class_token = RY_TAKE(a, C, float);
    p->h = RY_TAKE(a, look ? N * ry_linear_row(v->qk, C) : 0, float);
    p->qk_rows = RY_TAKE(a, look ? N * ry_visual_qk_row(p) : 0, float);
    p->team.low = RY_TAKE(a, low_bytes(p, look ? N : 0), uint8_t);
    p->class_row = RY_TAKE(a, N, float);
    p->columns = RY_TAKE(a, N, float);
    p->column_parts =
        RY_TAKE(a, ry_attention_blocks(N, rows) * ry_column_sets(&norm, 1) * N, double);
    p->attention_each = look ? (ry_attention_scratch(N, C, rows) + 15) / 16 * 16 : 0;
    p->attention = RY_TAKE(a, p->team.n_threads * p->attention_each, float);
    p->features = RY_TAKE(a, R * C, float);
    p->mid = RY_TAKE(a, R * ry_linear_row(v->project[1], v->config.mid_dim), float);
    p->rows = RY_TAKE(a, R * v->config.lm_dim, float);
    p->team.tickets = RY_TAKE(a, p->team.n_tickets, ry_ticket);
}

static renyi_status take_arena(ry_visual_plan *p, int look, const renyi_allocator *al,
                               renyi_error *err)
{
    ry_arena measure = {0};
    lay_out(&measure, p, look);
    if (measure.overflow)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%zu visual tokens do not fit in memory",
                       p->max_rows);
    p->arena_bytes = measure.used;
    p->arena = ry_calloc(al, measure.used, 1); /* products may read rows that nothing fills */
    if (!p->arena) return ry_fail_nomem(err, measure.used);
    ry_arena bind = {p->arena, 0, measure.used, 0};
    lay_out(&bind, p, look);
    return RENYI_OK;
}

static ry_rows packed(size_t row, size_t count) { return (ry_rows){row, row * count}; }

static renyi_status bind_products(ry_visual_plan *p, int look, const renyi_allocator *al,
                                  renyi_error *err)
{
    const ry_visual *v = p->visual;
    const size_t C = v->config.tower.dim, R = p->max_rows;
    const size_t N = (size_t)v->tower.n_patches + v->config.tower.n_prefix;
    const size_t mid = ry_linear_row(v->project[1], v->config.mid_dim);
    const unsigned t = p->team.n_threads;
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
    p->team.n_threads = opt->n_threads;
    p->team.n_tickets = STEPS;
    p->max_rows = (size_t)visual->tower.n_patches + 1;
    if (opt->max_rows > p->max_rows) p->max_rows = opt->max_rows;
    ry_kernels_init(&p->kernels, opt->level);
    renyi_status st = ry_vit_plan_new(&p->tower, &visual->tower, &tower, al, err);
    if (!st) st = take_arena(p, opt->look, al, err);
    if (!st) st = bind_products(p, opt->look, al, err);
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

/* ---- the tower ----------------------------------------------------------------------------- */

/* Keeps a pointer to the stream, which is valid until the next run. */
static void keep_last_block(void *user, uint32_t block, const float *x, uint32_t n_tokens)
{
    ry_visual_plan *p = user;
    if (block + 1 != p->visual->config.tower.n_blocks) return;
    p->x = x;
    p->n_tokens = n_tokens;
}

renyi_status ry_visual_tower(ry_visual_plan *p, const ry_vit_input *in)
{
    ry_vit_input mine = *in;
    mine.tap = keep_last_block;
    mine.tap_user = p;
    p->n_tokens = 0;
    const renyi_status st = ry_vit_forward(p->tower, &mine, p->class_token);
    if (st) return st;
    p->work.tower_macs += p->tower->last_macs;
    return RENYI_OK;
}

/* ---- after the tower ----------------------------------------------------------------------- */

typedef struct job {
    ry_visual_plan *p;
    const ry_column_spec *columns; /* for attention; NULL = only the class row */
    size_t n;                      /* rows to project; 0 = attention */
} job;

/* qk_rows = queries and keys of LayerNorm of the features. */
static void compute_queries_and_keys(ry_runner *r, const ry_visual_plan *p, size_t rows)
{
    const ry_visual *v = p->visual;
    const size_t C = v->config.tower.dim;
    const ry_extent run = {1, rows};
    const ry_norm norm = {&p->kernels, v->norm_w, v->norm_b, C, (float)v->config.tower.norm_eps};
    ry_runner_norm(r, &norm, run, p->x, p->h, ry_linear_row(v->qk, C), p->qk);
    ry_runner_product(r, p->qk, run, p->h, p->qk_rows);
}

static void attend(ry_runner *r, const job *j)
{
    static const uint32_t first_row[] = {0};
    ry_visual_plan *p = j->p;
    const size_t N = p->n_tokens;
    ry_attention at = {.n_tokens = N, .n_heads = 1, .head = p->visual->config.tower.dim};
    at.qkv = p->qk_rows;
    at.qkv_row = ry_visual_qk_row(p);
    at.class_row = p->class_row;
    if (j->columns) {
        at.columns = *j->columns;
        at.column_parts = p->column_parts;
    } else {
        at.rows = first_row;
        at.n_rows = 1;
    }
    compute_queries_and_keys(r, p, N);
    const size_t blocks = j->columns ? ry_attention_blocks(N, p->kernels.attention_rows) : 1;
    ry_step step = ry_runner_step(r, blocks);
    for (size_t t; ry_step_next(&step, &t);)
        p->kernels.attention(&at, t, p->attention + r->thread * p->attention_each);
    ry_step_end(&step);
    if (!j->columns) return;
    step = ry_runner_step(r, 1);
    for (size_t t; ry_step_next(&step, &t);) ry_attention_scores(p->columns, &at, blocks);
    ry_step_end(&step);
}

static void run_thread(ry_runner *r, void *user)
{
    const job *j = user;
    const ry_visual_plan *p = j->p;
    const ry_extent run = {1, j->n};
    if (j->n) {
        ry_runner_linear(r, p->project[0], run, p->features, p->mid);
        ry_runner_linear(r, p->project[1], run, p->mid, p->rows);
    } else {
        attend(r, j);
    }
}

void ry_visual_look(ry_visual_plan *p, const ry_column_spec *columns)
{
    job j = {p, columns, 0};
    const double C = p->visual->config.tower.dim, N = p->n_tokens;
    const double begin = ry_clock();
    p->work.tower_macs += N * C * (double)ry_linear_out(p->visual->qk) + (columns ? N : 1) * N * C;
    ry_team_run(&p->team, run_thread, &j);
    p->work.choice_seconds += ry_clock() - begin;
}

void ry_visual_project(ry_visual_plan *p, size_t n)
{
    const ry_visual_config *c = &p->visual->config;
    job j = {p, NULL, n};
    p->work.project_macs += (double)n * c->mid_dim * ((double)c->tower.dim + c->lm_dim);
    if (n) ry_team_run(&p->team, run_thread, &j);
}
