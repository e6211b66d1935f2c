/* linear_avx2.c - our own packed f32 product for machines without AVX-512.
 *
 * Weights: panels of 16 outputs, panel p at packed + p * n_in * 16, inside it k-major: [n_in, 16].
 * A tile is a block of rows by some panels. k runs in chunks of KC, so that a chunk of a panel
 * (24 KiB) stays in the first-level cache while all rows of the block pass over it, and the block's
 * own chunk (rows x KC) in the second.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX2
#include "kernels/simd.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/epilogue.h"
#include "kernels/linear/linear_backend.h"
#include "kernels/linear/panel_grid.h"
#include "kernels/micro.h"

#include <string.h>

enum {
    PANEL = 2 * VL, /* outputs of a panel */
    KC = 384        /* depth of a chunk */
};

/* panel[n_in, PANEL] of outputs j .. j + count; lanes beyond them stay as they are */
static void pack_panel(float *panel, const ry_linear *l, const float *w, int transposed, size_t j,
                       size_t count)
{
    const float *rows[PANEL];
    if (transposed) {
        for (size_t k = 0; k < l->n_in; k++)
            memcpy(panel + k * PANEL, w + k * l->n_out + j, count * sizeof(float));
    } else if (count == PANEL) {
        for (size_t lane = 0; lane < PANEL; lane++) rows[lane] = w + (j + lane) * l->n_in;
        ry_micro_pack(panel, PANEL, rows, l->n_in, 1.0f);
    } else {
        for (size_t lane = 0; lane < count; lane++)
            for (size_t k = 0; k < l->n_in; k++)
                panel[k * PANEL + lane] = w[(j + lane) * l->n_in + k];
    }
}

static renyi_status update(ry_linear *l, const float *w, int transposed, renyi_error *err)
{
    (void)err;
    for (size_t j = 0; j < l->n_out; j += PANEL)
        pack_panel((float *)l->packed + j * l->n_in, l, w, transposed, j,
                   l->n_out - j < PANEL ? l->n_out - j : PANEL);
    return RENYI_OK;
}

static renyi_status pack(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                         renyi_error *err)
{
    const size_t padded = (spec->n_out + PANEL - 1) / PANEL * PANEL;
    RY_TRY(ry_linear_take(l, padded * spec->n_in * sizeof(float), al, err));
    l->bias = ry_calloc(al, padded, sizeof(float));
    if (!l->bias) return ry_fail_nomem(err, padded * sizeof(float));
    if (spec->bias) memcpy(l->bias, spec->bias, spec->n_out * sizeof(float));
    return spec->w ? update(l, spec->w, 0, err) : RENYI_OK;
}

static renyi_status bind(ry_linear_op *op, const renyi_allocator *al, renyi_error *err)
{
    op->scratch_each = (size_t)(RY_GRID_ROWS + RY_MR) * RY_GRID_PANELS * PANEL;
    op->scratch = ry_alloc(al, op->n_threads * op->scratch_each, sizeof(float));
    return op->scratch ? RENYI_OK
                       : ry_fail_nomem(err, op->n_threads * op->scratch_each * sizeof(float));
}

/* Rows that lie one after the other over all images count as one image. */
static ry_panel_grid grid_of(const ry_linear_op *op, ry_extent run)
{
    const int dense = op->x.image == run.rows * op->x.row && op->y.image == run.rows * op->y.row;
    return dense ? ry_panel_grid_new(op, PANEL, run.rows * run.n_images, 1)
                 : ry_panel_grid_new(op, PANEL, run.rows, run.n_images);
}

static size_t tiles(const ry_linear_op *op, ry_extent run) { return grid_of(op, run).tiles; }

/* c[mr, PANEL] = or += x[mr, depth] * panel[depth, PANEL] */
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
    default: product_rows(RY_MR, op, c, c_row, add); break;
    }
}

/* Ask for a share of the weights that come next while a group of rows computes: they stream from
 * memory, and the hardware's own prefetch stops at every page. 2 to 7 % of ViT-B. */
RY_INLINE void prefetch(const float *weights, size_t floats)
{
    for (size_t i = 0; i < floats; i += 16) __builtin_prefetch(weights + i, 0, 3);
}

/* c[rows, n_panels * PANEL] = x[rows, n_in] * panels
 * Rows go in groups that differ by one at most. Groups of 4 and 5 keep the multipliers as busy as
 * those of 6; what would be left over after groups of 6 alone, 1 to 3 rows, would not: it costs as
 * much as 4. Pruning makes every count of rows occur. */
static void product(const ry_linear *l, const float *x, size_t x_row, size_t rows, size_t panel0,
                    size_t n_panels, float *c, size_t c_row)
{
    const size_t groups = (rows + RY_MR - 1) / RY_MR, least = rows / groups, more = rows % groups;
    for (size_t k = 0; k < l->n_in; k += KC) {
        const size_t depth = l->n_in - k < KC ? l->n_in - k : KC;
        const size_t share = depth * PANEL / groups / 16 * 16;
        for (size_t p = 0; p < n_panels; p++) {
            ry_operands op = {
                x + k, x_row, 1, (const float *)l->packed + ((panel0 + p) * l->n_in + k) * PANEL,
                PANEL, depth};
            const float *next = op.b + (p + 1 < n_panels ? l->n_in * PANEL : 0);
            float *out = c + p * PANEL;
            for (size_t g = 0; g < groups; g++) {
                const size_t mr = least + (g < more);
                prefetch(next, share), next += share;
                product_group(mr, &op, out, c_row, k > 0);
                op.a += mr * x_row, out += mr * c_row;
            }
        }
    }
}

/* One row: bias, activation or residual, from c into y; both may be the same memory. */
RY_INLINE void finish_row(ry_epilogue epilogue, float *y, const float *c, const float *bias,
                          size_t n)
{
    for (size_t j = 0; j < n; j += VL) {
        const size_t left = n - j;
        const vf v = vf_add(vf_load_upto(c + j, left), vf_load(bias + j));
        ry_epilogue_store(epilogue, y + j, v, left);
    }
}

static void tile(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                 const void *input, float *y)
{
    const float *x = input;
    const ry_linear *l = op->l;
    const ry_panel_grid g = grid_of(op, run);
    const ry_panel_place at = ry_panel_place_of(&g, l, t);
    const size_t col0 = at.panel * PANEL, width = at.panels * PANEL;
    const size_t cols = l->n_out - col0 < width ? l->n_out - col0 : width;

    x += at.image * op->x.image + at.row * op->x.row;
    y += at.image * op->y.image + at.row * op->y.row + col0;
    /* The sums may grow in y itself unless y holds the residual or ends inside a panel. */
    const int in_place = l->epilogue != RY_EPI_RESIDUAL && cols % PANEL == 0;
    float *c = in_place ? y : op->scratch + thread * op->scratch_each;
    const size_t c_row = in_place ? op->y.row : width;

    product(l, x, op->x.row, at.rows, at.panel, at.panels, c, c_row);
    for (size_t r = 0; r < at.rows; r++)
        finish_row(l->epilogue, y + r * op->y.row, c + r * c_row, l->bias + col0, cols);
}

const ry_linear_vtable ry_linear_avx2 = {
    .pack = pack, .update = update, .bind = bind, .tiles = tiles, .tile = tile, .row_padding = 16};
