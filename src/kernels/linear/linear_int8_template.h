/* linear_int8_template.h - the 8-bit product with the vectors of bytes.h.
 *
 * Weights: panels.h. A tile is a block of rows by some panels. A panel is finished before the next
 * one, so its sums (rows x 16) stay in the first-level cache.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linear/bytes.h"
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
    return ry_panel_grid_new(op, PANEL, RY_GRID_ROWS, run.n_images * run.rows, 1);
}

static size_t count_tiles(const ry_linear_op *op, ry_extent run) { return grid_of(op, run).tiles; }

/* What every sum of a panel starts from: it makes up for what bytes.h takes from each activation. A
 * column's sum is scale times a whole number; below 2^23 the division gives it exactly. */
static void first_sums(int32_t *start, const ry_linear *l, size_t col)
{
    for (size_t j = 0; j < PANEL; j++) {
        const double scale = (double)l->scale[col + j];
        const double sum = scale > 0.0 ? (double)l->sum[col + j] / scale : 0.0;
        const int is_some = sum > -0x1p23 && sum < 0x1p23; /* NaN is not */
        start[j] = RY_INT8_LESS != 0 && is_some ? RY_INT8_LESS * (int32_t)lrint(sum) : 0;
    }
}

/* sums[mr, PANEL] = from[mr, PANEL], from_row apart, + x[mr, depth] * panel[depth, PANEL] */
#if defined(__ARM_FEATURE_MATMUL_INT8)
#include "kernels/linear/int8_rows_i8mm.h"
#else
RY_INLINE void product_rows(const int mr, const uint8_t *x, size_t x_row, const int8_t *w,
                            size_t depth, const int32_t *from, size_t from_row, int32_t *sums)
{
    vi acc[MR][2];
    RY_UNROLL
    for (int i = 0; i < mr; i++) RY_UNROLL
    for (int v = 0; v < 2; v++) acc[i][v] = vi_load(from + (size_t)i * from_row + v * VL);
    for (size_t k = 0; k < depth; k += 4, w += 4 * PANEL) {
        const vb w0 = vb_load(w), w1 = vb_load(w + 32);
        RY_UNROLL
        for (int i = 0; i < mr; i++) {
            const vb xi = vb_four(x + (size_t)i * x_row + k);
            acc[i][0] = vi_dot4(acc[i][0], xi, w0);
            acc[i][1] = vi_dot4(acc[i][1], xi, w1);
        }
    }
    RY_UNROLL
    for (int i = 0; i < mr; i++) RY_UNROLL
    for (int v = 0; v < 2; v++) vi_store(sums + i * PANEL + v * VL, acc[i][v]);
}
#endif

static void product_group(size_t mr, const uint8_t *x, size_t x_row, const int8_t *w, size_t depth,
                          const int32_t *from, size_t from_row, int32_t *sums)
{
    switch (mr) {
    case 1: product_rows(1, x, x_row, w, depth, from, from_row, sums); break;
    case 2: product_rows(2, x, x_row, w, depth, from, from_row, sums); break;
    case 3: product_rows(3, x, x_row, w, depth, from, from_row, sums); break;
    default: product_rows(MR, x, x_row, w, depth, from, from_row, sums); break;
    }
}

/* Prefetches a share of the next weights while a group of rows computes. */
RY_INLINE void prefetch(const int8_t *weights, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(weights + i, 0, 3);
}

/* sums[rows, PANEL] = start + x[rows, depth] * panel; the sizes of groups of rows differ by one at
 * most */
static void product(const uint8_t *x, size_t depth, size_t rows, const int8_t *panel,
                    const int8_t *next, const int32_t *start, int32_t *sums)
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
            product_group(mr, from, depth, panel + k * PANEL, chunk, k ? to : start,
                          k ? (size_t)PANEL : 0, to);
            from += mr * depth, to += mr * PANEL;
        }
    }
}

/* sums[PANEL] = start + the products of a single row. It is limited by memory, so the panel is read
 * once, front to back; prefetching runs past its end, where the next panel begins. */
static void product_of_row(const uint8_t *x, size_t depth, const int8_t *w, const int32_t *start,
                           int32_t *sums)
{
    vi acc0 = vi_load(start), acc1 = vi_load(start + VL);
    for (size_t k = 0; k < depth; k += 4, w += 4 * PANEL) {
        const vb xk = vb_four(x + k);
        __builtin_prefetch(w + AHEAD, 0, 3);
        acc0 = vi_dot4(acc0, xk, vb_load(w));
        acc1 = vi_dot4(acc1, xk, vb_load(w + 32));
    }
    vi_store(sums, acc0);
    vi_store(sums + VL, acc1);
}

#ifdef RY_INT8_WORDS
#include "kernels/linear/int8_words.h"
#endif

typedef struct tile_rows {
    const uint8_t *x; /* [n, depth] */
    size_t depth, n;
#ifdef RY_INT8_WORDS
    int in_words;
    word_rows words;
#endif
} tile_rows;

/* sums[n, PANEL] = the rows of a tile times a panel; next: what to prefetch meanwhile */
static void tile_sums(const tile_rows *rows, const ry_linear *l, size_t col, const int8_t *panel,
                      const int8_t *next, int32_t *sums)
{
    int32_t start[PANEL];
#ifdef RY_INT8_WORDS
    if (rows->in_words) {
        product_in_words(&rows->words, rows->x, rows->depth, rows->n, panel, next, sums);
        return;
    }
#endif
    first_sums(start, l, col);
    if (rows->n == 1)
        product_of_row(rows->x, rows->depth, panel, start, sums);
    else
        product(rows->x, rows->depth, rows->n, panel, next, start, sums);
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
    tile_rows rows; /* large: not cleared */
    rows.x = x, rows.depth = depth, rows.n = at.rows;
    _Alignas(64) int32_t sums[RY_GRID_ROWS * PANEL];
#ifdef RY_INT8_WORDS
    rows.in_words = at.rows >= WORD_LEAST && words_take(l->n_in);
    if (rows.in_words)
        word_rows_of(&rows.words, moments_of(l, input, g.rows, at.row), depth, at.rows);
#endif

    for (size_t p = at.panel; p < at.panel + at.panels; p++) {
        const size_t col = p * PANEL, cols = l->n_out - col < PANEL ? l->n_out - col : PANEL;
        const int8_t *panel = (const int8_t *)l->packed + col * depth;
        const int8_t *next = p + 1 < at.panel + at.panels ? panel + PANEL * depth : panel;
        const ry_quant_columns columns = {l->scale + col, l->sum + col, l->bias + col};
        tile_sums(&rows, l, col, panel, next, sums);
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
    uint8_t *q = (uint8_t *)to + ry_quant_offset(rows) + first * depth;
    quantize_rows(q, depth, (ry_quant *)to + first, x, x_row, count, l->n_in,
                  l->has_range ? &l->range : NULL);
    for (size_t k = 0; RY_INT8_FLIP != 0 && k < count * depth; k++) q[k] ^= RY_INT8_FLIP;
#ifdef RY_INT8_WORDS
    for (size_t r = 0; words_take(l->n_in) && r < count; r++)
        find_moments(moments_of(l, to, rows, first + r), q + r * depth, depth);
#endif
}

#ifdef RY_INT8_WORDS
#define INPUT_BYTES words_input_bytes
#else
#define INPUT_BYTES ry_int8_input_bytes
#endif

#define RY_INT8_VTABLE                                                          \
    {                                                                           \
        .pack = pack_int8, .reads = 1, .tiles = count_tiles, .tile = tile_int8, \
        .input_bytes = INPUT_BYTES, .convert = convert_int8                     \
    }
