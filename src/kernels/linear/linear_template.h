/* linear_template.h - the packed product for any vector width, with weights kept as float or as
 * bfloat16. The arithmetic is f32 in both.
 *
 * Weights: panels of PANEL outputs, panel p = [n_in, PANEL] at packed + p * n_in * PANEL. A tile is
 * a block of rows by some panels. k runs in chunks of KC: a chunk of a panel (24 KiB of floats)
 * stays in the first-level cache while all rows of the block pass over it, and the block's own
 * chunk (rows x KC) in the second. Chunks of bf16 are widened to floats once.
 *
 * A single row of bf16 is limited by memory: its weights are widened as they are loaded, two panels
 * at a time, because the sums of one panel would wait for each other.
 *
 * Every sum is one chain of multiply-adds along k, so the bits of a row depend neither on the tile
 * nor on the number of rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/epilogue.h"
#include "kernels/linear/linear_backend.h"
#include "kernels/linear/panel_grid.h"
#include "kernels/micro.h"

enum {
    PANEL = 2 * VL,    /* outputs of a panel */
    KC = 384 * 8 / VL, /* depth of a chunk */
    GROUP_ROWS = 6,    /* rows that are multiplied together, at most */
    AHEAD = 2048       /* bytes: how far ahead the weights of a single row are prefetched */
};

/* ---- tiles ----------------------------------------------------------------------------------- */

static renyi_status bind_op(ry_linear_op *op, const renyi_allocator *al, renyi_error *err)
{
    op->scratch_each = (size_t)RY_GRID_ROWS * RY_GRID_PANELS * PANEL;
    op->scratch = ry_alloc(al, op->n_threads * op->scratch_each, sizeof(float));
    return op->scratch ? RENYI_OK
                       : ry_fail_nomem(err, op->n_threads * op->scratch_each * sizeof(float));
}

/* If the rows of all images follow each other without a gap they count as one image. */
static ry_panel_grid grid_of(const ry_linear_op *op, ry_extent run)
{
    const int dense = op->x.image == run.rows * op->x.row && op->y.image == run.rows * op->y.row;
    return dense ? ry_panel_grid_new(op, PANEL, run.rows * run.n_images, 1)
                 : ry_panel_grid_new(op, PANEL, run.rows, run.n_images);
}

static size_t count_tiles(const ry_linear_op *op, ry_extent run) { return grid_of(op, run).tiles; }

/* ---- one row of bf16 ------------------------------------------------------------------------- */

/* c[n * PANEL] = x[depth] * n consecutive panels; n is a constant */
RY_INLINE void row_times_panels(const int n, const float *x, const uint16_t *w, size_t depth,
                                float *c)
{
    vf acc[4];
    RY_UNROLL
    for (int v = 0; v < 2 * n; v++) acc[v] = vf_zero();
    for (size_t k = 0; k < depth; k++, w += PANEL) {
        const vf xk = vf_bcast(x + k);
        RY_UNROLL
        for (int p = 0; p < n; p++) {
            const uint16_t *at = w + (size_t)p * depth * PANEL;
            if (VL == 16 || k % 2 == 0) __builtin_prefetch((const char *)at + AHEAD, 0, 3);
            acc[2 * p] = vf_fma(xk, vf_from_bf16(at), acc[2 * p]);
            acc[2 * p + 1] = vf_fma(xk, vf_from_bf16(at + VL), acc[2 * p + 1]);
        }
    }
    RY_UNROLL
    for (int v = 0; v < 2 * n; v++) vf_store(c + v * VL, acc[v]);
}

static void product_of_row(const float *x, const uint16_t *w, size_t depth, size_t n_panels,
                           float *c)
{
    size_t p = 0;
    for (; p + 2 <= n_panels; p += 2)
        row_times_panels(2, x, w + p * depth * PANEL, depth, c + p * PANEL);
    if (p < n_panels) row_times_panels(1, x, w + p * depth * PANEL, depth, c + p * PANEL);
}

/* ---- many rows ------------------------------------------------------------------------------- */

/* c[mr, PANEL] = or += x[mr, depth] * chunk[depth, PANEL] */
RY_INLINE void product_rows(const int mr, const ry_operands *op, float *c, size_t c_row, int add)
{
    vf acc[RY_MR][2];
    if (add) {
        RY_UNROLL
        for (int i = 0; i < mr; i++) {
            acc[i][0] = vf_load(c + (size_t)i * c_row);
            acc[i][1] = vf_load(c + (size_t)i * c_row + VL);
        }
    } else {
        RY_UNROLL
        for (int i = 0; i < mr; i++) acc[i][0] = acc[i][1] = vf_zero();
    }
    ry_micro_sum(mr, 2, op, VL, acc);
    RY_UNROLL
    for (int i = 0; i < mr; i++) {
        vf_store(c + (size_t)i * c_row, acc[i][0]);
        vf_store(c + (size_t)i * c_row + VL, acc[i][1]);
    }
}

static void product_group(size_t mr, const ry_operands *op, float *c, size_t c_row, int add)
{
    switch (mr) {
    case 1: product_rows(1, op, c, c_row, add); break;
    case 2: product_rows(2, op, c, c_row, add); break;
    case 3: product_rows(3, op, c, c_row, add); break;
    case 4: product_rows(4, op, c, c_row, add); break;
    case 5: product_rows(5, op, c, c_row, add); break;
    default: product_rows(GROUP_ROWS, op, c, c_row, add); break;
    }
}

/* Prefetches a share of the next weights while a group of rows computes: they stream from memory,
 * and the hardware prefetcher stops at every page. 2 to 7 % of the time of ViT-B. */
RY_INLINE void prefetch(const float *weights, size_t floats)
{
    for (size_t i = 0; i < floats; i += RY_LINE) __builtin_prefetch(weights + i, 0, 3);
}

RY_INLINE void widen(float *to, const uint16_t *from, size_t n)
{
    for (size_t i = 0; i < n; i += VL) vf_store(to + i, vf_from_bf16(from + i));
}

/* c[rows, n_panels * PANEL] = x[rows, n_in] * panels from panel0 on; chunk: [KC, PANEL] for widened
 * bf16 weights, NULL = weights are floats.
 *
 * The sizes of the groups of rows differ by one at most. Groups of 4 and 5 keep the multipliers as
 * busy as groups of 6. A rest of 1 to 3 rows after groups of 6 would not: it costs as much as 4.
 * Pruning makes every number of rows occur. */
RY_INLINE void product(float *const chunk, const ry_linear *l, const float *x, size_t x_row,
                       size_t rows, size_t panel0, size_t n_panels, float *c, size_t c_row)
{
    const size_t groups = (rows + GROUP_ROWS - 1) / GROUP_ROWS;
    const size_t least = rows / groups, more = rows % groups;
    for (size_t k = 0; k < l->n_in; k += KC) {
        const size_t depth = l->n_in - k < KC ? l->n_in - k : KC;
        const size_t share = depth * PANEL / groups / RY_LINE * RY_LINE;
        for (size_t p = 0; p < n_panels; p++) {
            const size_t at = ((panel0 + p) * l->n_in + k) * PANEL;
            ry_operands op = {x + k, x_row, 1, chunk, PANEL, depth};
            float *out = c + p * PANEL;
            if (chunk)
                widen(chunk, (const uint16_t *)l->packed + at, depth * PANEL);
            else
                op.b = (const float *)l->packed + at;
            const float *next = op.b + (p + 1 < n_panels ? l->n_in * PANEL : 0);
            for (size_t g = 0; g < groups; g++) {
                const size_t mr = least + (g < more);
                if (!chunk) prefetch(next, share), next += share;
                product_group(mr, &op, out, c_row, k > 0);
                op.a += mr * x_row, out += mr * c_row;
            }
        }
    }
}

/* One row: bias, then activation or residual, from c into y; both may be the same memory. */
RY_INLINE void finish_row(ry_epilogue epilogue, float *y, const float *c, const float *bias,
                          size_t n)
{
    for (size_t j = 0; j < n; j += VL) {
        const size_t left = n - j;
        const vf v = vf_add(vf_load_upto(c + j, left), vf_load(bias + j));
        ry_epilogue_store(epilogue, y + j, v, left);
    }
}

/* chunk: as for product */
RY_INLINE void run_tile(float *const chunk, const ry_linear_op *op, size_t t, ry_extent run,
                        unsigned thread, const float *x, float *y)
{
    const ry_linear *l = op->l;
    const ry_panel_grid g = grid_of(op, run);
    const ry_panel_place at = ry_panel_place_of(&g, l, t);
    const size_t col = at.panel * PANEL, width = at.panels * PANEL;
    const size_t cols = l->n_out - col < width ? l->n_out - col : width;

    x += at.image * op->x.image + at.row * op->x.row;
    y += at.image * op->y.image + at.row * op->y.row + col;
    /* Sums are collected in y itself unless y holds the residual or ends inside a panel. */
    const int in_place = l->epilogue != RY_EPI_RESIDUAL && cols % PANEL == 0;
    float *c = in_place ? y : op->scratch + thread * op->scratch_each;
    const size_t c_row = in_place ? op->y.row : width;

    if (chunk && at.rows == 1)
        product_of_row(x, (const uint16_t *)l->packed + col * l->n_in, l->n_in, at.panels, c);
    else
        product(chunk, l, x, op->x.row, at.rows, at.panel, at.panels, c, c_row);
    for (size_t r = 0; r < at.rows; r++)
        finish_row(l->epilogue, y + r * op->y.row, c + r * c_row, l->bias + col, cols);
}

/* ---- weights as bfloat16 --------------------------------------------------------------------- */

static renyi_status pack_bf16(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                              renyi_error *err)
{
    return ry_bf16_pack(l, spec, PANEL, al, err);
}

static void tile_bf16(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                      const void *x, float *y)
{
    float chunk[KC * PANEL];
    run_tile(chunk, op, t, run, thread, x, y);
}
