/* linear_groups_template.h - the product with weights in groups of 32 inputs (int4, and blocks of
 * Q4_0 and Q8_0) with the vectors of bytes.h: weights 0 .. 15 or signed bytes by signed bytes. The
 * whole-number sum of a group is converted to float and multiplied by both steps. Functions that
 * get a ry_groups are inlined with constants.
 *
 * Many rows: a chunk of a panel is expanded to one byte per weight once, in the first-level cache,
 * and all rows of the block pass over it. One row: half bytes are expanded as they are loaded.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linear/bytes.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/epilogue.h"
#include "kernels/linear/linear_backend.h"
#include "kernels/linear/panel_grid.h"

#include <math.h>
#include <string.h>

enum {
    PANEL = RY_PANEL,
    KC = 1024,                      /* depth of a chunk: 18 KiB when expanded */
    GROUPS = KC / RY_GROUP,         /* of a chunk */
    GROUP_BYTES = RY_GROUP * PANEL, /* of an expanded group */
    MR = 4,                         /* rows that are multiplied together */
    AHEAD = 1024 /* bytes: how far ahead the weights of a single row are prefetched */
};

typedef struct chunk {                                  /* of a panel, expanded */
    _Alignas(64) uint8_t numbers[GROUPS * GROUP_BYTES]; /* [groups, 8, 16, 4] */
    float steps[GROUPS * PANEL];                        /* [groups, 16] */
} chunk;

/* ---- sums ---------------------------------------------------------------------------------- */

RY_INLINE vg group_start(const unsigned bits, const ry_group *group)
{
    return bits == 8 ? vg_zero() : vg_start(group);
}
RY_INLINE vg group_add(const unsigned bits, vg sum, vb w, vb x)
{
    return bits == 8 ? vg_add_signed(sum, w, x) : vg_add(sum, w, x);
}
/* sum += (sums of a group) * step of the row * steps of the outputs */
RY_INLINE vf add_group(const unsigned bits, vf sum, vg whole, vf row_step, vf steps)
{
    const vf group = bits == 8 ? vg_sum_signed(whole) : vg_sum(whole);
    return vf_fma(vf_mul(group, row_step), steps, sum);
}

/* Steps of 8 outputs as floats, from lane `at` of [2, 16] on. */
RY_INLINE vf load_steps(const ry_groups f, const uint8_t *steps, size_t at)
{
    return f.step_bytes == 1 ? vb_steps(steps + at) : vf_load_half((const uint16_t *)steps + at);
}
/* Four numbers of 8 outputs each: step k of a group, outputs 0 .. 7 and 8 .. 15. */
RY_INLINE void load_numbers(const ry_groups f, const uint8_t *group, size_t k, vb to[2])
{
    const vb first = vb_load(group + RY_PANEL / 2 * f.bits * k);
    to[0] = f.bits == 8 ? first : vb_low_halves(first);
    to[1] = f.bits == 8 ? vb_load(group + 64 * k + 32) : vb_high_halves(first);
}

/* ---- one row ------------------------------------------------------------------------------- */

/* sums[PANEL] = x * panel. The panel is read once, front to back; prefetching runs past its end,
 * where the next panel begins. */
RY_INLINE void product_of_row(const ry_groups f, const ry_group *groups, const int8_t *x,
                              const uint8_t *w, size_t depth, float *sums)
{
    vf sum0 = vf_zero(), sum1 = vf_zero();
    for (; depth; depth -= RY_INT4_BLOCK, w += ry_groups_block(f))
        for (size_t g = 0; g < 2; g++, groups++, x += RY_GROUP) {
            const uint8_t *numbers = w + ry_groups_steps(f) + g * (GROUP_BYTES / 8 * f.bits);
            vg whole0 = group_start(f.bits, groups), whole1 = whole0;
            RY_UNROLL
            for (size_t k = 0; k < RY_GROUP / 4; k++) {
                vb wk[2];
                const vb xk = vb_four(x + 4 * k);
                load_numbers(f, numbers, k, wk);
                if (f.bits == 8 || k % 2 == 0)
                    __builtin_prefetch(numbers + RY_PANEL / 2 * f.bits * k + AHEAD, 0, 3);
                whole0 = group_add(f.bits, whole0, wk[0], xk);
                whole1 = group_add(f.bits, whole1, wk[1], xk);
            }
            const vf row_step = vf_bcast(&groups->step);
            sum0 = add_group(f.bits, sum0, whole0, row_step, load_steps(f, w, g * PANEL));
            sum1 = add_group(f.bits, sum1, whole1, row_step, load_steps(f, w, g * PANEL + 8));
        }
    vf_store(sums, sum0);
    vf_store(sums + VL, sum1);
}

/* ---- many rows ----------------------------------------------------------------------------- */

/* w: blocks of a panel, `depth` inputs in all */
RY_INLINE void expand_chunk(const ry_groups f, chunk *to, const uint8_t *w, size_t depth)
{
    uint8_t *numbers = to->numbers;
    float *steps = to->steps;
    for (; depth; depth -= RY_INT4_BLOCK, w += ry_groups_block(f)) {
        for (size_t i = 0; i < 2 * PANEL; i += VL, steps += VL)
            vf_store(steps, load_steps(f, w, i));
        for (size_t k = 0; k < RY_INT4_BLOCK / 4; k++, numbers += 64) {
            vb wk[2];
            load_numbers(f, w + ry_groups_steps(f), k, wk);
            vb_store(numbers, wk[0]);
            vb_store(numbers + 32, wk[1]);
        }
    }
}

typedef struct rows4 { /* converted activations, from some input on */
    const ry_group *groups;
    const int8_t *q;
    size_t n_groups, depth; /* from one row to the next */
} rows4;

/* c[mr, PANEL] += rows * chunk of n groups; x: the first of the rows */
RY_INLINE void product_rows(const unsigned bits, const int mr, const rows4 *x, const chunk *w,
                            size_t n, float *c, size_t c_row)
{
    for (size_t g = 0; g < n; g++) {
        const ry_group *groups = x->groups + g;
        const int8_t *q = x->q + g * RY_GROUP;
        const uint8_t *numbers = w->numbers + g * GROUP_BYTES;
        vg whole[MR][2];
        RY_UNROLL
        for (int i = 0; i < mr; i++)
            whole[i][0] = whole[i][1] = group_start(bits, groups + (size_t)i * x->n_groups);
        RY_UNROLL
        for (int k = 0; k < RY_GROUP / 4; k++) {
            const vb w0 = vb_load(numbers + 64 * k), w1 = vb_load(numbers + 64 * k + 32);
            RY_UNROLL
            for (int i = 0; i < mr; i++) {
                const vb xk = vb_four(q + (size_t)i * x->depth + 4 * k);
                whole[i][0] = group_add(bits, whole[i][0], w0, xk);
                whole[i][1] = group_add(bits, whole[i][1], w1, xk);
            }
            vb_step_done();
        }
        RY_UNROLL
        for (int i = 0; i < mr; i++) {
            const vf step = vf_bcast(&groups[(size_t)i * x->n_groups].step);
            float *to = c + (size_t)i * c_row;
            RY_UNROLL
            for (int v = 0; v < 2; v++)
                vf_store(to + v * VL, add_group(bits, vf_load(to + v * VL), whole[i][v], step,
                                                vf_load(w->steps + g * PANEL + v * VL)));
        }
    }
}

/* Not inlined: together in one function they run out of registers. */
#define PRODUCT_OF(bits, mr)                                                                      \
    static __attribute__((noinline)) void product_##bits##_##mr(const rows4 *x, const chunk *w,   \
                                                                size_t n, float *c, size_t c_row) \
    {                                                                                             \
        product_rows(bits, mr, x, w, n, c, c_row);                                                \
    }
PRODUCT_OF(4, 1)
PRODUCT_OF(4, 2)
PRODUCT_OF(4, 3)
PRODUCT_OF(4, 4)
PRODUCT_OF(8, 1)
PRODUCT_OF(8, 2)
PRODUCT_OF(8, 3)
PRODUCT_OF(8, 4)

typedef void product_function(const rows4 *x, const chunk *w, size_t n, float *c, size_t c_row);
static product_function *const products[2][MR] = {
    {product_4_1, product_4_2, product_4_3, product_4_4},
    {product_8_1, product_8_2, product_8_3, product_8_4}};

/* c[rows, n_panels * PANEL] = rows * panels; the sizes of groups of rows differ by one at most */
RY_INLINE void product(const ry_groups f, rows4 x, size_t rows, const uint8_t *w, size_t n_panels,
                       float *c)
{
    const size_t panel_bytes = ry_groups_panel(f, x.depth);
    const size_t groups = (rows + MR - 1) / MR, least = rows / groups, more = rows % groups;
    const size_t c_row = n_panels * PANEL;
    chunk expanded;
    memset(c, 0, rows * c_row * sizeof *c);
    for (size_t k = 0; k < x.depth; k += KC) {
        const size_t depth = x.depth - k < KC ? x.depth - k : KC;
        for (size_t p = 0; p < n_panels; p++) {
            rows4 at = {x.groups + k / RY_GROUP, x.q + k, x.n_groups, x.depth};
            float *to = c + p * PANEL;
            expand_chunk(f, &expanded, w + p * panel_bytes + k / RY_INT4_BLOCK * ry_groups_block(f),
                         depth);
            for (size_t g = 0; g < groups; g++) {
                const size_t mr = least + (g < more);
                products[f.bits == 8][mr - 1](&at, &expanded, depth / RY_GROUP, to, c_row);
                at.groups += mr * x.n_groups, at.q += mr * x.depth, to += mr * c_row;
            }
        }
    }
}

/* ---- tiles --------------------------------------------------------------------------------- */

#define MULTIPLY(name, bits, step_bytes)                                                   \
    static void multiply_##name(rows4 x, size_t rows, const uint8_t *w, size_t n_panels,   \
                                float *sums)                                               \
    {                                                                                      \
        const ry_groups f = {bits, step_bytes};                                            \
        for (size_t p = 0; rows == 1 && p < n_panels; p++)                                 \
            product_of_row(f, x.groups, x.q, w + p * ry_groups_panel(f, x.depth), x.depth, \
                           sums + p * PANEL);                                              \
        if (rows > 1) product(f, x, rows, w, n_panels, sums);                              \
    }
MULTIPLY(int4, 4, 1)
MULTIPLY(q4, 4, 2)
MULTIPLY(q8, 8, 2)

/* sums [rows, n_panels * PANEL] */
static void multiply(ry_groups f, rows4 x, size_t rows, const uint8_t *w, size_t n_panels,
                     float *sums)
{
    if (f.step_bytes == 1)
        multiply_int4(x, rows, w, n_panels, sums);
    else if (f.bits == 4)
        multiply_q4(x, rows, w, n_panels, sums);
    else
        multiply_q8(x, rows, w, n_panels, sums);
}

static renyi_status bind_op(ry_linear_op *op, const renyi_allocator *al, renyi_error *err)
{
    op->scratch_each = (size_t)RY_GRID_ROWS * RY_GRID_PANELS * PANEL;
    op->scratch = ry_alloc(al, op->n_threads * op->scratch_each, sizeof(float));
    return op->scratch ? RENYI_OK
                       : ry_fail_nomem(err, op->n_threads * op->scratch_each * sizeof(float));
}

/* Converted rows of all images follow each other without a gap. */
static ry_panel_grid grid_of(const ry_linear_op *op, ry_extent run)
{
    return ry_panel_grid_new(op, PANEL, RY_GRID_ROWS, run.n_images * run.rows, 1);
}

static size_t count_tiles(const ry_linear_op *op, ry_extent run) { return grid_of(op, run).tiles; }

static void finish_row(const ry_linear *l, size_t col, size_t n, const float *sums, float *y)
{
    for (size_t j = 0; j < n; j += VL) {
        const vf v =
            vf_fma(vf_load(sums + j), vf_load(l->scale + col + j), vf_load(l->bias + col + j));
        ry_epilogue_store(l->epilogue, y + j, v, n - j);
    }
}

static void tile_groups(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                        const void *input, float *y)
{
    const ry_linear *l = op->l;
    const size_t depth = ry_int4_depth(l->n_in), n_groups = depth / RY_GROUP;
    const size_t bytes = ry_groups_panel(l->groups, l->n_in);
    const ry_panel_grid g = grid_of(op, run);
    const ry_panel_place at = ry_panel_place_of(&g, l, t);
    const size_t col = at.panel * PANEL, width = at.panels * PANEL;
    const size_t cols = l->n_out - col < width ? l->n_out - col : width;
    const uint8_t *w = (const uint8_t *)l->packed + at.panel * bytes;
    const rows4 x = {(const ry_group *)input + at.row * n_groups,
                     (const int8_t *)input + ry_quant4_offset(g.rows, depth) + at.row * depth,
                     n_groups, depth};
    float *sums = op->scratch + thread * op->scratch_each;

    multiply(l->groups, x, at.rows, w, at.panels, sums);
    for (size_t r = 0; r < at.rows; r++) {
        const size_t image = (at.row + r) / run.rows, row = (at.row + r) % run.rows;
        finish_row(l, col, cols, sums + r * width, y + image * op->y.image + row * op->y.row + col);
    }
}

/* ---- rows to 8 bits ------------------------------------------------------------------------ */

/* The largest |x|, or NaN if one is NaN or infinite. x [RY_GROUP] */
RY_INLINE float largest(const vf x[4])
{
    vf most = vf_zero(), probe = vf_zero();
    float lanes[VL];
    RY_UNROLL
    for (int i = 0; i < 4; i++) {
        most = vf_max(most, vf_max(x[i], vf_sub(vf_zero(), x[i])));
        probe = vf_fma(x[i], vf_zero(), probe);
    }
    vf_store(lanes, most);
    for (int i = 1; i < VL; i++) lanes[0] = lanes[i] > lanes[0] ? lanes[i] : lanes[0];
    return isnan(vf_sum(probe)) ? NAN : lanes[0];
}

/* q [32] = x * inverse rounded, and the offsets of ry_group */
RY_INLINE void group_bytes(ry_group *group, int8_t *q, vf x[4], float inverse)
{
    const vf factor = vf_set1(inverse);
    RY_UNROLL
    for (int i = 0; i < 4; i++) x[i] = vf_mul(x[i], factor);
    const vb bytes = vb_from_floats(x);
    vb_store(q, bytes);
    vb_group_offset(group->offset, bytes);
}

/* The same bits as ry_quant4_row. */
static void convert_row(ry_group *groups, int8_t *q, const float *x, size_t n_in, size_t depth)
{
    for (size_t k = 0; k < depth; k += RY_GROUP) {
        vf v[4];
        RY_UNROLL
        for (size_t i = 0; i < 4; i++) {
            const size_t from = k + i * VL;
            v[i] = from < n_in ? vf_load_upto(x + from, n_in - from) : vf_zero();
        }
        const float most = largest(v);
        const int is_some = most >= RY_QUANT4_SMALLEST;
        groups[k / RY_GROUP].step = most / 127.0f;
        if (!is_some) RY_UNROLL for (int i = 0; i < 4; i++) v[i] = vf_zero(); /* NaN too */
        group_bytes(&groups[k / RY_GROUP], q + k, v, is_some ? 127.0f / most : 0.0f);
    }
}

static void convert_groups(const ry_linear *l, void *to, size_t rows, size_t first, size_t count,
                           const float *x, size_t x_row)
{
    const size_t depth = ry_int4_depth(l->n_in), n_groups = depth / RY_GROUP;
    int8_t *q = (int8_t *)to + ry_quant4_offset(rows, depth);
    for (size_t r = first; r < first + count; r++, x += x_row)
        convert_row((ry_group *)to + r * n_groups, q + r * depth, x, l->n_in, depth);
}

#define RY_GROUPS_VTABLE                                                                     \
    {                                                                                        \
        .pack = ry_groups_pack, .reads = 1, .bind = bind_op, .tiles = count_tiles,           \
        .tile = tile_groups, .input_bytes = ry_groups_input_bytes, .convert = convert_groups \
    }
