/* linear_bf16_bf16mm.c - the product of bfloat16 rows and weights for ARM64 with bf16: bfmmla
 * multiplies two rows by two outputs, four inputs each, and adds in f32.
 *
 * Weights: panels of 16 outputs, panel p = [depth / 4, 16, 4], depth = n_in rounded up to 4 with
 * zeros. Rows are rounded to bfloat16 once (ry_quant_kernels.to_bf16) and follow each other without
 * a gap. Every sum is one chain along k, so its bits depend neither on the tile nor on its row's
 * partner.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_VEC8
#include "kernels/simd.h"

#include "base/status.h"
#include "kernels/linear/epilogue.h"
#include "kernels/linear/linear_backend.h"
#include "kernels/linear/panel_grid.h"

#include <string.h>

enum { PANEL = RY_PANEL, MR = 4 /* rows of a group */ };

static size_t depth_of(const ry_linear *l) { return (l->n_in + 3) / 4 * 4; }

/* ---- weights --------------------------------------------------------------------------------- */

/* output j, whose weights are w_k floats apart */
static void pack_row(const ry_linear *l, const float *w, size_t w_k, size_t j)
{
    uint16_t *panel = (uint16_t *)l->packed + j / PANEL * PANEL * depth_of(l) + j % PANEL * 4;
    for (size_t k = 0; k < l->n_in; k++, w += w_k)
        ry_quant_scalar.to_bf16(panel + k / 4 * 4 * PANEL + k % 4, 1, w, 1, 1, 1);
}

/* ry_panel_packer */
static void pack_rows(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                      const float *rows, float *scratch)
{
    (void)spec, (void)scratch;
    memset((uint16_t *)l->packed + first * depth_of(l), 0, PANEL * depth_of(l) * sizeof(uint16_t));
    for (size_t i = 0; i < count; i++) pack_row(l, rows + i * l->n_in, 1, first + i);
}

static renyi_status pack_bf16(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                              renyi_error *err)
{
    const size_t padded = ry_panels_of(l->n_out) * PANEL;
    RY_TRY(ry_linear_take(l, spec, padded * depth_of(l) * sizeof(uint16_t), al, err));
    RY_TRY(ry_linear_take_bias(l, spec, padded, al, err));
    if (!spec->w && !spec->reader) return RENYI_OK;
    return ry_linear_each_panel(l, spec, PANEL, pack_rows, al, err);
}

static renyi_status update_bf16(ry_linear *l, const float *w, int transposed, renyi_error *err)
{
    (void)err;
    for (size_t j = 0; j < l->n_out; j++)
        pack_row(l, transposed ? w + j : w + j * l->n_in, transposed ? l->n_out : 1, j);
    return RENYI_OK;
}

/* ---- product --------------------------------------------------------------------------------- */

/* sums[mr, PANEL] = x[mr, depth] * panel. A register holds the sums of two rows and two outputs;
 * the last of an odd number of rows is its own partner. */
RY_INLINE void product_rows(const int mr, const uint16_t *x, const uint16_t *w, size_t depth,
                            float *sums)
{
    const int pairs = (mr + 1) / 2;
    float32x4_t acc[MR / 2][PANEL / 2];
    RY_UNROLL
    for (int p = 0; p < pairs; p++) RY_UNROLL
    for (int c = 0; c < PANEL / 2; c++) acc[p][c] = vdupq_n_f32(0.0f);
    for (size_t k = 0; k < depth; k += 4, w += 4 * PANEL) {
        bfloat16x8_t two[MR / 2];
        RY_UNROLL
        for (int p = 0; p < pairs; p++) {
            const uint16_t *a = x + 2 * (size_t)p * depth + k;
            const uint16_t *b = 2 * p + 1 < mr ? a + depth : a;
            two[p] = vreinterpretq_bf16_u16(vcombine_u16(vld1_u16(a), vld1_u16(b)));
        }
        RY_UNROLL
        for (int c = 0; c < PANEL / 2; c++) {
            const bfloat16x8_t wc = vreinterpretq_bf16_u16(vld1q_u16(w + 8 * c));
            RY_UNROLL
            for (int p = 0; p < pairs; p++) acc[p][c] = vbfmmlaq_f32(acc[p][c], two[p], wc);
        }
    }
    RY_UNROLL
    for (int i = 0; i < mr; i++) RY_UNROLL
    for (int c = 0; c < PANEL / 2; c++) {
        const float32x4_t t = acc[i / 2][c];
        vst1_f32(sums + i * PANEL + 2 * c, i % 2 ? vget_high_f32(t) : vget_low_f32(t));
    }
}

static void product_group(size_t mr, const uint16_t *x, const uint16_t *w, size_t depth,
                          float *sums)
{
    switch (mr) {
    case 1: product_rows(1, x, w, depth, sums); break;
    case 2: product_rows(2, x, w, depth, sums); break;
    case 3: product_rows(3, x, w, depth, sums); break;
    default: product_rows(MR, x, w, depth, sums); break;
    }
}

/* ---- tiles ----------------------------------------------------------------------------------- */

static ry_panel_grid grid_of(const ry_linear_op *op, ry_extent run)
{
    return ry_panel_grid_new(op, PANEL, RY_GRID_ROWS, run.n_images * run.rows, 1);
}

static size_t count_tiles(const ry_linear_op *op, ry_extent run) { return grid_of(op, run).tiles; }

static void finish_row(const ry_linear *l, size_t col, const float *sums, float *y)
{
    const size_t n = l->n_out - col < PANEL ? l->n_out - col : PANEL;
    for (size_t j = 0; j < n; j += VL) {
        const vf v = vf_add(vf_load(sums + j), vf_load(l->bias + col + j));
        ry_epilogue_store(l->epilogue, y + j, v, n - j);
    }
}

static void tile_bf16(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                      const void *input, float *y)
{
    const ry_linear *l = op->l;
    const size_t depth = depth_of(l);
    const ry_panel_grid g = grid_of(op, run);
    const ry_panel_place at = ry_panel_place_of(&g, l, t);
    float sums[MR * PANEL];
    (void)thread;

    for (size_t p = at.panel; p < at.panel + at.panels; p++)
        for (size_t r = 0; r < at.rows; r += MR) {
            const size_t mr = at.rows - r < MR ? at.rows - r : MR;
            product_group(mr, (const uint16_t *)input + (at.row + r) * depth,
                          (const uint16_t *)l->packed + p * PANEL * depth, depth, sums);
            for (size_t i = 0; i < mr; i++) {
                const size_t row = at.row + r + i;
                finish_row(l, p * PANEL, sums + i * PANEL,
                           y + row / run.rows * op->y.image + row % run.rows * op->y.row +
                               p * PANEL);
            }
        }
}

static size_t input_bytes(const ry_linear *l, size_t rows)
{
    return rows * depth_of(l) * sizeof(uint16_t);
}

static void convert_bf16(const ry_linear *l, void *to, size_t rows, size_t first, size_t count,
                         const float *x, size_t x_row)
{
    const size_t depth = depth_of(l);
    uint16_t *row = (uint16_t *)to + first * depth;
    (void)rows;
    for (size_t r = 0; r < count; r++, row += depth, x += x_row) {
        for (size_t k = 0; k < l->n_in; k += VL) {
            const size_t left = l->n_in - k;
            const vf v = vf_load_upto(x + k, left);
            const bfloat16x8_t half = vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(v.lo), v.hi);
            memcpy(row + k, &half, (left < VL ? left : VL) * sizeof *row);
        }
        memset(row + l->n_in, 0, (depth - l->n_in) * sizeof *row);
    }
}

const ry_linear_vtable ry_linear_bf16_bf16mm = {.pack = pack_bf16,
                                                .reads = 1,
                                                .update = update_bf16,
                                                .tiles = count_tiles,
                                                .tile = tile_bf16,
                                                .input_bytes = input_bytes,
                                                .convert = convert_bf16};
