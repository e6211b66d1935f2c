/* runner.c - see runner.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/runner.h"

#include <assert.h>

ry_step ry_runner_step(ry_runner *r, size_t tiles)
{
    assert(r->next < r->n_tickets);
    return (ry_step){&r->tickets[r->next++], tiles, 0};
}

void ry_runner_convert(const ry_runner *r, const ry_linear_op *op, size_t t, size_t rows,
                       const float *x)
{
    if (ry_linear_op_converts(op)) ry_linear_op_convert(op, t, (ry_extent){1, rows}, x, r->low);
}

void ry_runner_product(ry_runner *r, const ry_linear_op *op, size_t rows, const float *x, float *y)
{
    const ry_extent run = {1, rows};
    const void *input = ry_linear_op_converts(op) ? r->low : (const void *)x;
    ry_step step = ry_runner_step(r, ry_linear_op_tiles(op, run));
    for (size_t t; ry_step_next(&step, &t);) ry_linear_op_tile(op, t, run, r->thread, input, y);
    ry_step_end(&step);
}

void ry_runner_linear(ry_runner *r, const ry_linear_op *op, size_t rows, const float *x, float *y)
{
    if (ry_linear_op_converts(op)) {
        ry_step step = ry_runner_step(r, ry_row_tiles(rows));
        for (size_t t; ry_step_next(&step, &t);) ry_runner_convert(r, op, t, rows, x);
        ry_step_end(&step);
    }
    ry_runner_product(r, op, rows, x, y);
}
