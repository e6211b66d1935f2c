/* mosaic_thin.c - a cut of the full grid that leaves no hole: all squares of one colour of the
 * checkerboard go before any of the other, the least attended first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/mosaic.h"
#include "prune/select.h"

#include <math.h>

/* Marks up to `count` squares of one colour as dropped, by ascending score; says how many. A score
 * that is no number goes first. */
static uint32_t drop_squares(const ry_pruner *p, const ry_mosaic *m, ry_cut *out, uint32_t colour,
                             uint32_t count)
{
    const uint32_t grid = p->shape.grid, prefix = p->shape.n_prefix;
    uint32_t n = 0;

    for (uint32_t j = 0; j < m->n; j++) {
        if ((j / grid + j % grid) % 2 != colour) continue;
        const float q = out->score[prefix + j];
        m->squares[n] = j;
        m->value[n++] = isnan(q) ? INFINITY : -q;
    }
    if (count > n) count = n;
    ry_rank(m->order, m->value, n, m->keys);
    for (uint32_t i = 0; i < count; i++)
        out->target[prefix + m->squares[m->order[i]]] = RY_NO_TOKEN;
    return count;
}

void ry_mosaic_thin(const ry_pruner *p, const ry_mosaic *m, const ry_block_view *view, ry_cut *out)
{
    const uint32_t N = view->n_tokens;
    const uint32_t drops = N - out->n_out;

    for (uint32_t j = 0; j < N; j++) {
        out->score[j] = view->columns[j];
        out->target[j] = 0;
        out->rescued[j] = 0;
    }
    const uint32_t even = drop_squares(p, m, out, 0, drops);
    drop_squares(p, m, out, 1, drops - even);

    uint32_t row = 0; /* the rest stays in raster order, the prefix in front of it */
    for (uint32_t j = 0; j < N; j++) {
        const int stays = out->target[j] != RY_NO_TOKEN;
        out->weight[j] = stays ? 1.0f : 0.0f;
        if (!stays) continue;
        out->source[row] = j;
        out->target[j] = row++;
    }
}
