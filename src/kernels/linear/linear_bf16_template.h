/* linear_bf16_template.h - the product of rows with weights kept as bfloat16, for any vector width.
 *
 * Weights: panels of two vectors of outputs, [n_in, 2 VL]. Many rows: a chunk of a panel becomes
 * floats once, in the first-level cache, and all rows of the block pass over it as in
 * linear_avx2.c. One row: weights are widened as they come from memory, two panels side by side,
 * for one alone would wait for its own sums. Every sum is one chain along k either way: the same
 * bits, and those of plain C.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/epilogue.h"
#include "kernels/linear/linear_bf16.h"
#include "kernels/linear/panel_grid.h"
#include "kernels/micro.h"

enum {
    PANEL = 2 * VL,    /* outputs of a panel */
    KC = 384 * 8 / VL, /* depth of a chunk: 24 KiB of floats */
    AHEAD = 2048       /* bytes: how far in front of a single row its weights are asked for */
};

static renyi_status pack(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                         renyi_error *err)
{
    return ry_bf16_pack(l, spec, PANEL, al, err);
}

static renyi_status bind(ry_linear_op *op, const renyi_allocator *al, renyi_error *err)
{
    op->scratch_each = (size_t)RY_GRID_ROWS * RY_GRID_PANELS * PANEL;
    op->scratch = ry_alloc(al, op->n_threads * op->scratch_each, sizeof(float));
    return op->scratch ? RENYI_OK
                       : ry_fail_nomem(err, op->n_threads * op->scratch_each * sizeof(float));
}

static ry_panel_grid grid_of(const ry_linear_op *op, ry_extent run)
{
    return ry_panel_grid_new(op, PANEL, run.rows, run.n_images);
}

static size_t tiles(const ry_linear_op *op, ry_extent run) { return grid_of(op, run).tiles; }

/* ---- one row ------------------------------------------------------------------------------- */

/* sums[n * PANEL] = x[depth] * n panels that lie one after the other; n is a constant */
RY_INLINE void product_one(const int n, const float *x, const uint16_t *w, size_t depth,
                           float *sums)
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
    for (int v = 0; v < 2 * n; v++) vf_store(sums + v * VL, acc[v]);
}

static void product_row(const float *x, const uint16_t *w, size_t depth, size_t n_panels,
                        float *sums)
{
    size_t p = 0;
    for (; p + 2 <= n_panels; p += 2)
        product_one(2, x, w + p * depth * PANEL, depth, sums + p * PANEL);
    if (p < n_panels) product_one(1, x, w + p * depth * PANEL, depth, sums + p * PANEL);
}

/* ---- many rows ----------------------------------------------------------------------------- */

/* c[mr, PANEL] = or += x[mr, depth] * chunk[depth, PANEL] */
RY_INLINE void product_rows(const int mr, const ry_operands *op, float *c, size_t c_row, int add)
{
    vf acc[RY_MR][2];
    RY_UNROLL
    for (int i = 0; i < mr; i++) {
        acc[i][0] = add ? vf_load(c + (size_t)i * c_row) : vf_zero();
        acc[i][1] = add ? vf_load(c + (size_t)i * c_row + VL) : vf_zero();
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
    default: product_rows(6, op, c, c_row, add); break;
    }
}

/* c[rows, n_panels * PANEL] = x[rows, n_in] * panels; groups of rows differ by one at most */
static void product(const float *x, size_t x_row, size_t rows, const uint16_t *w, size_t n_in,
                    size_t n_panels, float *c)
{
    enum { MR = 6 };
    const size_t groups = (rows + MR - 1) / MR, least = rows / groups, more = rows % groups;
    const size_t c_row = n_panels * PANEL;
    float chunk[KC * PANEL];
    for (size_t k = 0; k < n_in; k += KC) {
        const size_t depth = n_in - k < KC ? n_in - k : KC;
        for (size_t p = 0; p < n_panels; p++) {
            ry_operands op = {x + k, x_row, 1, chunk, PANEL, depth};
            const uint16_t *from = w + (p * n_in + k) * PANEL;
            float *to = c + p * PANEL;
            for (size_t i = 0; i < depth * PANEL; i += VL)
                vf_store(chunk + i, vf_from_bf16(from + i));
            for (size_t g = 0; g < groups; g++) {
                const size_t mr = least + (g < more);
                product_group(mr, &op, to, c_row, k > 0);
                op.a += mr * x_row, to += mr * c_row;
            }
        }
    }
}

static void tile(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                 const void *input, float *y)
{
    const ry_linear *l = op->l;
    const ry_panel_grid g = grid_of(op, run);
    const ry_panel_place at = ry_panel_place_of(&g, l, t);
    const size_t col = at.panel * PANEL, width = at.panels * PANEL;
    const size_t cols = l->n_out - col < width ? l->n_out - col : width;
    const uint16_t *w = (const uint16_t *)l->packed + col * l->n_in;
    const float *x = (const float *)input + at.image * op->x.image + at.row * op->x.row;
    float *sums = op->scratch + thread * op->scratch_each;

    y += at.image * op->y.image + at.row * op->y.row + col;
    if (at.rows == 1)
        product_row(x, w, l->n_in, at.panels, sums);
    else
        product(x, op->x.row, at.rows, w, l->n_in, at.panels, sums);
    for (size_t r = 0; r < at.rows; r++)
        for (size_t j = 0; j < cols; j += VL) {
            const vf v = vf_add(vf_load(sums + r * width + j), vf_load(l->bias + col + j));
            ry_epilogue_store(l->epilogue, y + r * op->y.row + j, v, cols - j);
        }
}
