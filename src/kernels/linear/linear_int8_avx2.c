/* linear_int8_avx2.c - the 8-bit product for machines without VNNI.
 *
 * vpmaddubsw multiplies unsigned by signed bytes and adds pairs of products in 16 bits. Weights are
 * scaled so that no pair can overflow (quant.h), so every sum is exact. At best it is twice as fast
 * as f32: 32 products take two instructions on the ports of two FMAs, which make 16.
 *
 * Weights: panels.h. A tile is a block of rows by some panels. A panel is finished before the next
 * one, so its sums (rows x 16) stay in the first-level cache.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX2
#include "kernels/linear/quant_template.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/linear_backend.h"
#include "kernels/linear/panel_grid.h"

#include <string.h>

enum {
    PANEL = RY_PANEL,
    KC = 1024,   /* depth of a chunk: 16 KiB of a panel */
    MR = 4,      /* rows of a group */
    AHEAD = 1024 /* bytes: how far ahead the weights of a single row are prefetched */
};

static renyi_status pack_int8(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                              renyi_error *err)
{
    return ry_int8_pack(l, spec, 1, al, err);
}

/* Converted rows of all images follow each other without a gap. */
static ry_panel_grid grid_of(const ry_linear_op *op, ry_extent run)
{
    return ry_panel_grid_new(op, PANEL, run.n_images * run.rows, 1);
}

static size_t count_tiles(const ry_linear_op *op, ry_extent run) { return grid_of(op, run).tiles; }

/* sum[8 lanes of 32 bits] += products of four bytes per lane */
RY_INLINE __m256i dot4(__m256i sum, __m256i x, __m256i w)
{
    const __m256i pairs = _mm256_maddubs_epi16(x, w);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* sums[mr, PANEL] = or += x[mr, depth] * panel[depth, PANEL] */
RY_INLINE void product_rows(const int mr, const uint8_t *x, size_t x_row, const int8_t *w,
                            size_t depth, int32_t *sums, int add)
{
    __m256i acc[MR][2];
    RY_UNROLL
    for (int i = 0; i < mr; i++) {
        const __m256i *from = (const __m256i *)(sums + i * PANEL);
        acc[i][0] = add ? _mm256_loadu_si256(from) : _mm256_setzero_si256();
        acc[i][1] = add ? _mm256_loadu_si256(from + 1) : _mm256_setzero_si256();
    }
    for (size_t k = 0; k < depth; k += 4, w += 4 * PANEL) {
        const __m256i w0 = _mm256_loadu_si256((const __m256i *)w);
        const __m256i w1 = _mm256_loadu_si256((const __m256i *)(w + 32));
        RY_UNROLL
        for (int i = 0; i < mr; i++) {
            int32_t four;
            memcpy(&four, x + (size_t)i * x_row + k, 4);
            const __m256i xi = _mm256_set1_epi32(four);
            acc[i][0] = dot4(acc[i][0], xi, w0);
            acc[i][1] = dot4(acc[i][1], xi, w1);
        }
    }
    RY_UNROLL
    for (int i = 0; i < mr; i++) {
        __m256i *to = (__m256i *)(sums + i * PANEL);
        _mm256_storeu_si256(to, acc[i][0]);
        _mm256_storeu_si256(to + 1, acc[i][1]);
    }
}

static void product_group(size_t mr, const uint8_t *x, size_t x_row, const int8_t *w, size_t depth,
                          int32_t *sums, int add)
{
    switch (mr) {
    case 1: product_rows(1, x, x_row, w, depth, sums, add); break;
    case 2: product_rows(2, x, x_row, w, depth, sums, add); break;
    case 3: product_rows(3, x, x_row, w, depth, sums, add); break;
    default: product_rows(MR, x, x_row, w, depth, sums, add); break;
    }
}

/* Prefetches a share of the next weights while a group of rows computes. */
RY_INLINE void prefetch(const int8_t *weights, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(weights + i, 0, 3);
}

/* sums[rows, PANEL] = x[rows, depth] * panel; the sizes of groups of rows differ by one at most */
static void product(const uint8_t *x, size_t depth, size_t rows, const int8_t *panel,
                    const int8_t *next, int32_t *sums)
{
    const size_t groups = (rows + MR - 1) / MR, least = rows / groups, more = rows % groups;
    const size_t share = depth * PANEL / groups / 64 * 64;
    for (size_t k = 0; k < depth; k += KC) {
        const size_t chunk = depth - k < KC ? depth - k : KC;
        const uint8_t *from = x + k;
        int32_t *to = sums;
        for (size_t g = 0; g < groups; g++) {
            const size_t mr = least + (g < more);
            if (k == 0) prefetch(next, share), next += share;
            product_group(mr, from, depth, panel + k * PANEL, chunk, to, k > 0);
            from += mr * depth, to += mr * PANEL;
        }
    }
}

/* sums[PANEL] of a single row. It is limited by memory, so the panel is read once, front to back;
 * prefetching runs past its end, where the next panel begins. */
static void product_of_row(const uint8_t *x, size_t depth, const int8_t *w, int32_t *sums)
{
    __m256i acc0 = _mm256_setzero_si256(), acc1 = acc0;
    for (size_t k = 0; k < depth; k += 4, w += 4 * PANEL) {
        int32_t four;
        memcpy(&four, x + k, 4);
        const __m256i xk = _mm256_set1_epi32(four);
        __builtin_prefetch(w + AHEAD, 0, 3);
        acc0 = dot4(acc0, xk, _mm256_loadu_si256((const __m256i *)w));
        acc1 = dot4(acc1, xk, _mm256_loadu_si256((const __m256i *)(w + 32)));
    }
    _mm256_storeu_si256((__m256i *)sums, acc0);
    _mm256_storeu_si256((__m256i *)(sums + 8), acc1);
}

static void tile_int8(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                      const void *input, float *y)
{
    (void)thread;
    const ry_linear *l = op->l;
    const size_t depth = ry_int8_depth(l->n_in);
    const ry_panel_grid g = grid_of(op, run);
    const ry_panel_place at = ry_panel_place_of(&g, l, t);
    const ry_quant *quant = (const ry_quant *)input + at.row;
    const uint8_t *x = (const uint8_t *)input + ry_quant_offset(g.rows) + at.row * depth;
    int32_t sums[RY_GRID_ROWS * PANEL];

    for (size_t p = at.panel; p < at.panel + at.panels; p++) {
        const size_t col = p * PANEL, cols = l->n_out - col < PANEL ? l->n_out - col : PANEL;
        const int8_t *panel = (const int8_t *)l->packed + col * depth;
        const int8_t *next = p + 1 < at.panel + at.panels ? panel + PANEL * depth : panel;
        const ry_quant_columns columns = {l->scale + col, l->sum + col, l->bias + col};
        if (at.rows == 1)
            product_of_row(x, depth, panel, sums);
        else
            product(x, depth, at.rows, panel, next, sums);
        for (size_t r = 0; r < at.rows; r++) {
            const size_t image = (at.row + r) / run.rows, row = (at.row + r) % run.rows;
            finish_sums(y + image * op->y.image + row * op->y.row + col, sums + r * PANEL, quant[r],
                        &columns, cols, l->epilogue);
        }
    }
}

static void convert_int8(const ry_linear *l, void *to, size_t rows, size_t first, size_t count,
                         const float *x, size_t x_row)
{
    const size_t depth = ry_int8_depth(l->n_in);
    quantize_rows((uint8_t *)to + ry_quant_offset(rows) + first * depth, depth,
                  (ry_quant *)to + first, x, x_row, count, l->n_in,
                  l->has_range ? &l->range : NULL);
}

const ry_linear_vtable ry_linear_int8_avx2 = {.pack = pack_int8,
                                              .reads = 1,
                                              .tiles = count_tiles,
                                              .tile = tile_int8,
                                              .input_bytes = ry_int8_input_bytes,
                                              .convert = convert_int8};
