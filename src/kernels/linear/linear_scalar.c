/* linear_scalar.c - y = x W^T + b in plain C with weights of f32, bf16, 8 and 4 bits: the
 * specification of the vector implementations. The vector products of bf16 and int4 have the same
 * bits as these, up to activation functions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/epilogue.h"
#include "kernels/linear/linear_backend.h"

#include <string.h>

/* A tile is one row of x, in all of them. */
static size_t count_rows(const ry_linear_op *op, ry_extent run)
{
    (void)op;
    return run.rows * run.n_images;
}

static const float *input_row(const ry_linear_op *op, size_t t, ry_extent run, const void *x)
{
    return (const float *)x + t / run.rows * op->x.image + t % run.rows * op->x.row;
}

static float *output_row(const ry_linear_op *op, size_t t, ry_extent run, float *y)
{
    return y + t / run.rows * op->y.image + t % run.rows * op->y.row;
}

/* ---- f32: packed [n_out, n_in] --------------------------------------------------------------- */

static renyi_status update_f32(ry_linear *l, const float *w, int transposed, renyi_error *err)
{
    float *to = l->packed;
    (void)err;
    for (size_t j = 0; j < l->n_out; j++)
        for (size_t k = 0; k < l->n_in; k++)
            to[j * l->n_in + k] = transposed ? w[k * l->n_out + j] : w[j * l->n_in + k];
    return RENYI_OK;
}

static renyi_status pack_f32(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                             renyi_error *err)
{
    RY_TRY(ry_linear_take(l, spec, spec->n_out * spec->n_in * sizeof(float), al, err));
    RY_TRY(ry_linear_take_bias(l, spec, spec->n_out, al, err));
    if (spec->w) return update_f32(l, spec->w, 0, err);
    return spec->reader ? ry_linear_read_all(l, spec, l->packed, err) : RENYI_OK;
}

/* Eight partial sums, so that the compiler may use the vectors of the baseline instructions. */
static float dot(const float *a, const float *b, size_t n)
{
    float s[8] = {0};
    size_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (size_t i = 0; i < 8; i++) s[i] += a[k + i] * b[k + i];
    for (; k < n; k++) s[0] += a[k] * b[k];
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

static void tile_f32(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                     const void *input, float *y)
{
    (void)thread;
    const ry_linear *l = op->l;
    const float *x = input_row(op, t, run, input);
    float *to = output_row(op, t, run, y);

    for (size_t j = 0; j < l->n_out; j++) {
        const float v = dot(x, (const float *)l->packed + j * l->n_in, l->n_in) + l->bias[j];
        ry_epilogue_one(l->epilogue, to + j, v);
    }
}

const ry_linear_vtable ry_linear_scalar = {
    .pack = pack_f32, .reads = 1, .update = update_f32, .tiles = count_rows, .tile = tile_f32};

/* ---- bf16: packed [n_out, n_in] -------------------------------------------------------------- */

static renyi_status pack_bf16(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                              renyi_error *err)
{
    return ry_bf16_pack(l, spec, 1, al, err);
}

static float from_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void tile_bf16(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                      const void *input, float *y)
{
    (void)thread;
    const ry_linear *l = op->l;
    const float *x = input_row(op, t, run, input);
    float *to = output_row(op, t, run, y);

    for (size_t j = 0; j < l->n_out; j++) {
        const uint16_t *w = (const uint16_t *)l->packed + j * l->n_in;
        float sum = 0.0f;
        for (size_t k = 0; k < l->n_in; k++) sum = fmaf(x[k], from_bf16(w[k]), sum);
        ry_epilogue_one(l->epilogue, to + j, sum + l->bias[j]);
    }
}

const ry_linear_vtable ry_linear_bf16_scalar = {
    .pack = pack_bf16, .reads = 1, .tiles = count_rows, .tile = tile_bf16};

/* ---- int8: packed in panels ------------------------------------------------------------------ */

static renyi_status pack_int8(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                              renyi_error *err)
{
    return ry_int8_pack(l, spec, 0, al, err);
}

/* sums[RY_PANEL] of a row; bytes of x after n_in are multiplied with zero weights */
static void panel_sums(int32_t *sums, const uint8_t *x, const int8_t *w, size_t depth)
{
    memset(sums, 0, RY_PANEL * sizeof *sums);
    for (size_t k = 0; k < depth; k += 4, w += 4 * RY_PANEL)
        for (size_t lane = 0; lane < RY_PANEL; lane++)
            for (size_t i = 0; i < 4; i++) sums[lane] += x[k + i] * w[4 * lane + i];
}

static void tile_int8(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                      const void *input, float *y)
{
    (void)thread;
    const ry_linear *l = op->l;
    const size_t depth = ry_int8_depth(l->n_in);
    const ry_quant quant = ((const ry_quant *)input)[t];
    const uint8_t *x =
        (const uint8_t *)input + ry_quant_offset(run.n_images * run.rows) + t * depth;
    float *to = output_row(op, t, run, y);

    for (size_t j = 0; j < l->n_out; j += RY_PANEL) {
        const size_t count = l->n_out - j < RY_PANEL ? l->n_out - j : RY_PANEL;
        const ry_quant_columns columns = {l->scale + j, l->sum + j, l->bias + j};
        int32_t sums[RY_PANEL];
        panel_sums(sums, x, (const int8_t *)l->packed + j * depth, depth);
        ry_quant_scalar.finish(to + j, sums, quant, &columns, count, l->epilogue);
    }
}

static void convert_int8(const ry_linear *l, void *to, size_t rows, size_t first, size_t count,
                         const float *x, size_t x_row)
{
    const size_t depth = ry_int8_depth(l->n_in);
    ry_quant_scalar.quantize((uint8_t *)to + ry_quant_offset(rows) + first * depth, depth,
                             (ry_quant *)to + first, x, x_row, count, l->n_in,
                             l->has_range ? &l->range : NULL);
}

const ry_linear_vtable ry_linear_int8_scalar = {.pack = pack_int8,
                                                .reads = 1,
                                                .tiles = count_rows,
                                                .tile = tile_int8,
                                                .input_bytes = ry_int8_input_bytes,
                                                .convert = convert_int8};

/* ---- int4 and blocks: packed in panels ------------------------------------------------------- */

/* sum over k of qx * qw in group i of an output */
static int32_t group_sum(ry_groups g, const uint8_t *panel, size_t lane, const int8_t *x, size_t i)
{
    int32_t sum = 0;
    for (size_t k = i * RY_GROUP; k < (i + 1) * RY_GROUP; k++)
        sum += x[k] * ry_group_number(g, panel, lane, k);
    return sum;
}

static void tile_groups(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                        const void *input, float *y)
{
    (void)thread;
    const ry_linear *l = op->l;
    const size_t depth = ry_int4_depth(l->n_in), n_groups = depth / RY_GROUP;
    const size_t bytes = ry_groups_panel(l->groups, l->n_in);
    const ry_group *groups = (const ry_group *)input + t * n_groups;
    const int8_t *x =
        (const int8_t *)input + ry_quant4_offset(run.n_images * run.rows, depth) + t * depth;
    float *to = output_row(op, t, run, y);

    for (size_t j = 0; j < l->n_out; j++) {
        const uint8_t *panel = (const uint8_t *)l->packed + j / RY_PANEL * bytes;
        float sum = 0.0f;
        for (size_t i = 0; i < n_groups; i++)
            sum = fmaf((float)group_sum(l->groups, panel, j % RY_PANEL, x, i) * groups[i].step,
                       ry_group_step(l->groups, panel, j % RY_PANEL, i), sum);
        ry_epilogue_one(l->epilogue, to + j, fmaf(sum, l->scale[j], l->bias[j]));
    }
}

static void convert_groups(const ry_linear *l, void *to, size_t rows, size_t first, size_t count,
                           const float *x, size_t x_row)
{
    const size_t depth = ry_int4_depth(l->n_in), n_groups = depth / RY_GROUP;
    int8_t *q = (int8_t *)to + ry_quant4_offset(rows, depth);
    for (size_t r = first; r < first + count; r++, x += x_row)
        ry_quant4_row((ry_group *)to + r * n_groups, q + r * depth, x, l->n_in, depth);
}

const ry_linear_vtable ry_linear_groups_scalar = {.pack = ry_groups_pack,
                                                  .reads = 1,
                                                  .tiles = count_rows,
                                                  .tile = tile_groups,
                                                  .input_bytes = ry_groups_input_bytes,
                                                  .convert = convert_groups};
