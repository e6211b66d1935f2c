/* linear_steps.h - one thread of a run that is made of matrix products and steps between them: what
 * every forward pass of one list of rows has in common (base/steps.h).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MODEL_LINEAR_STEPS_H
#define RY_MODEL_LINEAR_STEPS_H

#include "base/steps.h"
#include "kernels/linear.h"

typedef struct ry_hand {
    ry_ticket *tickets; /* of the run, reset before it */
    size_t next;        /* ticket of the next step; the same in all threads */
    unsigned thread;
    void *low; /* rows in fewer bits, for products that do not take floats */
} ry_hand;

static inline ry_step ry_hand_begin(ry_hand *h, size_t tiles)
{
    return (ry_step){&h->tickets[h->next++], tiles, 0};
}

/* y = op of the first `rows` rows of x, which are there in the form that it reads */
static inline void ry_hand_product(ry_hand *h, const ry_linear_op *op, size_t rows, const void *x,
                                   float *y)
{
    const ry_extent run = {1, rows};
    ry_step step = ry_hand_begin(h, ry_linear_op_tiles(op, run));
    for (size_t t; ry_step_next(&step, &t);) ry_linear_op_tile(op, t, run, h->thread, x, y);
    ry_step_end(&step);
}

/* The same of floats, converted first if need be: at most two steps. */
static inline void ry_hand_linear(ry_hand *h, const ry_linear_op *op, size_t rows, const float *x,
                                  float *y)
{
    if (!ry_linear_op_converts(op)) {
        ry_hand_product(h, op, rows, x, y);
        return;
    }
    const ry_extent run = {1, rows};
    ry_step step = ry_hand_begin(h, (rows + RY_CONVERT_ROWS - 1) / RY_CONVERT_ROWS);
    for (size_t t; ry_step_next(&step, &t);) ry_linear_op_convert(op, t, run, x, h->low);
    ry_step_end(&step);
    ry_hand_product(h, op, rows, h->low, y);
}

#endif
