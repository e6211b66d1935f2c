/* outer.h - how the bodies of outer cut the gradient of a matrix into tiles.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_OUTER_H
#define RY_OUTER_H

#include "kernels/grad/grad.h"

enum {
    RY_OUTER_OUT = 192,  /* rows of dw in a tile, at most */
    RY_OUTER_IN = 384,   /* columns */
    RY_OUTER_DEPTH = 256 /* rows of dy and x that are taken at a time */
};

typedef struct ry_outer_tile {
    size_t out, n_out; /* first row of dw, and how many */
    size_t in, n_in;   /* columns */
} ry_outer_tile;

ry_outer_tile ry_outer_tile_of(const ry_outer *o, size_t tile);

#endif
