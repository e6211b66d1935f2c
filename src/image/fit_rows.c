/* fit_rows.c - resizes across as rows come, keeps the narrow rows, and resizes down at the end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/fit_rows.h"

#include "base/alloc.h"
#include "base/status.h"

#include <assert.h>

renyi_status ry_fit_rows_begin(ry_fit_rows *f, uint32_t width, uint32_t height,
                               const ry_whole *whole, int *can, renyi_error *err)
{
    f->full_width = whole ? whole->width : width;
    f->full_height = whole ? whole->height : height;
    RY_TRY(ry_fit_place_decoded(&f->x, &f->y, width, height, whole, f->spec, err));
    const ry_resize_spec spec = {f->x.axis, f->y.axis, f->spec->interpolation};
    *can = width != spec.x.out_size && height != spec.y.out_size && !ry_resize_down_first(&spec);
    if (!*can) return RENYI_OK;
    RY_TRY(ry_taps_new(&f->right, &spec.x, spec.filter, f->al, err));
    RY_TRY(ry_taps_new(&f->down, &spec.y, spec.filter, f->al, err));
    uint32_t last;
    ry_taps_span(&f->right, &f->left, &last);
    f->width = last - f->left;
    ry_taps_span(&f->down, &f->top, &last);
    f->rows = last - f->top;
    f->stride = (3 * (size_t)f->right.n + 63) / 64 * 64;
    f->between = ry_alloc(f->al, f->rows, f->stride);
    return f->between ? RENYI_OK : ry_fail_nomem(err, f->rows * f->stride);
}

void ry_fit_rows_crop(ry_fit_rows *f, uint32_t first_column)
{
    assert(first_column <= f->left);
    for (uint32_t i = 0; i < f->right.n; i++) f->right.first[i] -= first_column;
}

void ry_fit_rows_put(ry_fit_rows *f, const ry_pixels *in, uint32_t first)
{
    const uint32_t from = first < f->top ? f->top : first, end = f->top + f->rows;
    const uint32_t last = first + in->rows < end ? first + in->rows : end;
    if (from >= last) return;
    const ry_pixels seen = {in->at + (from - first) * in->stride, in->stride, in->width,
                            last - from};
    f->kernels->across(f->between + (from - f->top) * f->stride, f->stride, &seen, &f->right);
}

void ry_fit_rows_end(ry_fit_rows *f)
{
    const size_t stride = 3 * (size_t)f->spec->size;
    uint8_t *to = f->out + f->y.pad * stride + 3 * (size_t)f->x.pad;
    ry_fit_border(f->out, &f->x, &f->y, f->spec);
    for (uint32_t i = 0; i < f->down.n; i++)
        f->kernels->down(to + i * stride, f->between + (f->down.first[i] - f->top) * f->stride,
                         f->stride, 3 * (size_t)f->right.n, &f->down, i);
    f->is_done = 1;
}

void ry_fit_rows_free(ry_fit_rows *f)
{
    ry_taps_free(&f->right, f->al);
    ry_taps_free(&f->down, f->al);
    ry_free(f->al, f->between);
    f->between = NULL;
}
