/* runner.h - runs a pass (ViT, text tower, Llama, training) on several threads.
 *
 * A pass is a list of steps. Every thread executes the same list and takes tiles of each step
 * (base/steps.h); which thread computes a tile does not change its bits. ry_runner_step begins the
 * next step; the other functions are steps that all passes need: products and norms of rows.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RUNNER_H
#define RY_RUNNER_H

#include "base/steps.h"
#include "kernels/kernels.h"
#include "kernels/linear/linear.h"

/* What the threads of a pass share; part of a plan. */
typedef struct ry_team {
    unsigned n_threads;
    ry_ticket *tickets; /* [n_tickets] one per step */
    size_t n_tickets;   /* at least 1; with fewer than n_steps the threads wait for each other each
                           time all are used: correct, but slower */
    size_t n_steps;     /* of the longest pass so far */
    void *low;          /* the input rows of a product in fewer bits, if it does not read floats */
} ry_team;

/* One thread of a team. */
typedef struct ry_runner {
    ry_team *team;
    unsigned thread;
    size_t next;    /* ticket of the next step */
    size_t n_steps; /* begun before ticket 0 was last used */
} ry_runner;

/* Calls work(r, user) on every thread of the team, with all tickets reset. */
void ry_team_run(ry_team *team, void (*work)(ry_runner *r, void *user), void *user);

/* Waits until all threads have finished the previous step, then resets the tickets. */
void ry_runner_rewind(ry_runner *r);

/* Begins the next step, of so many tiles. */
static inline ry_step ry_runner_step(ry_runner *r, size_t tiles)
{
    if (r->next == r->team->n_tickets) ry_runner_rewind(r);
    return (ry_step){&r->team->tickets[r->next++], tiles, 0};
}

/* Steps that go row by row have tiles of RY_CONVERT_ROWS rows: tile t begins at row
 * t * RY_CONVERT_ROWS and ends before row ry_row_end. */
static inline size_t ry_row_tiles(size_t rows)
{
    return (rows + RY_CONVERT_ROWS - 1) / RY_CONVERT_ROWS;
}

static inline size_t ry_row_end(size_t t, size_t rows)
{
    return (t + 1) * RY_CONVERT_ROWS < rows ? (t + 1) * RY_CONVERT_ROWS : rows;
}

/* y = op of the rows of x. If the op does not read floats, a step before converts them. */
void ry_runner_linear(ry_runner *r, const ry_linear_op *op, ry_extent run, const float *x,
                      float *y);

/* The same in two parts, for steps that make x row by row: call ry_runner_convert at the end of
 * tile t, while its rows are in the cache, then ry_runner_product. */
void ry_runner_convert(const ry_runner *r, const ry_linear_op *op, size_t t, ry_extent run,
                       const float *x);
void ry_runner_product(ry_runner *r, const ry_linear_op *op, ry_extent run, const float *x,
                       float *y);

/* LayerNorm, or RMSNorm if bias is NULL. */
typedef struct ry_norm {
    const ry_kernels *kernels;
    const float *weight, *bias; /* [dim] */
    size_t dim;
    float eps;
} ry_norm;

/* h [rows, h_row] = norm of x [rows, dim]; h may be x. `next` is the product that reads h, whose
 * conversion is then done too; NULL = none. */
void ry_runner_norm(ry_runner *r, const ry_norm *n, ry_extent run, const float *x, float *h,
                    size_t h_row, const ry_linear_op *next);

#endif
