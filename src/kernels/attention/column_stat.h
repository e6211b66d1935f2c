/* column_stat.h - what a block of attention sums up of a column, as all levels and the scores made
 * of it agree on. For a block's rows i with weights w_i and probabilities a_i, per set:
 *   NORM, POWER  the statistic of the order below
 *   ENTROPY      POWER's for n = 1, which is N times the mass; then the statistic of the order
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_COLUMN_STAT_H
#define RY_COLUMN_STAT_H

#include "kernels/attention/attention.h"

#include <math.h>

typedef enum ry_column_stat {
    RY_STAT_POWER, /* n = 1, 2, 3, 4: sum w (N a)^n; N keeps the powers within a float's range */
    RY_STAT_TOP,   /* n = infinity: the largest a with w > 0 */
    RY_STAT_NORM,  /* any other n: (sum w a^n)^(1/n), a number of the size of a for every n */
    RY_STAT_LOG    /* Shannon's entropy: sum w a log a */
} ry_column_stat;

static inline ry_column_stat ry_column_stat_of(const ry_column_spec *spec)
{
    const double n = spec->order;
    if (spec->kind == RY_COLUMN_ENTROPY && n == 1.0) return RY_STAT_LOG;
    if (isinf(n)) return RY_STAT_TOP;
    return n == 1.0 || n == 2.0 || n == 3.0 || n == 4.0 ? RY_STAT_POWER : RY_STAT_NORM;
}

/* The queries asked for, and the token that is query r of them. */
static inline size_t ry_query_count(const ry_attention *at)
{
    return at->rows ? at->n_rows : at->n_tokens;
}
static inline size_t ry_query_row(const ry_attention *at, size_t r)
{
    return at->rows ? at->rows[r] : r;
}

/* How often a row counts in a column: 0, 1, or its weight. */
static inline float ry_row_count(const ry_attention *at, size_t row)
{
    if (row < at->columns.skip_rows) return 0.0f;
    return at->columns.row_weights ? at->row_weight[row] : 1.0f;
}

#endif
