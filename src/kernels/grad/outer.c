/* outer.c - dw += dy^T x in plain C: the specification of the other levels; and the tiles that they
 * share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grad/outer.h"

enum {
    OUT_STEP = 12, /* sides of a tile are whole register tiles of every level */
    IN_STEP = 32,
    MIN_OUT = 48, /* tiles smaller than this read more than they compute */
    MIN_IN = 96,
    MIN_TILES = 3 /* per thread, if there are enough: the end of an op is a wait */
};

typedef struct grid {
    size_t out_each, in_each, in_tiles, tiles;
} grid;

static size_t ceil_to(size_t n, size_t step) { return (n + step - 1) / step * step; }

static size_t pieces(size_t n, size_t each) { return (n + each - 1) / each; }

/* Sides of equal length, not longer than `most`. */
static size_t even_side(size_t n, size_t most, size_t step)
{
    const size_t count = n ? pieces(n, most) : 1;
    return ceil_to(pieces(n ? n : 1, count), step);
}

/* The longer side is halved until there are enough tiles. */
static grid make_grid(const ry_outer *o)
{
    const size_t wanted = MIN_TILES * (o->n_threads ? o->n_threads : 1);
    size_t out = even_side(o->n_out, RY_OUTER_OUT, OUT_STEP);
    size_t in = even_side(o->n_in, RY_OUTER_IN, IN_STEP);
    while (pieces(o->n_out, out) * pieces(o->n_in, in) < wanted) {
        if (in >= 2 * out && in >= 2 * MIN_IN)
            in = ceil_to(in / 2, IN_STEP);
        else if (out >= 2 * MIN_OUT)
            out = ceil_to(out / 2, OUT_STEP);
        else if (in >= 2 * MIN_IN)
            in = ceil_to(in / 2, IN_STEP);
        else
            break;
    }
    const size_t in_tiles = pieces(o->n_in, in);
    return (grid){out, in, in_tiles, in_tiles * pieces(o->n_out, out)};
}

size_t ry_outer_tiles(const ry_outer *o) { return make_grid(o).tiles; }

/* A chunk of dy in panels with a gap behind each, and one panel of x; the widest vectors decide. */
size_t ry_outer_scratch(void)
{
    return (size_t)RY_OUTER_DEPTH * (RY_OUTER_OUT + 32) + (RY_OUTER_OUT / 6 + 1) * 16;
}

ry_outer_tile ry_outer_tile_of(const ry_outer *o, size_t tile)
{
    const grid g = make_grid(o);
    ry_outer_tile t = {tile / g.in_tiles * g.out_each, g.out_each, tile % g.in_tiles * g.in_each,
                       g.in_each};
    if (o->n_out - t.out < t.n_out) t.n_out = o->n_out - t.out;
    if (o->n_in - t.in < t.n_in) t.n_in = o->n_in - t.in;
    return t;
}

static RY_DECL_OUTER(outer)
{
    const ry_outer_tile t = ry_outer_tile_of(o, tile);
    (void)scratch;
    for (size_t r = 0; r < o->rows; r++) {
        const float *dy = o->dy + r * o->dy_row, *x = o->x + r * o->x_row;
        for (size_t i = t.out; i < t.out + t.n_out; i++) {
            float *dw = o->dw + i * o->n_in;
            for (size_t j = t.in; j < t.in + t.n_in; j++) dw[j] += dy[i] * x[j];
            if (o->db && t.in == 0) o->db[i] += dy[i];
        }
    }
}

void ry_outer_init(ry_grad_kernels *k) { k->outer = outer; }
