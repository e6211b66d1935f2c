/* gram_template.h - the Gram matrix for any vector width. The rows of a block are the lanes; they
 * are multiplied with all rows up to the last of the block. The products come out transposed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/micro.h"
#include "kernels/simd.h"

enum { GRAM_ROWS = 2 * VL };

typedef struct gram_view {
    const float *z; /* [n, dim], at the first column of this pass */
    size_t z_row;
    size_t depth;        /* columns of this pass */
    int fresh;           /* 1 in the first pass */
    size_t width;        /* lanes in use: VL or 2 VL */
    const float *packed; /* [depth, width] the block's rows */
    float *t;            /* [rows up to the block, width] products */
} gram_view;

/* t[j .. j+mr, :] (+)= z_j . block */
RY_INLINE void gram_tile(const int mr, const int nv, const gram_view *g, size_t j)
{
    const ry_operands op = {g->z + j * g->z_row, g->z_row, 1, g->packed, (size_t)nv * VL, g->depth};
    float *t = g->t + j * (size_t)nv * VL;
    vf acc[RY_MR][2];
    RY_UNROLL
    for (int i = 0; i < mr; i++) RY_UNROLL
    for (int v = 0; v < nv; v++) acc[i][v] = g->fresh ? vf_zero() : vf_load(t + (i * nv + v) * VL);
    ry_micro_sum(mr, nv, &op, VL, acc);
    RY_UNROLL
    for (int i = 0; i < mr; i++) RY_UNROLL
    for (int v = 0; v < nv; v++) vf_store(t + (i * nv + v) * VL, acc[i][v]);
}

RY_INLINE void gram_pass(const int nv, const gram_view *g, size_t count)
{
    size_t j = 0;
    for (; j + RY_MR <= count; j += RY_MR) gram_tile(RY_MR, nv, g, j);
    for (; j + 4 <= count; j += 4) gram_tile(4, nv, g, j);
    for (; j < count; j++) gram_tile(1, nv, g, j);
}

/* out[i, j] = t[j, i]; out is at the block's first row, of which there are `rows` */
static void gram_transpose_out(float *out, size_t out_row, const gram_view *g, size_t rows,
                               size_t count)
{
    for (size_t j = 0; j < count; j += VL)
        for (size_t lane = 0; lane < rows; lane += VL) {
            vf r[VL];
            RY_UNROLL
            for (int i = 0; i < VL; i++) {
                const size_t from = j + (size_t)i < count ? j + (size_t)i : count - 1;
                r[i] = vf_load(g->t + from * g->width + lane);
            }
            vf_transpose(r);
            RY_UNROLL
            for (int i = 0; i < VL; i++)
                if (lane + (size_t)i < rows)
                    vf_store_upto(out + (lane + (size_t)i) * out_row + j, r[i], count - j);
        }
}

static RY_DECL_GRAM(gram)
{
    const size_t first = block * GRAM_ROWS, count = first + GRAM_ROWS < n ? first + GRAM_ROWS : n;
    gram_view g = {.z_row = z_row, .width = count - first > VL ? 2 * VL : VL, .packed = scratch};
    const float *rows[GRAM_ROWS];

    g.t = scratch + (dim < RY_GRAM_DEPTH ? dim : RY_GRAM_DEPTH) * GRAM_ROWS;
    for (size_t c = 0; c < dim; c += RY_GRAM_DEPTH) {
        g.depth = dim - c < RY_GRAM_DEPTH ? dim - c : RY_GRAM_DEPTH;
        g.fresh = c == 0;
        g.z = z + c;
        for (size_t i = 0; i < g.width; i++) /* unused lanes repeat the last row */
            rows[i] = g.z + (first + i < n ? first + i : n - 1) * z_row;
        ry_micro_pack(scratch, g.width, rows, g.depth, 1.0f);
        if (g.width == VL)
            gram_pass(1, &g, count);
        else
            gram_pass(2, &g, count);
    }
    gram_transpose_out(out + first * out_row, out_row, &g, count - first, count);
}
