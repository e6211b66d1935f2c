/* linear_int4_avx2.c - the 4-bit product with vpmaddubsw, which multiplies unsigned bytes (weights,
 * 0 .. 15) by signed bytes (the row) and adds pairs in 16 bits. A group of 32 inputs is summed in
 * 16 bits, two instructions per 32 products; then it is widened to 32 bits, converted to float and
 * multiplied by both steps.
 *
 * Many rows: a chunk of a panel is expanded to one byte per weight once, in the first-level cache,
 * and all rows of the block pass over it. One row: half bytes are expanded as they are loaded.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX2
#include "kernels/simd.h"

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

/* sum += (16-bit sums of a group) * step of the row * steps of the outputs */
RY_INLINE vf add_group(vf sum, __m256i pairs, vf row_step, vf steps)
{
    const __m256i whole = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    return vf_fma(vf_mul(_mm256_cvtepi32_ps(whole), row_step), steps, sum);
}

/* Adds products of neighbours in 16 bits. The asm keeps the compiler from reordering: it would keep
 * all products of a group to add them as a tree, and run out of registers. */
RY_INLINE __m256i add_pairs(__m256i sum, __m256i w, __m256i x)
{
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, x));
    __asm__("" : "+x"(sum));
    return sum;
}

RY_INLINE __m256i broadcast4(const void *four)
{
    int32_t bits;
    memcpy(&bits, four, 4);
    return _mm256_set1_epi32(bits);
}

RY_INLINE vf load_steps(const uint8_t *eight)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)eight)));
}

/* ---- one row ------------------------------------------------------------------------------- */

/* sums[PANEL] = x * panel. The panel is read once, front to back; prefetching runs past its end,
 * where the next panel begins. */
static void product_of_row(const ry_group *groups, const int8_t *x, const uint8_t *w, size_t depth,
                           float *sums)
{
    const __m256i low = _mm256_set1_epi8(15);
    vf sum0 = vf_zero(), sum1 = vf_zero();
    for (; depth; depth -= RY_INT4_BLOCK, w += RY_INT4_BYTES)
        for (int g = 0; g < 2; g++, groups++, x += RY_GROUP) {
            const uint8_t *numbers = w + RY_INT4_STEPS + g * (GROUP_BYTES / 2),
                          *steps = w + g * PANEL;
            __m256i pairs0 = broadcast4(groups->offset), pairs1 = pairs0;
            RY_UNROLL
            for (int k = 0; k < RY_GROUP / 4; k++) {
                const __m256i both = _mm256_loadu_si256((const __m256i *)(numbers + 32 * k));
                const __m256i w0 = _mm256_and_si256(both, low);
                const __m256i w1 = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
                const __m256i xk = broadcast4(x + 4 * k);
                if (k % 2 == 0) __builtin_prefetch(numbers + 32 * k + AHEAD, 0, 3);
                pairs0 = add_pairs(pairs0, w0, xk);
                pairs1 = add_pairs(pairs1, w1, xk);
            }
            const vf row_step = vf_bcast(&groups->step);
            sum0 = add_group(sum0, pairs0, row_step, load_steps(steps));
            sum1 = add_group(sum1, pairs1, row_step, load_steps(steps + 8));
        }
    vf_store(sums, sum0);
    vf_store(sums + VL, sum1);
}

/* ---- many rows ----------------------------------------------------------------------------- */

/* w: blocks of a panel, `depth` inputs in all */
static void expand_chunk(chunk *to, const uint8_t *w, size_t depth)
{
    const __m256i low = _mm256_set1_epi8(15);
    uint8_t *numbers = to->numbers;
    float *steps = to->steps;
    for (; depth; depth -= RY_INT4_BLOCK, w += RY_INT4_BYTES) {
        for (int i = 0; i < RY_INT4_STEPS; i += VL, steps += VL) vf_store(steps, load_steps(w + i));
        for (int k = RY_INT4_STEPS; k < RY_INT4_BYTES; k += 32, numbers += 64) {
            const __m256i both = _mm256_loadu_si256((const __m256i *)(w + k));
            const __m256i upper = _mm256_srli_epi16(both, 4);
            _mm256_storeu_si256((__m256i *)numbers, _mm256_and_si256(both, low));
            _mm256_storeu_si256((__m256i *)(numbers + 32), _mm256_and_si256(upper, low));
        }
    }
}

typedef struct rows4 { /* converted activations, from some input on */
    const ry_group *groups;
    const int8_t *q;
    size_t n_groups, depth; /* from one row to the next */
} rows4;

/* c[mr, PANEL] += rows * chunk of n groups; x: the first of the rows */
RY_INLINE void product_rows(const int mr, const rows4 *x, const chunk *w, size_t n, float *c,
                            size_t c_row)
{
    for (size_t g = 0; g < n; g++) {
        const ry_group *groups = x->groups + g;
        const int8_t *q = x->q + g * RY_GROUP;
        const uint8_t *numbers = w->numbers + g * GROUP_BYTES;
        __m256i pairs[MR][2];
        RY_UNROLL
        for (int i = 0; i < mr; i++)
            pairs[i][0] = pairs[i][1] = broadcast4(groups[(size_t)i * x->n_groups].offset);
        RY_UNROLL
        for (int k = 0; k < RY_GROUP / 4; k++) {
            const __m256i w0 = _mm256_loadu_si256((const __m256i *)(numbers + 64 * k));
            const __m256i w1 = _mm256_loadu_si256((const __m256i *)(numbers + 64 * k + 32));
            RY_UNROLL
            for (int i = 0; i < mr; i++) {
                const __m256i xk = broadcast4(q + (size_t)i * x->depth + 4 * k);
                pairs[i][0] = add_pairs(pairs[i][0], w0, xk);
                pairs[i][1] = add_pairs(pairs[i][1], w1, xk);
            }
        }
        RY_UNROLL
        for (int i = 0; i < mr; i++) {
            const vf step = vf_bcast(&groups[(size_t)i * x->n_groups].step);
            float *to = c + (size_t)i * c_row;
            RY_UNROLL
            for (int v = 0; v < 2; v++)
                vf_store(to + v * VL, add_group(vf_load(to + v * VL), pairs[i][v], step,
                                                vf_load(w->steps + g * PANEL + v * VL)));
        }
    }
}

/* Not inlined: together in one function they run out of registers. */
#define PRODUCT_OF(mr)                                                                           \
    static __attribute__((noinline)) void product_##mr(const rows4 *x, const chunk *w, size_t n, \
                                                       float *c, size_t c_row)                   \
    {                                                                                            \
        product_rows(mr, x, w, n, c, c_row);                                                     \
    }
PRODUCT_OF(1)
PRODUCT_OF(2)
PRODUCT_OF(3)
PRODUCT_OF(4)

static void product_group(size_t mr, const rows4 *x, const chunk *w, size_t n, float *c,
                          size_t c_row)
{
    switch (mr) {
    case 1: product_1(x, w, n, c, c_row); break;
    case 2: product_2(x, w, n, c, c_row); break;
    case 3: product_3(x, w, n, c, c_row); break;
    default: product_4(x, w, n, c, c_row); break;
    }
}

/* c[rows, n_panels * PANEL] = rows * panels; the sizes of groups of rows differ by one at most */
static void product(rows4 x, size_t rows, const uint8_t *w, size_t panel_bytes, size_t n_panels,
                    float *c)
{
    const size_t groups = (rows + MR - 1) / MR, least = rows / groups, more = rows % groups;
    const size_t c_row = n_panels * PANEL;
    chunk expanded;
    memset(c, 0, rows * c_row * sizeof *c);
    for (size_t k = 0; k < x.depth; k += KC) {
        const size_t depth = x.depth - k < KC ? x.depth - k : KC;
        for (size_t p = 0; p < n_panels; p++) {
            rows4 at = {x.groups + k / RY_GROUP, x.q + k, x.n_groups, x.depth};
            float *to = c + p * PANEL;
            expand_chunk(&expanded, w + p * panel_bytes + k / RY_INT4_BLOCK * RY_INT4_BYTES, depth);
            for (size_t g = 0; g < groups; g++) {
                const size_t mr = least + (g < more);
                product_group(mr, &at, &expanded, depth / RY_GROUP, to, c_row);
                at.groups += mr * x.n_groups, at.q += mr * x.depth, to += mr * c_row;
            }
        }
    }
}

/* ---- tiles --------------------------------------------------------------------------------- */

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
    return ry_panel_grid_new(op, PANEL, run.n_images * run.rows, 1);
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

static void tile_int4(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                      const void *input, float *y)
{
    const ry_linear *l = op->l;
    const size_t depth = ry_int4_depth(l->n_in), n_groups = depth / RY_GROUP;
    const size_t bytes = ry_panel_bytes(RENYI_DTYPE_INT4, l->n_in);
    const ry_panel_grid g = grid_of(op, run);
    const ry_panel_place at = ry_panel_place_of(&g, l, t);
    const size_t col = at.panel * PANEL, width = at.panels * PANEL;
    const size_t cols = l->n_out - col < width ? l->n_out - col : width;
    const uint8_t *w = (const uint8_t *)l->packed + at.panel * bytes;
    const rows4 x = {(const ry_group *)input + at.row * n_groups,
                     (const int8_t *)input + ry_quant4_offset(g.rows, depth) + at.row * depth,
                     n_groups, depth};
    float *sums = op->scratch + thread * op->scratch_each;

    if (at.rows == 1)
        for (size_t p = 0; p < at.panels; p++)
            product_of_row(x.groups, x.q, w + p * bytes, depth, sums + p * PANEL);
    else
        product(x, at.rows, w, bytes, at.panels, sums);
    for (size_t r = 0; r < at.rows; r++) {
        const size_t image = (at.row + r) / run.rows, row = (at.row + r) % run.rows;
        finish_row(l, col, cols, sums + r * width, y + image * op->y.image + row * op->y.row + col);
    }
}

/* ---- rows to 8 bits ------------------------------------------------------------------------ */

/* The largest |x|, or NaN if one is NaN or infinite. x [RY_GROUP] */
RY_INLINE float largest(const vf x[4])
{
    const vf sign = vf_set1(-0.0f);
    vf most = vf_zero(), probe = vf_zero();
    float lanes[VL];
    RY_UNROLL
    for (int i = 0; i < 4; i++) {
        most = vf_max(most, _mm256_andnot_ps(sign, x[i]));
        probe = vf_fma(x[i], vf_zero(), probe);
    }
    vf_store(lanes, most);
    for (int i = 1; i < VL; i++) lanes[0] = lanes[i] > lanes[0] ? lanes[i] : lanes[0];
    return isnan(vf_sum(probe)) ? NAN : lanes[0];
}

/* q [32] = x * inverse rounded, and the offsets of ry_group */
RY_INLINE void group_bytes(ry_group *group, int8_t *q, const vf x[4], float inverse)
{
    const vf factor = vf_set1(inverse);
    __m256i n[4];
    RY_UNROLL
    for (int i = 0; i < 4; i++) n[i] = _mm256_cvtps_epi32(vf_mul(x[i], factor));
    /* packing works within 128-bit halves: fours of bytes come in the order 0 2 4 6 1 3 5 7 */
    const __m256i mixed =
        _mm256_packs_epi16(_mm256_packs_epi32(n[0], n[1]), _mm256_packs_epi32(n[2], n[3]));
    const __m256i bytes =
        _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)q, bytes);
    /* 8 times pairs of neighbours, then the sum of the eight fours */
    __m256i sum = _mm256_maddubs_epi16(_mm256_set1_epi8(RY_INT4_ZERO), bytes);
    sum = _mm256_add_epi16(sum, _mm256_permute4x64_epi64(sum, 0x4e));
    sum = _mm256_add_epi16(sum, _mm256_shuffle_epi32(sum, 0x4e));
    sum = _mm256_add_epi16(sum, _mm256_shuffle_epi32(sum, 0xb1));
    const int32_t pair = _mm256_cvtsi256_si32(_mm256_sub_epi16(_mm256_setzero_si256(), sum));
    memcpy(group->offset, &pair, sizeof pair);
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

static void convert_int4(const ry_linear *l, void *to, size_t rows, size_t first, size_t count,
                         const float *x, size_t x_row)
{
    const size_t depth = ry_int4_depth(l->n_in), n_groups = depth / RY_GROUP;
    int8_t *q = (int8_t *)to + ry_quant4_offset(rows, depth);
    for (size_t r = first; r < first + count; r++, x += x_row)
        convert_row((ry_group *)to + r * n_groups, q + r * depth, x, l->n_in, depth);
}

const ry_linear_vtable ry_linear_int4_avx2 = {.pack = ry_int4_pack,
                                              .reads = 1,
                                              .bind = bind_op,
                                              .tiles = count_tiles,
                                              .tile = tile_int4,
                                              .input_bytes = ry_int4_input_bytes,
                                              .convert = convert_int4};
