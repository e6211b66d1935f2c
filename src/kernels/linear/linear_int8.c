/* linear_int8.c - weights of 8 bits: what every body keeps of a channel, and the body in plain C.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linear/linear_int8.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

renyi_status ry_int8_columns(ry_linear *l, const ry_linear_spec *spec, size_t n_padded,
                             const renyi_allocator *al, renyi_error *err)
{
    l->bias = ry_calloc(al, n_padded, sizeof(float));
    l->scale = ry_calloc(al, n_padded, sizeof(float));
    l->sum = ry_calloc(al, n_padded, sizeof(float));
    if (!l->bias || !l->scale || !l->sum) return ry_fail_nomem(err, n_padded * sizeof(float));
    if (spec->bias) memcpy(l->bias, spec->bias, spec->n_out * sizeof(float));
    return RENYI_OK;
}

void ry_int8_channel(ry_linear *l, const ry_linear_spec *spec, size_t j, const float *w, int8_t *q,
                     int pairs)
{
    int64_t sum = 0;
    const float known = spec->scale ? spec->scale[j] : 0.0f;
    const int fits = spec->scale && ry_quant_channel_as(q, w, spec->n_in, known, pairs);
    l->scale[j] = fits ? known : ry_quant_channel(q, w, spec->n_in, pairs);
    for (size_t k = 0; k < spec->n_in; k++) sum += q[k];
    l->sum[j] = l->scale[j] * (float)sum;
}

static void pack_panel(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                       const float *rows, float *scratch, int pairs)
{
    int8_t *panel = (int8_t *)l->packed + first * ry_int8_depth(l->n_in), *q = (int8_t *)scratch;
    for (size_t lane = 0; lane < count; lane++) {
        ry_int8_channel(l, spec, first + lane, rows + lane * l->n_in, q, pairs);
        for (size_t k = 0; k < l->n_in; k++) panel[ry_int8_place(lane, k)] = q[k];
    }
}

static void pack_paired(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                        const float *rows, float *scratch)
{
    pack_panel(l, spec, first, count, rows, scratch, 1);
}

static void pack_single(ry_linear *l, const ry_linear_spec *spec, size_t first, size_t count,
                        const float *rows, float *scratch)
{
    pack_panel(l, spec, first, count, rows, scratch, 0);
}

renyi_status ry_int8_pack(ry_linear *l, const ry_linear_spec *spec, int pairs,
                          const renyi_allocator *al, renyi_error *err)
{
    const size_t n_panels = ry_panels_of(l->n_out);
    const size_t bytes = n_panels * ry_panel_bytes(RENYI_DTYPE_INT8, l->n_in);
    RY_TRY(ry_int8_columns(l, spec, n_panels * RY_PANEL, al, err));
    if (spec->stored) {
        l->packed = (void *)(uintptr_t)spec->stored->panels;
        l->packed_bytes = bytes;
        l->borrowed = 1;
        memcpy(l->scale, spec->stored->scale, l->n_out * sizeof(float));
        memcpy(l->sum, spec->stored->sum, l->n_out * sizeof(float));
        return RENYI_OK;
    }
    RY_TRY(ry_linear_take(l, bytes, al, err));
    return ry_linear_each_panel(l, spec, RY_PANEL, pairs ? pack_paired : pack_single, al, err);
}

/* ---- plain C ------------------------------------------------------------------------------- */

static renyi_status pack(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                         renyi_error *err)
{
    return ry_int8_pack(l, spec, 0, al, err);
}

static size_t tiles(const ry_linear_op *op, ry_extent run)
{
    (void)op;
    return run.n_images * run.rows;
}

/* sums[RY_PANEL] of a row; bytes of x beyond n_in meet weights that are zeros */
static void panel_sums(int32_t *sums, const uint8_t *x, const int8_t *w, size_t depth)
{
    memset(sums, 0, RY_PANEL * sizeof *sums);
    for (size_t k = 0; k < depth; k += 4, w += 4 * RY_PANEL)
        for (size_t lane = 0; lane < RY_PANEL; lane++)
            for (size_t i = 0; i < 4; i++) sums[lane] += x[k + i] * w[4 * lane + i];
}

/* A tile is one row of x. */
static void tile(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                 const void *input, float *y)
{
    (void)thread;
    const ry_linear *l = op->l;
    const size_t depth = ry_int8_depth(l->n_in);
    const size_t image = t / run.rows, row = t % run.rows;
    const ry_quant quant = ((const ry_quant *)input)[t];
    const uint8_t *x =
        (const uint8_t *)input + ry_quant_offset(run.n_images * run.rows) + t * depth;
    float *yr = y + image * op->y.image + row * op->y.row;

    for (size_t j = 0; j < l->n_out; j += RY_PANEL) {
        const size_t count = l->n_out - j < RY_PANEL ? l->n_out - j : RY_PANEL;
        const ry_quant_columns columns = {l->scale + j, l->sum + j, l->bias + j};
        int32_t sums[RY_PANEL];
        panel_sums(sums, x, (const int8_t *)l->packed + j * depth, depth);
        ry_quant_scalar.finish(yr + j, sums, quant, &columns, count, l->epilogue);
    }
}

static size_t input_bytes(const ry_linear *l, size_t rows)
{
    return ry_quant_offset(rows) + rows * ry_int8_depth(l->n_in);
}

static void convert(const ry_linear *l, void *to, size_t rows, size_t first, size_t count,
                    const float *x, size_t x_row)
{
    const size_t depth = ry_int8_depth(l->n_in);
    ry_quant_scalar.quantise((uint8_t *)to + ry_quant_offset(rows) + first * depth, depth,
                             (ry_quant *)to + first, x, x_row, count, l->n_in,
                             l->has_range ? &l->range : NULL);
}

const ry_linear_vtable ry_linear_int8_scalar = {.pack = pack,
                                                .reads = 1,
                                                .tiles = tiles,
                                                .tile = tile,
                                                .input_bytes = input_bytes,
                                                .convert = convert};
