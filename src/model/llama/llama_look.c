/* llama_look.c - what a cut sees of a layer: Ln norms of the columns of visual rows in the
 * attention averaged over the heads, and sizes of keys. Only the attention of one pass is in memory
 * at a time. A column adds up its rows in their order, so the bits do not depend on passes or
 * threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llama/llama_plan.h"

#include <math.h>

enum { LOOK_ROWS = 24, LOOK_COLUMNS = 64 }; /* of a tile */

/* Rows of the pass that count; the first one is *begin. */
static size_t rows_that_count(const ry_llama_pass *pass, size_t *begin)
{
    const ry_llama_look *look = pass->look;
    *begin = look->first_row > look->done ? look->first_row - look->done : 0;
    return *begin < pass->n ? pass->n - *begin : 0;
}

/* ---- steps of a pass ------------------------------------------------------------------------- */

static void measure_keys(ry_runner *run, ry_llama_plan *p, const ry_llama_pass *pass,
                         const float *queries)
{
    const ry_llama_config *c = &p->model->config;
    const size_t row = ry_llama_row(p, ry_llama_qkv(c)), kv = ry_llama_kv(c);
    ry_step step = ry_runner_step(run, ry_row_tiles(pass->n));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t r = t * RY_CONVERT_ROWS; r < ry_row_end(t, pass->n); r++) {
            const float *k = queries + r * row + ry_llama_q(c);
            double size = 0.0;
            for (size_t i = 0; i < kv; i++) size += fabs((double)k[i]);
            p->sums.key_sizes[pass->look->done + r] = (float)size;
        }
    ry_step_end(&step);
}

/* mean [count, n_visual] of the rows from `begin` on */
static void average_heads(ry_runner *run, ry_llama_plan *p, const ry_llama_pass *pass,
                          const float *queries, size_t begin, size_t count)
{
    const ry_llama_config *c = &p->model->config;
    const ry_llama_look *look = pass->look;
    const size_t base = ry_llama_stage_of(p, look->layer)->n;
    ry_cached_look at = {.cache = &p->caches[look->layer],
                         .group = c->n_heads / c->n_kv_heads,
                         .q_row = ry_llama_row(p, ry_llama_qkv(c)),
                         .column = base + look->first_visual,
                         .n_columns = look->n_visual};
    ry_step step = ry_runner_step(run, (count + LOOK_ROWS - 1) / LOOK_ROWS);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t first = t * LOOK_ROWS, left = count - first;
        at.n_rows = left < LOOK_ROWS ? left : LOOK_ROWS;
        at.first = base + look->done + begin + first;
        at.q = queries + (begin + first) * at.q_row;
        at.mean = p->sums.mean + first * at.n_columns;
        p->kernels.cached_look(&at, p->attention + run->thread * p->attention_each);
    }
    ry_step_end(&step);
}

/* Orders whose powers of an attention weight are far from the smallest double. */
static int is_small(double order) { return order <= 4.0; }

/* Of large orders the sum is that of (a / top)^n. */
static void add_entry(double *sum, double *top, double a, double order)
{
    if (order == 1.0) {
        *sum += a;
    } else if (order == 2.0) {
        *sum += a * a;
    } else if (is_small(order)) {
        *sum += pow(a, order);
    } else if (a > *top || isnan(a)) {
        *sum = isinf(order) ? 1.0 : *sum * pow(*top / a, order) + 1.0;
        *top = a;
    } else if (a > 0.0 && !isinf(order)) {
        *sum += pow(a / *top, order);
    }
}

/* The `count` rows from `first` of the feed on. */
static void add_columns(ry_runner *run, ry_llama_plan *p, const ry_llama_look *look, size_t first,
                        size_t count)
{
    const size_t V = look->n_visual;
    const uint8_t *raters = look->raters ? look->raters + (first - look->first_row) : NULL;
    const double order = look->cut->order;
    ry_step step = ry_runner_step(run, (V + LOOK_COLUMNS - 1) / LOOK_COLUMNS);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t end = (t + 1) * LOOK_COLUMNS < V ? (t + 1) * LOOK_COLUMNS : V;
        for (size_t r = 0; r < count; r++) {
            if (raters && !raters[r]) continue;
            for (size_t j = t * LOOK_COLUMNS; j < end; j++)
                add_entry(&p->sums.sum[j], &p->sums.top[j], (double)p->sums.mean[r * V + j], order);
        }
    }
    ry_step_end(&step);
}

void ry_llama_look_at(ry_runner *run, ry_llama_plan *p, const ry_llama_pass *pass,
                      const float *queries)
{
    size_t begin;
    const ry_llama_look *look = pass->look;
    const size_t count = rows_that_count(pass, &begin);
    if (look->cut->key_sizes) measure_keys(run, p, pass, queries);
    if (look->cut->queries == RY_QUERIES_NONE || !count) return;
    average_heads(run, p, pass, queries, begin, count);
    add_columns(run, p, look, look->done + begin, count);
}

/* ---- a look ---------------------------------------------------------------------------------- */

void ry_llama_look_begin(ry_llama_plan *p, const ry_llama_look *look)
{
    for (uint32_t j = 0; j < look->n_visual; j++) p->sums.sum[j] = p->sums.top[j] = 0.0;
}

void ry_llama_look_end(ry_llama_plan *p, const ry_llama_look *look)
{
    const double n = look->cut->order;
    for (uint32_t j = 0; j < look->n_visual; j++) {
        const double sum = p->sums.sum[j], scale = is_small(n) ? 1.0 : p->sums.top[j];
        const double root = n == 1.0 || isinf(n) ? sum : n == 2.0 ? sqrt(sum) : pow(sum, 1.0 / n);
        p->sums.score[j] = (float)(scale * root);
    }
}
