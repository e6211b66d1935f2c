/* linear_bf16.c - weights kept as bfloat16, arithmetic in f32: half the memory, and a product of
 * one row, which is bound by it, in half the time. Packing, and the product in plain C.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linear/linear_bf16.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/epilogue.h"
#include "kernels/rows/quant.h"

#include <string.h>

/* scratch: a row of bfloat16 */
static void pack_row(ry_linear *l, size_t j, size_t width, const float *row, float *scratch)
{
    uint16_t *to = (uint16_t *)l->packed + j / width * width * l->n_in + j % width;
    uint16_t *half = (uint16_t *)scratch;
    ry_quant_scalar.to_bf16(half, l->n_in, row, l->n_in, 1, l->n_in);
    for (size_t k = 0; k < l->n_in; k++) to[k * width] = half[k];
}

static void pack_1(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                   const float *rows, float *scratch)
{
    (void)spec;
    for (size_t i = 0; i < count; i++) pack_row(l, first + i, 1, rows + i * l->n_in, scratch);
}

static void pack_16(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                    const float *rows, float *scratch)
{
    (void)spec;
    for (size_t i = 0; i < count; i++) pack_row(l, first + i, 16, rows + i * l->n_in, scratch);
}

static void pack_32(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                    const float *rows, float *scratch)
{
    (void)spec;
    for (size_t i = 0; i < count; i++) pack_row(l, first + i, 32, rows + i * l->n_in, scratch);
}

renyi_status ry_bf16_pack(ry_linear *l, const ry_linear_spec *spec, size_t width,
                          const renyi_allocator *al, renyi_error *err)
{
    const size_t padded = (l->n_out + width - 1) / width * width;
    const ry_panel_packer packer = width == 1 ? pack_1 : width == 16 ? pack_16 : pack_32;
    l->bias = ry_calloc(al, padded, sizeof(float));
    if (!l->bias) return ry_fail_nomem(err, padded * sizeof(float));
    if (spec->bias) memcpy(l->bias, spec->bias, l->n_out * sizeof(float));
    RY_TRY(ry_linear_take(l, padded * l->n_in * sizeof(uint16_t), al, err));
    return ry_linear_each_panel(l, spec, 16, packer, al, err);
}

/* ---- plain C: packed [n_out, n_in] --------------------------------------------------------- */

static renyi_status pack(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                         renyi_error *err)
{
    return ry_bf16_pack(l, spec, 1, al, err);
}

static size_t tiles(const ry_linear_op *op, ry_extent run)
{
    (void)op;
    return run.n_images * run.rows;
}

static float from_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A tile is one row of x. */
static void tile(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                 const void *input, float *y)
{
    (void)thread;
    const ry_linear *l = op->l;
    const size_t image = t / run.rows, row = t % run.rows;
    const float *x = (const float *)input + image * op->x.image + row * op->x.row;
    float *yr = y + image * op->y.image + row * op->y.row;

    for (size_t j = 0; j < l->n_out; j++) {
        const uint16_t *w = (const uint16_t *)l->packed + j * l->n_in;
        float sum = 0.0f;
        for (size_t k = 0; k < l->n_in; k++) sum = fmaf(x[k], from_bf16(w[k]), sum);
        ry_epilogue_one(l->epilogue, yr + j, sum + l->bias[j]);
    }
}

const ry_linear_vtable ry_linear_bf16_scalar = {
    .pack = pack, .reads = 1, .tiles = tiles, .tile = tile};
