/* column_stat.h - which statistic of a column a block of attention computes; shared by all levels
 * and by attention_scores.c. For the rows i of a block with weights w_i and probabilities a_i:
 *   kinds NORM and POWER  one sum: the statistic of the order, below
 *   kind ENTROPY          two sums: N times the mass (POWER of n = 1), then the statistic of the
 *                         order
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_COLUMN_STAT_H
#define RY_COLUMN_STAT_H

#include "kernels/attention/attention.h"

#include <math.h>

typedef enum ry_column_stat {
    RY_STAT_POWER, /* n = 1, 2, 3, 4: sum w (N a)^n; N keeps the powers within a float's range */
    RY_STAT_TOP,   /* n = infinity: the largest a with w > 0 */
    RY_STAT_NORM,  /* any other n: (sum w a^n)^(1/n), of the magnitude of a for every n */
    RY_STAT_LOG    /* Shannon's entropy: sum w a log a */
} ry_column_stat;

static inline ry_column_stat ry_column_stat_of(const ry_column_spec *spec)
{
    const double n = spec->order;
    if (spec->kind == RY_COLUMN_ENTROPY && n == 1.0) return RY_STAT_LOG;
    if (isinf(n)) return RY_STAT_TOP;
    return n == 1.0 || n == 2.0 || n == 3.0 || n == 4.0 ? RY_STAT_POWER : RY_STAT_NORM;
}

/* Number of queries, and the token of query r. */
static inline size_t ry_query_count(const ry_attention *at)
{
    return at->rows ? at->n_rows : at->n_tokens;
}
static inline size_t ry_query_row(const ry_attention *at, size_t r)
{
    return at->rows ? at->rows[r] : r;
}

/* The weight of a row in a column sum: 0, 1, or row_weight. */
static inline float ry_row_count(const ry_attention *at, size_t row)
{
    if (row < at->columns.skip_rows && row >= at->columns.count_rows) return 0.0f;
    return at->columns.row_weights ? at->row_weight[row] : 1.0f;
}

#endif
