/* tile_grid.h - images of any shape for LLaVA-NeXT ("anyres"). The model sees an image as squares
 * of one size: the base, which is the whole image squashed, and tiles, which are the image at a
 * higher resolution, resized into a grid of squares with black borders. The grid is the one of a
 * list that keeps most pixels.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TILE_GRID_H
#define RY_TILE_GRID_H

#include "image/resize.h"

enum {
    RY_MAX_GRIDS = 64, /* of a model; LLaVA-1.6 has 5 */
    RY_MAX_TILES = 16  /* of a grid; LLaVA-1.6 has 4 */
};

/* The grids of a model in the order of its config: the first of equally good ones is taken. */
typedef struct ry_tile_grids {
    uint32_t side;                  /* pixels of base and tile */
    uint32_t patches;               /* per side of base and tile */
    uint32_t n;                     /* 0 = no tiles: LLaVA-1.5 */
    uint32_t grid[RY_MAX_GRIDS][2]; /* tiles across, tiles down */
    int keeps_padding;              /* patches of the border are visual tokens too */
    int truncates; /* LLaVA's own code: patches without border are truncated as they are;
                      transformers rounds to 7 decimals before */
} ry_tile_grids;

/* Base and tiles of an image at most; 1 without tiles. */
uint32_t ry_tile_most_squares(const ry_tile_grids *grids);
/* Rows of an image at most, if a square gives `each`, and a line of patches one more with
 * ends_lines. */
uint32_t ry_tile_most_rows(const ry_tile_grids *grids, uint32_t each, int ends_lines);

/* Where an image is in its grid. */
typedef struct ry_tile_plan {
    uint32_t across, down;                                 /* tiles */
    uint32_t left, top, width, height;                     /* the resized image, pixels */
    uint32_t first_column, n_columns, first_line, n_lines; /* patches that are visual tokens; a
                                                              very long image has 0 lines or
                                                              columns, as in the published code */
} ry_tile_plan;

renyi_status ry_tile_place(ry_tile_plan *out, const ry_tile_grids *grids, uint32_t width,
                           uint32_t height, renyi_error *err) RENYI_CHECK;

/* out: [1 + across * down, side, side, 3], the base and then the tiles in raster order. */
renyi_status ry_tile_cut(uint8_t *out, const renyi_image *image, const ry_tile_plan *plan,
                         uint32_t side, renyi_interpolation filter,
                         const ry_resize_kernels *kernels, const renyi_allocator *al,
                         renyi_error *err) RENYI_CHECK;

/* The patches of tile `t` (0 = the base, which has no border) that are visual tokens: a rectangle
 * of columns x lines from (left, top) of its own patches; columns or lines may be 0. */
typedef struct ry_tile_window {
    uint32_t left, top, columns, lines;
} ry_tile_window;
ry_tile_window ry_tile_window_of(const ry_tile_plan *plan, uint32_t patches, uint32_t t);

#endif
