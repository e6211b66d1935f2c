/* runner.h - one thread's walk through the steps of a pass over rows: steps that go row by row, and
 * products. All threads walk alike and share the tiles of each step (base/steps.h).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RUNNER_H
#define RY_RUNNER_H

#include "base/steps.h"
#include "kernels/linear/linear.h"

typedef struct ry_runner {
    ry_ticket *tickets; /* [n_tickets] one a step, reset before the pass */
    size_t n_tickets;
    size_t next; /* step that comes next */
    unsigned thread;
    void *low; /* rows in fewer bits, for products that do not take floats */
} ry_runner;

/* The next step, of so many tiles. */
ry_step ry_runner_step(ry_runner *r, size_t tiles);

/* Steps that go row by row have tiles of RY_CONVERT_ROWS rows: tile t from row t * RY_CONVERT_ROWS
 * to before ry_row_end. */
static inline size_t ry_row_tiles(size_t rows)
{
    return (rows + RY_CONVERT_ROWS - 1) / RY_CONVERT_ROWS;
}

static inline size_t ry_row_end(size_t t, size_t rows)
{
    return (t + 1) * RY_CONVERT_ROWS < rows ? (t + 1) * RY_CONVERT_ROWS : rows;
}

/* y = op of `rows` rows of x. If the op does not read floats, they are converted in a step before.
 */
void ry_runner_linear(ry_runner *r, const ry_linear_op *op, size_t rows, const float *x, float *y);

/* The same where a step row by row made x: ry_runner_convert at the end of its tile t, while the
 * rows are warm, then ry_runner_product. */
void ry_runner_convert(const ry_runner *r, const ry_linear_op *op, size_t t, size_t rows,
                       const float *x);
void ry_runner_product(ry_runner *r, const ry_linear_op *op, size_t rows, const float *x, float *y);

#endif
