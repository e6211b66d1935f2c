/* mosaic.h - the two kinds of cut that mosaic makes, and the memory they share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MOSAIC_H
#define RY_MOSAIC_H

#include "prune/rules/rule.h"

/* One image's memory from the first to the last phase of a cut. P patches enter it. */
typedef struct ry_mosaic {
    uint32_t n;      /* P */
    float *value;    /* [P] what is ranked */
    uint64_t *keys;  /* [2P] for the ranking */
    uint32_t *order; /* [P] best first */
    /* Only for thinning. */
    uint32_t *squares; /* [P] the patches of one colour */
    uint8_t *stays;    /* [P] */
    /* Only for a merge. Rows are patches in the order of falling importance. */
    uint32_t *rows;   /* [P] the patch of each row */
    uint32_t *place;  /* [P] the row of the new list that each row continues or joins */
    uint32_t *kept;   /* [P] rows kept so far in a walk down the matrix, ... */
    uint32_t *gone;   /* [P] ... and those removed */
    float *closeness; /* [P] of each removed row to the kept one it joins */
    float *overlap;   /* [P] largest cosine with a more important row; -2 for the first */
    float *sizes;     /* [n_prefix + P] patches in each new row */
    float *mean;      /* [dim] of all patches */
    float *z;         /* [P, z_row] centred rows of length 1; 0 where there is no direction */
    float *gram;      /* [P, gram_row] z z^T, up to the diagonal */
    float *pack;      /* [blocks of the matrix, pack_each] scratch of each tile */
    size_t z_row, gram_row, pack_each;
} ry_mosaic;

/* The memory of cut `cut` at `base`; NULL measures: *bytes is what it takes. */
ry_mosaic ry_mosaic_layout(const ry_pruner *p, uint32_t cut, void *base, size_t *bytes);

/* 1 when a cut thins the full grid, 0 when it merges. */
int ry_mosaic_thins(const ry_pruner *p, uint32_t cut);

/* Thin: drop squares of one colour of the checkerboard first. One phase of one tile. */
void ry_mosaic_thin(const ry_pruner *p, const ry_mosaic *m, const ry_block_view *view, ry_cut *out);

/* Merge around peaks, in phases of tiles. */
uint32_t ry_mosaic_merge_tiles(const ry_pruner *p, uint32_t n_patches, uint32_t phase);
void ry_mosaic_merge(const ry_pruner *p, const ry_mosaic *m, const ry_block_view *view, ry_cut *out,
                     uint32_t phase, uint32_t tile);

#endif
