/* linear_int8.c - weights of 8 bits: what every body keeps of a channel, and the body in plain C.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linear_int8.h"

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

void ry_int8_channel(ry_linear *l, const ry_linear_spec *spec, size_t j, int8_t *q, int pairs)
{
    int64_t sum = 0;
    const float *w = spec->w + j * spec->n_in, known = spec->scale ? spec->scale[j] : 0.0f;
    const int fits = spec->scale && ry_quant_channel_as(q, w, spec->n_in, known, pairs);
    l->scale[j] = fits ? known : ry_quant_channel(q, w, spec->n_in, pairs);
    for (size_t k = 0; k < spec->n_in; k++) sum += q[k];
    l->sum[j] = l->scale[j] * (float)sum;
}

/* ---- plain C: packed [n_out, n_in] --------------------------------------------------------- */

static renyi_status pack(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                         renyi_error *err)
{
    RY_TRY(ry_int8_columns(l, spec, spec->n_out, al, err));
    int8_t *q = l->packed = ry_alloc(al, spec->n_out, spec->n_in);
    if (!q) return ry_fail_nomem(err, spec->n_out * spec->n_in);
    for (size_t j = 0; j < spec->n_out; j++) ry_int8_channel(l, spec, j, q + j * spec->n_in, 0);
    return RENYI_OK;
}

static size_t tiles(const ry_linear_op *op, ry_extent run)
{
    (void)op;
    return run.n_images * run.rows;
}

/* A tile is one row of x. */
static void tile(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                 const void *input, float *y)
{
    (void)thread;
    const ry_linear *l = op->l;
    const size_t image = t / run.rows, row = t % run.rows;
    const ry_quant quant = ((const ry_quant *)input)[t];
    const uint8_t *x =
        (const uint8_t *)input + ry_quant_offset(run.n_images * run.rows) + t * l->n_in;
    float *yr = y + image * op->y.image + row * op->y.row;

    for (size_t j = 0; j < l->n_out; j++) {
        const int8_t *w = (const int8_t *)l->packed + j * l->n_in;
        const ry_quant_columns column = {l->scale + j, l->sum + j, l->bias + j};
        int32_t sum = 0;
        for (size_t k = 0; k < l->n_in; k++) sum += x[k] * w[k];
        ry_quant_scalar.finish(yr + j, &sum, quant, &column, 1, l->epilogue);
    }
}

static size_t input_bytes(const ry_linear *l, size_t rows)
{
    return ry_quant_offset(rows) + rows * l->n_in;
}

static void convert(const ry_linear *l, void *to, size_t rows, size_t first, size_t count,
                    const float *x, size_t x_row)
{
    ry_quant_scalar.quantise((uint8_t *)to + ry_quant_offset(rows) + first * l->n_in, l->n_in,
                             (ry_quant *)to + first, x, x_row, count, l->n_in,
                             l->has_range ? &l->range : NULL);
}

const ry_linear_vtable ry_linear_int8_scalar = {
    .pack = pack, .tiles = tiles, .tile = tile, .input_bytes = input_bytes, .convert = convert};
