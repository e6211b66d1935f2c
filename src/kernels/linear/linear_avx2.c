/* linear_avx2.c - our packed products for AVX2: weights as floats, for machines without AVX-512 and
 * for single rows; and as bfloat16.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX2
#include "kernels/linear/linear_template.h"

#include <string.h>

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

static renyi_status pack_f32(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                             renyi_error *err)
{
    const size_t padded = (spec->n_out + PANEL - 1) / PANEL * PANEL;
    RY_TRY(ry_linear_take(l, padded * spec->n_in * sizeof(float), al, err));
    RY_TRY(ry_linear_take_bias(l, spec, padded, al, err));
    return spec->w ? update_f32(l, spec->w, 0, err) : RENYI_OK;
}

static void tile_f32(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                     const void *x, float *y)
{
    run_tile(NULL, op, t, run, thread, x, y);
}

const ry_linear_vtable ry_linear_avx2 = {.pack = pack_f32,
                                         .update = update_f32,
                                         .bind = bind_op,
                                         .tiles = count_tiles,
                                         .tile = tile_f32,
                                         .row_padding = RY_LINE};

const ry_linear_vtable ry_linear_bf16_avx2 = {.pack = pack_bf16,
                                              .reads = 1,
                                              .bind = bind_op,
                                              .tiles = count_tiles,
                                              .tile = tile_bf16,
                                              .row_padding = RY_LINE};
