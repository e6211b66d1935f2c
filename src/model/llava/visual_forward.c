/* visual_forward.c - runs a plan: the tower, a look at the block behind it, the projector.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/runner.h"
#include "model/llava/visual_plan.h"

#include <omp.h>

/* ---- the tower ----------------------------------------------------------------------------- */

/* The stream stays as it is until the next run: only where it lies is remembered. */
static void see_block(void *user, uint32_t block, const float *x, uint32_t n_tokens)
{
    ry_visual_plan *p = user;
    if (block + 1 != p->visual->config.tower.n_blocks) return;
    p->x = x;
    p->n_tokens = n_tokens;
}

renyi_status ry_visual_tower(ry_visual_plan *p, const ry_vit_input *in)
{
    ry_vit_input mine = *in;
    mine.tap = see_block;
    mine.tap_user = p;
    p->n_tokens = 0;
    return ry_vit_forward(p->tower, &mine, p->class_token);
}

/* ---- behind it ----------------------------------------------------------------------------- */

typedef struct job {
    ry_visual_plan *p;
    const ry_column_spec *columns; /* of a look; NULL = the class row alone */
    size_t n;                      /* rows to project; 0 = it is a look */
} job;

/* qk_rows = queries and keys of LayerNorm of the features. */
static void ask(ry_runner *r, const ry_visual_plan *p, size_t rows)
{
    const size_t C = p->visual->config.tower.dim, row = ry_linear_row(p->visual->qk, C);
    ry_step step = ry_runner_step(r, ry_row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t first = t * RY_CONVERT_ROWS, count = ry_row_end(t, rows) - first;
        p->kernels.layernorm(p->h + first * row, row, p->x + first * C, C, count, C,
                             p->visual->norm_w, p->visual->norm_b,
                             (float)p->visual->config.tower.norm_eps);
        ry_runner_convert(r, p->qk, t, rows, p->h);
    }
    ry_step_end(&step);
    ry_runner_product(r, p->qk, rows, p->h, p->qk_rows);
}

static void look(ry_runner *r, const job *j)
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
    ask(r, p, N);
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

static void run(const job *j)
{
    ry_visual_plan *p = j->p;
    for (int i = 0; i < RY_VISUAL_TICKETS; i++) ry_ticket_reset(&p->tickets[i]);
#pragma omp parallel num_threads(p->n_threads)
    {
        ry_runner r = {p->tickets, RY_VISUAL_TICKETS, 0, (unsigned)omp_get_thread_num(), p->low};
        omp_set_num_threads(1); /* a tile never spawns threads of its own */
        if (j->n) {
            ry_runner_linear(&r, p->project[0], j->n, p->features, p->mid);
            ry_runner_linear(&r, p->project[1], j->n, p->mid, p->rows);
        } else {
            look(&r, j);
        }
    }
}

void ry_visual_look(ry_visual_plan *p, const ry_column_spec *columns)
{
    const job j = {p, columns, 0};
    run(&j);
}

void ry_visual_project(ry_visual_plan *p, size_t n)
{
    const job j = {p, NULL, n};
    if (n) run(&j);
}
