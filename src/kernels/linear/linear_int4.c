/* linear_int4.c - weights of 4 bits: packing, and the product in plain C. Its results have the bits
 * of every other body's, up to activation functions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linear/linear_int4.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/epilogue.h"

#include <string.h>

static void pack_panel(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                       const float *rows, float *scratch)
{
    const size_t bytes = ry_panel_bytes(RENYI_DTYPE_INT4, l->n_in);
    ry_panel panel = {.bytes = (char *)l->packed + first / RY_PANEL * bytes};
    (void)spec;
    ry_panel_make(&panel, RENYI_DTYPE_INT4, rows, count, l->n_in, scratch);
    memcpy(l->scale + first, panel.scale, sizeof panel.scale);
}

renyi_status ry_int4_pack(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                          renyi_error *err)
{
    const size_t padded = ry_panels_of(l->n_out) * RY_PANEL;
    const size_t bytes = padded / RY_PANEL * ry_panel_bytes(RENYI_DTYPE_INT4, l->n_in);
    l->bias = ry_calloc(al, padded, sizeof(float));
    l->scale = ry_calloc(al, padded, sizeof(float));
    if (!l->bias || !l->scale) return ry_fail_nomem(err, padded * sizeof(float));
    if (spec->bias) memcpy(l->bias, spec->bias, l->n_out * sizeof(float));
    if (spec->stored) {
        l->packed = (void *)(uintptr_t)spec->stored->panels;
        l->packed_bytes = bytes;
        l->borrowed = 1;
        memcpy(l->scale, spec->stored->scale, l->n_out * sizeof(float));
        return RENYI_OK;
    }
    RY_TRY(ry_linear_take(l, bytes, al, err));
    return ry_linear_each_panel(l, spec, RY_PANEL, pack_panel, al, err);
}

size_t ry_int4_input_bytes(const ry_linear *l, size_t rows)
{
    const size_t depth = ry_int4_depth(l->n_in);
    return ry_quant4_offset(rows, depth) + rows * depth;
}

/* ---- plain C ------------------------------------------------------------------------------- */

static size_t tiles(const ry_linear_op *op, ry_extent run)
{
    (void)op;
    return run.n_images * run.rows;
}

/* sum over k of qx * (qw - 8) in group g of an output */
static int32_t group_sum(const uint8_t *panel, size_t lane, const int8_t *x, size_t g)
{
    int32_t sum = 0;
    for (size_t k = g * RY_GROUP; k < (g + 1) * RY_GROUP; k++) {
        const uint8_t byte = panel[ry_int4_place(lane, k)];
        sum += x[k] * ((lane < 8 ? byte & 15 : byte >> 4) - RY_INT4_ZERO);
    }
    return sum;
}

/* A tile is one row of x. */
static void tile(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                 const void *input, float *y)
{
    (void)thread;
    const ry_linear *l = op->l;
    const size_t depth = ry_int4_depth(l->n_in), n_groups = depth / RY_GROUP;
    const size_t bytes = ry_panel_bytes(RENYI_DTYPE_INT4, l->n_in);
    const ry_group *groups = (const ry_group *)input + t * n_groups;
    const int8_t *x =
        (const int8_t *)input + ry_quant4_offset(run.n_images * run.rows, depth) + t * depth;
    float *yr = y + t / run.rows * op->y.image + t % run.rows * op->y.row;

    for (size_t j = 0; j < l->n_out; j++) {
        const uint8_t *panel = (const uint8_t *)l->packed + j / RY_PANEL * bytes;
        float sum = 0.0f;
        for (size_t g = 0; g < n_groups; g++)
            sum = fmaf((float)group_sum(panel, j % RY_PANEL, x, g) * groups[g].step,
                       (float)panel[ry_int4_step_place(j % RY_PANEL, g)], sum);
        ry_epilogue_one(l->epilogue, yr + j, fmaf(sum, l->scale[j], l->bias[j]));
    }
}

static void convert(const ry_linear *l, void *to, size_t rows, size_t first, size_t count,
                    const float *x, size_t x_row)
{
    const size_t depth = ry_int4_depth(l->n_in), n_groups = depth / RY_GROUP;
    int8_t *q = (int8_t *)to + ry_quant4_offset(rows, depth);
    for (size_t r = first; r < first + count; r++, x += x_row)
        ry_quant4_row((ry_group *)to + r * n_groups, q + r * depth, x, l->n_in, depth);
}

const ry_linear_vtable ry_linear_int4_scalar = {.pack = ry_int4_pack,
                                                .reads = 1,
                                                .tiles = tiles,
                                                .tile = tile,
                                                .input_bytes = ry_int4_input_bytes,
                                                .convert = convert};
