/* outer_template.h - dw += dy^T x for any vector width.
 *
 * Rows are taken in chunks. The part of dy in a chunk is packed into panels of RY_MR columns, the
 * part of x into panels of two vectors, one at a time, so that a register tile reads both in
 * order. Unpacked rows are multiples of 1024 bytes apart, which is slow for caches and page
 * tables. The sums of a chunk start from zero and are then added to dw, chunk after chunk.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grad/grad.h"
#include "kernels/micro.h"
#include "kernels/simd.h"

enum {
    PANEL = 2 * VL,
    AHEAD = 8 /* rows that are prefetched before they are packed */
};

typedef struct chunk {
    const ry_outer *o;
    ry_outer_tile t;
    size_t first, depth; /* rows of dy and x */
    float *a;            /* panels [depth, RY_MR] of dy, a_panel floats apart */
    float *b;            /* [depth, PANEL]: the current panel of x */
    size_t a_panel;
} chunk;

/* Every row is in another page, where the hardware prefetcher starts again, so we prefetch what
 * will be packed: here rows k .. end of dy. */
RY_INLINE void prefetch_dy(const chunk *c, size_t k, size_t end)
{
    const ry_outer *o = c->o;
    for (; k < end; k++)
        for (size_t i = 0; i < c->t.n_out; i += RY_LINE)
            __builtin_prefetch(o->dy + (c->first + k) * o->dy_row + c->t.out + i, 0, 2);
}

/* Rows k .. end of the panel of x at column j. */
RY_INLINE void prefetch_x(const chunk *c, size_t j, size_t k, size_t end)
{
    const float *from = c->o->x + c->first * c->o->x_row + c->t.in + j;
    for (; k < end; k++) __builtin_prefetch(from + k * c->o->x_row, 0, 2);
}

/* RY_MR columns are stored as whole vectors. The extra lanes are overwritten by the next row; after
 * the last row they fall into the gap between two panels. Columns after the tile are zeros. */
static void pack_dy(const chunk *c)
{
    const ry_outer *o = c->o;
    for (size_t k = 0; k < c->depth; k++) {
        const float *from = o->dy + (c->first + k) * o->dy_row + c->t.out;
        float *to = c->a + k * RY_MR;
        if (k + AHEAD < c->depth) prefetch_dy(c, k + AHEAD, k + AHEAD + 1);
        for (size_t i = 0; i < c->t.n_out; i += RY_MR, to += c->a_panel)
            vf_store(to, vf_load_upto(from + i, c->t.n_out - i));
    }
}

/* The panel of x from column j of the tile on. */
static void pack_x(const chunk *c, size_t j)
{
    const ry_outer *o = c->o;
    const float *from = o->x + c->first * o->x_row + c->t.in + j;
    const size_t left = c->t.n_in - j;
    for (size_t k = 0; k < c->depth; k++, from += o->x_row) {
        float *to = c->b + k * PANEL;
        vf_store(to, vf_load_upto(from, left));
        vf_store(to + VL, left > VL ? vf_load_upto(from + VL, left - VL) : vf_zero());
    }
}

/* db += sums of the packed columns, in four chains, because each addition of a chain waits for the
 * one before */
static void add_bias(const chunk *c)
{
    float *db = c->o->db + c->t.out;
    for (size_t i = 0; i < c->t.n_out; i += RY_MR) {
        const float *a = c->a + i / RY_MR * c->a_panel;
        const size_t left = c->t.n_out - i < RY_MR ? c->t.n_out - i : RY_MR;
        vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
        size_t k = 0;
        for (; k + 4 <= c->depth; k += 4) RY_UNROLL
        for (int s = 0; s < 4; s++) sum[s] = vf_add(sum[s], vf_load(a + (k + (size_t)s) * RY_MR));
        for (; k < c->depth; k++) sum[0] = vf_add(sum[0], vf_load(a + k * RY_MR));
        const vf all = vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3]));
        vf_store_upto(db + i, vf_add(vf_load_upto(db + i, left), all), left);
    }
}

/* dw[i .. i+RY_MR, j .. j+PANEL] += the product of the chunk */
static void register_tile(const chunk *c, size_t i, size_t j)
{
    const ry_outer *o = c->o;
    const ry_operands op = {c->a + i / RY_MR * c->a_panel, 1, RY_MR, c->b, PANEL, c->depth};
    const size_t rows = c->t.n_out - i, left = c->t.n_in - j;
    float *dw = o->dw + (c->t.out + i) * o->n_in + c->t.in + j;
    vf acc[RY_MR][2];
    RY_UNROLL
    for (int r = 0; r < RY_MR; r++) {
        if ((size_t)r < rows) __builtin_prefetch(dw + (size_t)r * o->n_in, 1, 3);
        acc[r][0] = acc[r][1] = vf_zero();
    }
    ry_micro_sum(RY_MR, 2, &op, VL, acc);
    RY_UNROLL
    for (int r = 0; r < RY_MR; r++) {
        float *to = dw + (size_t)r * o->n_in;
        if ((size_t)r >= rows) continue;
        vf_store_upto(to, vf_add(vf_load_upto(to, left), acc[r][0]), left);
        if (left <= VL) continue;
        vf_store_upto(to + VL, vf_add(vf_load_upto(to + VL, left - VL), acc[r][1]), left - VL);
    }
}

/* dw[:, j .. j+PANEL] of the tile; prefetches the next panel of x meanwhile */
static void column_panel(const chunk *c, size_t j)
{
    const size_t panels = (c->t.n_out + RY_MR - 1) / RY_MR;
    pack_x(c, j);
    for (size_t p = 0; p < panels; p++) {
        if (j + PANEL < c->t.n_in)
            prefetch_x(c, j + PANEL, p * c->depth / panels, (p + 1) * c->depth / panels);
        register_tile(c, p * RY_MR, j);
    }
}

/* All columns of the tile; prefetches the next chunk of dy meanwhile, if there is one. */
static void add_chunk(const chunk *c)
{
    const size_t panels = (c->t.n_in + PANEL - 1) / PANEL, after = c->depth;
    const int more = c->first + 2 * c->depth <= c->o->rows;
    pack_dy(c);
    if (c->o->db && c->t.in == 0) add_bias(c);
    for (size_t p = 0; p < panels; p++) {
        column_panel(c, p * PANEL);
        if (more)
            prefetch_dy(c, after + p * c->depth / panels, after + (p + 1) * c->depth / panels);
    }
}

static RY_DECL_OUTER(outer)
{
    chunk c = {.o = o, .t = ry_outer_tile_of(o, tile)};
    const size_t chunks = (o->rows + RY_OUTER_DEPTH - 1) / RY_OUTER_DEPTH;
    c.b = scratch;
    c.a = scratch + RY_OUTER_DEPTH * PANEL;
    for (size_t n = 0; n < chunks; n++) {
        c.first = n * o->rows / chunks;
        c.depth = (n + 1) * o->rows / chunks - c.first;
        c.a_panel = c.depth * RY_MR + VL;
        add_chunk(&c);
    }
}
