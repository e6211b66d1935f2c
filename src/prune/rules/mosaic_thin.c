/* mosaic_thin.c - a cut of the full grid that leaves no hole: all squares of one colour of the
 * checkerboard go before any of the other, the least attended first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/mosaic.h"
#include "prune/rules/reduce.h"
#include "prune/rules/select.h"

#include <math.h>
#include <string.h>

/* Takes up to `count` squares of one colour away, by ascending score q; says how many. A score that
 * is no number goes first. */
static uint32_t drop_squares(const ry_mosaic *m, uint32_t grid, uint32_t colour, const float *q,
                             uint32_t count)
{
    uint32_t n = 0;

    for (uint32_t j = 0; j < m->n; j++) {
        if ((j / grid + j % grid) % 2 != colour) continue;
        m->squares[n] = j;
        m->value[n++] = isnan(q[j]) ? INFINITY : -q[j];
    }
    if (count > n) count = n;
    ry_rank(m->order, m->value, n, m->keys);
    for (uint32_t i = 0; i < count; i++) m->stays[m->squares[m->order[i]]] = 0;
    return count;
}

void ry_mosaic_thin(const ry_pruner *p, const ry_mosaic *m, const ry_block_view *view, ry_cut *out)
{
    const uint32_t N = view->n_tokens, grid = p->shape.grid, drops = N - out->n_out;
    const float *q = view->columns + view->n_prefix;

    memcpy(out->score, view->columns, N * sizeof *out->score);
    memset(out->rescued, 0, N);
    memset(m->stays, 1, m->n);
    const uint32_t even = drop_squares(m, grid, 0, q, drops);
    drop_squares(m, grid, 1, q, drops - even);
    ry_select_ascending(m->order, m->stays, m->n);
    ry_reduce_drop(view, out, m->order, m->n - drops);
}
