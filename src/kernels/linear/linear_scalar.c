/* linear_scalar.c - y = x W^T + b in plain C: the specification of the faster bodies.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/epilogue.h"
#include "kernels/linear/linear_backend.h"

#include <string.h>

/* packed as it came: [n_out, n_in] */
static renyi_status update(ry_linear *l, const float *w, int transposed, renyi_error *err)
{
    float *to = l->packed;
    (void)err;
    for (size_t j = 0; j < l->n_out; j++)
        for (size_t k = 0; k < l->n_in; k++)
            to[j * l->n_in + k] = transposed ? w[k * l->n_out + j] : w[j * l->n_in + k];
    return RENYI_OK;
}

static renyi_status pack(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                         renyi_error *err)
{
    RY_TRY(ry_linear_take(l, spec->n_out * spec->n_in * sizeof(float), al, err));
    l->bias = ry_calloc(al, spec->n_out, sizeof(float));
    if (!l->bias) return ry_fail_nomem(err, spec->n_out * sizeof(float));
    if (spec->bias) memcpy(l->bias, spec->bias, spec->n_out * sizeof(float));
    return spec->w ? update(l, spec->w, 0, err) : RENYI_OK;
}

static size_t tiles(const ry_linear_op *op, ry_extent run)
{
    (void)op;
    return run.rows * run.n_images;
}

/* Eight sums side by side, so that the compiler may use what vectors the baseline has. */
static float dot(const float *a, const float *b, size_t n)
{
    float s[8] = {0};
    size_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (size_t i = 0; i < 8; i++) s[i] += a[k + i] * b[k + i];
    for (; k < n; k++) s[0] += a[k] * b[k];
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

/* A tile is one row of x. */
static void tile(const ry_linear_op *op, size_t t, ry_extent run, unsigned thread,
                 const void *input, float *y)
{
    const float *x = input;
    (void)thread;
    const ry_linear *l = op->l;
    const size_t image = t / run.rows, row = t % run.rows;
    const float *xr = x + image * op->x.image + row * op->x.row;
    float *yr = y + image * op->y.image + row * op->y.row;

    for (size_t j = 0; j < l->n_out; j++) {
        const float v = dot(xr, (const float *)l->packed + j * l->n_in, l->n_in) + l->bias[j];
        ry_epilogue_one(l->epilogue, yr + j, v);
    }
}

const ry_linear_vtable ry_linear_scalar = {
    .pack = pack, .update = update, .tiles = tiles, .tile = tile};
