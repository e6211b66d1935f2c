/* runner.c - starts the threads of a pass and runs the steps that all passes need.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/runner.h"

#include <assert.h>
#include <omp.h>
#include <pthread.h>

/* ---- fork ---------------------------------------------------------------------------------- */

/* A child has only the thread that called fork, but OpenMP's pool of that thread still lists the
 * others, and the next region would wait for them for ever. So the pool is given back before a
 * fork; parent and child make a new one when they need it. */
static void release_threads(void) { (void)omp_pause_resource_all(omp_pause_soft); }

/* When the library is loaded: a flag that says whether it was done would be writable state. Without
 * memory for it, forks stay as they are. */
__attribute__((constructor)) static void prepare_forks(void)
{
    (void)pthread_atfork(release_threads, NULL, NULL);
}

/* ---- teams --------------------------------------------------------------------------------- */

static void reset_tickets(const ry_team *team)
{
    for (size_t i = 0; i < team->n_tickets; i++) ry_ticket_reset(&team->tickets[i]);
}

void ry_team_run(ry_team *team, void (*work)(ry_runner *r, void *user), void *user)
{
    assert(team->n_tickets > 0);
    reset_tickets(team);
#pragma omp parallel num_threads(team->n_threads)
    {
        ry_runner r = {.team = team, .thread = (unsigned)omp_get_thread_num()};
        omp_set_num_threads(1); /* a tile never starts threads of its own */
        work(&r, user);
        const size_t n_steps = r.n_steps + r.next;
        if (r.thread == 0 && n_steps > team->n_steps) team->n_steps = n_steps;
    }
}

void ry_runner_rewind(ry_runner *r)
{
#pragma omp barrier
#pragma omp single
    reset_tickets(r->team);
    r->n_steps += r->next;
    r->next = 0;
}

/* ---- products ------------------------------------------------------------------------------ */

void ry_runner_convert(const ry_runner *r, const ry_linear_op *op, size_t t, ry_extent run,
                       const float *x)
{
    if (ry_linear_op_converts(op)) ry_linear_op_convert(op, t, run, x, r->team->low);
}

void ry_runner_product(ry_runner *r, const ry_linear_op *op, ry_extent run, const float *x,
                       float *y)
{
    const void *input = ry_linear_op_converts(op) ? r->team->low : (const void *)x;
    ry_step step = ry_runner_step(r, ry_linear_op_tiles(op, run));
    for (size_t t; ry_step_next(&step, &t);) ry_linear_op_tile(op, t, run, r->thread, input, y);
    ry_step_end(&step);
}

void ry_runner_linear(ry_runner *r, const ry_linear_op *op, ry_extent run, const float *x, float *y)
{
    if (ry_linear_op_converts(op)) {
        ry_step step = ry_runner_step(r, ry_row_tiles(run.n_images * run.rows));
        for (size_t t; ry_step_next(&step, &t);) ry_runner_convert(r, op, t, run, x);
        ry_step_end(&step);
    }
    ry_runner_product(r, op, run, x, y);
}

/* ---- norms --------------------------------------------------------------------------------- */

void ry_runner_norm(ry_runner *r, const ry_norm *n, ry_extent run, const float *x, float *h,
                    size_t h_row, const ry_linear_op *next)
{
    const size_t rows = run.n_images * run.rows, C = n->dim;
    ry_step step = ry_runner_step(r, ry_row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t first = t * RY_CONVERT_ROWS, count = ry_row_end(t, rows) - first;
        float *to = h + first * h_row;
        if (n->bias)
            n->kernels->layernorm(to, h_row, x + first * C, C, count, C, n->weight, n->bias,
                                  n->eps);
        else
            n->kernels->rmsnorm(to, h_row, x + first * C, C, count, C, n->weight, n->eps);
        if (next) ry_runner_convert(r, next, t, run, h);
    }
    ry_step_end(&step);
}
