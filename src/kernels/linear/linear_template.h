/* linear_template.h - the packed product for any vector width, with weights kept as float or as
 * bfloat16. The arithmetic is f32 in both.
 *
 * Weights: panels of PANEL outputs, panel p = [n_in, PANEL] at packed + p * n_in * PANEL. A tile is
 * a block of rows by some panels. k runs in chunks of KC: the chunk of a panel (24 KiB of floats
 * with AVX2, 96 KiB with AVX-512) and the block's own chunk (rows x KC) stay in the second-level
 * cache while all rows of the block pass over the panel. Chunks of bf16 are widened to floats once.
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

#include <string.h>

enum {
    PANEL = 2 * VL,            /* outputs of a panel */
    BLOCK_ROWS = 200,          /* rows of a block, at most: an image of 197 tokens is one block */
    KC = 384 * VL / 8,         /* depth of a chunk */
    KC_WIDENED = 384 * 8 / VL, /* the same for bf16: 24 KiB of floats */
    GROUP_ROWS = RY_MR,        /* rows that are multiplied together, at most */
    AHEAD = 2048               /* bytes: how far ahead weights of a single row are prefetched */
};

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Scratch for the sums of a tile until the last chunk of k, if there are several chunks of depth
 * kc. They are kept in y itself unless y holds the residual or ends inside a panel. */
static renyi_status bind_chunks(ry_linear_op *op, size_t kc, const renyi_allocator *al,
                                renyi_error *err)
{
    const ry_linear *l = op->l;
    if (l->n_in <= kc || (l->epilogue != RY_EPI_RESIDUAL && l->n_out % PANEL == 0)) return RENYI_OK;
    op->scratch_each = (size_t)BLOCK_ROWS * RY_GRID_PANELS * PANEL;
    op->scratch = ry_alloc(al, op->n_threads * op->scratch_each, sizeof(float));
    return op->scratch ? RENYI_OK
                       : ry_fail_nomem(err, op->n_threads * op->scratch_each * sizeof(float));
}

/* If the rows of all images follow each other without a gap they count as one image. */
static ry_panel_grid grid_of(const ry_linear_op *op, ry_extent run)
{
    const int dense = op->x.image == run.rows * op->x.row && op->y.image == run.rows * op->y.row;
    return dense ? ry_panel_grid_new(op, PANEL, BLOCK_ROWS, run.rows * run.n_images, 1)
                 : ry_panel_grid_new(op, PANEL, BLOCK_ROWS, run.rows, run.n_images);
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

/* to[mr, PANEL] = x[mr, depth] * chunk[depth, PANEL], added to from[mr, PANEL] unless it is NULL */
RY_INLINE void product_rows(const int mr, const ry_operands *op, const ry_ahead *ahead,
                            const float *from, size_t from_row, float *to, size_t to_row)
{
    vf acc[RY_MR][2];
    RY_UNROLL
    for (int i = 0; i < mr; i++) {
        acc[i][0] = from ? vf_load(from + (size_t)i * from_row) : vf_zero();
        acc[i][1] = from ? vf_load(from + (size_t)i * from_row + VL) : vf_zero();
    }
    ry_micro_sum_ahead(mr, 2, op, VL, *ahead, acc);
    RY_UNROLL
    for (int i = 0; i < mr; i++) {
        vf_store(to + (size_t)i * to_row, acc[i][0]);
        vf_store(to + (size_t)i * to_row + VL, acc[i][1]);
    }
}

/* Not inlined: the constants of an activation would take a register from the sums (AVX2: 1.3 times
 * the time). */
static __attribute__((noinline)) void product_group(size_t mr, const ry_operands *op,
                                                    const ry_ahead *ahead, const float *from,
                                                    size_t from_row, float *to, size_t to_row)
{
#define ROWS(n) \
    case n: product_rows(n < RY_MR ? n : RY_MR, op, ahead, from, from_row, to, to_row); break
    switch (mr) {
        ROWS(1);
        ROWS(2);
        ROWS(3);
        ROWS(4);
        ROWS(5);
        ROWS(6);
#if RY_MR > 6
        ROWS(7);
        ROWS(8);
        ROWS(9);
        ROWS(10);
        ROWS(11);
        ROWS(12);
#endif
    }
#undef ROWS
}

RY_INLINE void widen(float *to, const uint16_t *from, size_t n)
{
    for (size_t i = 0; i < n; i += VL) vf_store(to + i, vf_from_bf16(from + i));
}

/* One row: bias, then activation or residual, from c into y. */
RY_INLINE void finish_row(ry_epilogue epilogue, float *y, const float *c, const float *bias,
                          size_t n)
{
    for (size_t j = 0; j < n; j += VL) {
        const size_t left = n - j;
        const vf v = vf_add(vf_load_upto(c + j, left), vf_load(bias + j));
        ry_epilogue_store(epilogue, y + j, v, left);
    }
}

typedef struct tile_of_op { /* a tile with its operands */
    const ry_linear *l;
    const float *x; /* its first row */
    float *y;       /* first row and column */
    size_t x_row, y_row, rows, panel, n_panels, cols;
    float *part; /* sums of the first chunks of k, [rows, part_row]: y itself or scratch */
    size_t part_row;
    size_t next; /* from its last panel to the first of the next tile that this thread may take */
} tile_of_op;

/* One chunk of k, from k on, of panel p, for all rows. The last chunk finishes the outputs.
 *
 * The sizes of the groups of rows differ by one at most. A group of GROUP_ROWS / 2 keeps the
 * multipliers as busy as a whole one. A rest of 1 to 3 rows after whole groups would not: it costs
 * as much as 4. Pruning makes every number of rows occur.
 *
 * While the groups compute, the weights from next to next_end are prefetched: they stream from
 * memory, and the hardware prefetcher stops at every page. */
RY_INLINE void product_panel(const tile_of_op *t, size_t p, ry_operands op, size_t k,
                             const float *next, const float *next_end)
{
    const ry_linear *l = t->l;
    const size_t groups = (t->rows + GROUP_ROWS - 1) / GROUP_ROWS, left = t->cols - p * PANEL;
    const size_t least = t->rows / groups, more = t->rows % groups;
    const size_t share = groups * RY_LINE / PANEL, every = share < 1 ? 1 : share > 8 ? 8 : share;
    const int last = k + op.depth == l->n_in;
    const float *bias = l->bias + (t->panel + p) * PANEL;
    float *part = t->part + p * PANEL, *y = t->y + p * PANEL, sums[GROUP_ROWS * PANEL];
    for (size_t g = 0; g < groups; g++) {
        const size_t mr = least + (g < more);
        const ry_ahead ahead = {next, next < next_end ? every : 0};
        for (size_t r = 0; last && r < mr; r++) { /* 2 to 3 % of the time of ViT-B */
            __builtin_prefetch(y + r * t->y_row, 1, 3);
            __builtin_prefetch(y + r * t->y_row + RY_LINE, 1, 3);
        }
        product_group(mr, &op, &ahead, k ? part : NULL, t->part_row, last ? sums : part,
                      last ? (size_t)PANEL : t->part_row);
        for (size_t r = 0; last && r < mr; r++)
            finish_row(l->epilogue, y + r * t->y_row, sums + r * PANEL, bias,
                       left < PANEL ? left : PANEL);
        op.a += mr * t->x_row, part += mr * t->part_row, y += mr * t->y_row;
        if (ahead.every) next += op.depth / every * RY_LINE;
    }
}

/* The weights that follow chunk k of panel p. After the last panel another block of rows begins. */
RY_INLINE const float *next_weights(const tile_of_op *t, size_t p, size_t k, size_t kc)
{
    const size_t n_in = t->l->n_in;
    size_t panel = t->panel + p + 1;
    if (p + 1 == t->n_panels) {
        k = k + kc < n_in ? k + kc : 0;
        panel = k ? t->panel : t->panel + p + t->next;
    }
    if (panel * PANEL >= t->l->n_out) panel = 0;
    return (const float *)t->l->packed + (panel * n_in + k) * PANEL;
}

/* chunk: [KC_WIDENED, PANEL] for widened bf16 weights, NULL = weights are floats */
RY_INLINE void product(float *const chunk, const tile_of_op *t)
{
    const size_t n_in = t->l->n_in, kc = chunk ? KC_WIDENED : KC;
    for (size_t k = 0; k < n_in; k += kc) {
        const size_t depth = n_in - k < kc ? n_in - k : kc;
        for (size_t p = 0; p < t->n_panels; p++) {
            const size_t at = ((t->panel + p) * n_in + k) * PANEL;
            ry_operands op = {t->x + k, t->x_row, 1, chunk, PANEL, depth};
            const float *next = chunk;
            if (chunk) {
                widen(chunk, (const uint16_t *)t->l->packed + at, depth * PANEL);
            } else {
                op.b = (const float *)t->l->packed + at;
                next = next_weights(t, p, k, kc);
            }
            product_panel(t, p, op, k, next, chunk ? next : next + depth * PANEL);
        }
    }
}

/* chunk: as for product */
RY_INLINE void run_tile(float *const chunk, const ry_linear_op *op, size_t tile, ry_extent run,
                        unsigned thread, const float *x, float *y)
{
    const ry_linear *l = op->l;
    const ry_panel_grid g = grid_of(op, run);
    const ry_panel_place at = ry_panel_place_of(&g, l, tile);
    const size_t col = at.panel * PANEL, width = at.panels * PANEL;
    tile_of_op t = {.l = l,
                    .x = x + at.image * op->x.image + at.row * op->x.row,
                    .y = y + at.image * op->y.image + at.row * op->y.row + col,
                    .x_row = op->x.row,
                    .y_row = op->y.row,
                    .rows = at.rows,
                    .panel = at.panel,
                    .n_panels = at.panels,
                    .next = (op->n_threads - 1) * at.panels + 1,
                    .cols = l->n_out - col < width ? l->n_out - col : width};
    t.part = op->scratch ? op->scratch + thread * op->scratch_each : t.y;
    t.part_row = op->scratch ? width : t.y_row;
    if (chunk && at.rows == 1) {
        float sums[RY_GRID_PANELS * PANEL];
        product_of_row(t.x, (const uint16_t *)l->packed + col * l->n_in, l->n_in, at.panels, sums);
        finish_row(l->epilogue, t.y, sums, l->bias + col, t.cols);
    } else {
        product(chunk, &t);
    }
}

/* ---- weights as floats ---------------------------------------------------------------------- */

/* panel[n_in, PANEL] of outputs j .. j + count; lanes after them stay as they are */
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

static renyi_status update_f32(ry_linear *l, const float *w, int transposed, renyi_error *err)
{
    (void)err;
    for (size_t j = 0; j < l->n_out; j += PANEL)
        pack_panel((float *)l->packed + j * l->n_in, l, w, transposed, j,
                   l->n_out - j < PANEL ? l->n_out - j : PANEL);
    return RENYI_OK;
}

/* ry_panel_packer */
static void pack_rows(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                      const float *rows, float *scratch)
{
    float *panel = (float *)l->packed + first * l->n_in;
    (void)spec, (void)scratch;
    if (count < PANEL) memset(panel, 0, PANEL * l->n_in * sizeof *panel);
    pack_panel(panel, l, rows, 0, 0, count);
}

static renyi_status pack_f32(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                             renyi_error *err)
{
    const size_t padded = (spec->n_out + PANEL - 1) / PANEL * PANEL;
    RY_TRY(ry_linear_take(l, spec, padded * spec->n_in * sizeof(float), al, err));
    RY_TRY(ry_linear_take_bias(l, spec, padded, al, err));
    if (!spec->w && !spec->reader) return RENYI_OK;
    return ry_linear_each_panel(l, spec, PANEL, pack_rows, al, err);
}

static renyi_status bind_f32(ry_linear_op *op, const renyi_allocator *al, renyi_error *err)
{
    return bind_chunks(op, KC, al, err);
}

static void tile_f32(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                     const void *x, float *y)
{
    run_tile(NULL, op, t, run, thread, x, y);
}

/* ---- weights as bfloat16 --------------------------------------------------------------------- */

static renyi_status pack_bf16(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                              renyi_error *err)
{
    return ry_bf16_pack(l, spec, PANEL, al, err);
}

static renyi_status bind_bf16(ry_linear_op *op, const renyi_allocator *al, renyi_error *err)
{
    return bind_chunks(op, KC_WIDENED, al, err);
}

static void tile_bf16(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                      const void *x, float *y)
{
    float chunk[KC_WIDENED * PANEL];
    run_tile(chunk, op, t, run, thread, x, y);
}
