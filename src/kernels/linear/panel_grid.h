/* panel_grid.h - divides an op of our own packed products into tiles: a block of rows by some
 * consecutive panels. A panel is the outputs that are packed together.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PANEL_GRID_H
#define RY_PANEL_GRID_H

#include "kernels/linear/linear_backend.h"

enum {
    RY_GRID_ROWS = 96,   /* rows of a block of 8 or 4 bits, at most */
    RY_GRID_PANELS = 12, /* panels of a tile, at most */
    RY_GRID_TILES = 6    /* per thread, if there are enough panels: threads wait less at the end */
};

typedef struct ry_panel_grid {
    size_t rows, n_panels; /* of the op; rows of each image */
    size_t rows_per_block, blocks, panels_per_tile, panel_tiles;
    size_t tiles; /* of all images */
} ry_panel_grid;

/* One thread takes the widest tiles. For several, tiles are many enough, and of the widths that
 * give enough the one is taken that lets them end together: the least panels for the thread with
 * the most tiles. */
static inline size_t ry_panels_per_tile(size_t n_panels, size_t blocks, size_t threads)
{
    size_t widest = RY_GRID_PANELS < n_panels ? RY_GRID_PANELS : n_panels, best = 1;
    size_t least = (blocks * n_panels + threads - 1) / threads + 1;
    if (threads == 1) return widest;
    for (size_t width = widest; width > 1; width--) {
        const size_t tiles = blocks * ((n_panels + width - 1) / width);
        const size_t most = (tiles + threads - 1) / threads * width;
        if (tiles >= RY_GRID_TILES * threads && most < least) best = width, least = most;
    }
    return best;
}

static inline ry_panel_grid ry_panel_grid_new(const ry_linear_op *op, size_t panel,
                                              size_t block_rows, size_t rows, size_t images)
{
    const size_t n_panels = (op->l->n_out + panel - 1) / panel;
    ry_panel_grid g = {.rows = rows, .n_panels = n_panels};
    g.blocks = (rows + block_rows - 1) / block_rows;
    g.rows_per_block = (rows + g.blocks - 1) / g.blocks;
    g.panels_per_tile = ry_panels_per_tile(n_panels, images * g.blocks, op->n_threads);
    g.panel_tiles = (n_panels + g.panels_per_tile - 1) / g.panels_per_tile;
    g.tiles = images * g.blocks * g.panel_tiles;
    return g;
}

typedef struct ry_panel_place { /* what a tile covers */
    size_t image, row, rows, panel, panels;
} ry_panel_place;

/* Consecutive tiles share their rows. For few_rows, where the weights are far larger than the rows,
 * they share their panels instead, so that weights are read from memory once. */
static inline ry_panel_place ry_panel_place_of(const ry_panel_grid *g, const ry_linear *l, size_t t)
{
    const size_t each = g->blocks * g->panel_tiles, inside = t % each;
    const size_t block = l->few_rows ? inside % g->blocks : inside / g->panel_tiles;
    const size_t run = l->few_rows ? inside / g->blocks : inside % g->panel_tiles;
    ry_panel_place p = {
        .image = t / each, .row = block * g->rows_per_block, .panel = run * g->panels_per_tile};
    const size_t rows = g->rows - p.row, panels = g->n_panels - p.panel;
    p.rows = rows < g->rows_per_block ? rows : g->rows_per_block;
    p.panels = panels < g->panels_per_tile ? panels : g->panels_per_tile;
    return p;
}

#endif
