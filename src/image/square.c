/* square.c - see square.h. Rows of the border are of one colour and stay so when resized; rows of
 * the photo get their ends in a line of their own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/square.h"

#include "base/alloc.h"
#include "base/status.h"
#include "image/fit.h"

#include <string.h>

typedef struct square {
    ry_pixels photo;
    uint32_t side, left, top;
    uint8_t colour[3];
} square;

static void paint(uint8_t *to, size_t n, const uint8_t colour[3])
{
    for (size_t i = 0; i < n; i++) memcpy(to + 3 * i, colour, 3);
}

/* to [n rows, stride]: rows from `first` on of the square, resized across. line: [side, 3] */
static void rows_across(uint8_t *to, size_t stride, const square *s, uint32_t first, uint32_t n,
                        const ry_taps *right, const ry_resize_kernels *kernels, uint8_t *line)
{
    const ry_pixels one = {line, 3 * (size_t)s->side, s->side, 1};
    paint(line, s->side, s->colour);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t y = first + i;
        uint8_t *row = to + i * stride;
        if (y < s->top || y - s->top >= s->photo.rows) {
            paint(row, right->n, s->colour);
            continue;
        }
        memcpy(line + 3 * (size_t)s->left, s->photo.at + (y - s->top) * s->photo.stride,
               3 * (size_t)s->photo.width);
        kernels->across(row, stride, &one, right);
    }
}

static renyi_status resize(uint8_t *out, size_t out_stride, const square *s, const ry_taps *right,
                           const ry_taps *down, const ry_resize_kernels *kernels,
                           const renyi_allocator *al, renyi_error *err)
{
    const uint32_t first = down->first[0];
    const uint32_t rows = down->first[down->n - 1] + down->count[down->n - 1] - first;
    const size_t stride = (3 * (size_t)right->n + 63) / 64 * 64;
    uint8_t *between = ry_alloc(al, rows, stride), *line = ry_alloc(al, s->side, 3);
    renyi_status st = RENYI_OK;
    if (between && line) {
        rows_across(between, stride, s, first, rows, right, kernels, line);
        for (uint32_t i = 0; i < down->n; i++)
            kernels->down(out + i * out_stride, between + (down->first[i] - first) * stride, stride,
                          3 * (size_t)right->n, down, i);
    } else {
        st = ry_fail_nomem(err, rows * stride);
    }
    ry_free(al, between);
    ry_free(al, line);
    return st;
}

renyi_status ry_fit_square(uint8_t *out, const renyi_image *image, const renyi_preprocess *spec,
                           const ry_resize_kernels *kernels, const renyi_allocator *al,
                           renyi_error *err)
{
    ry_placed x, y;
    ry_taps right = {0}, down = {0};
    if (!image || !image->rgb) return ry_fail(err, RENYI_ERR_ARG, -1, "a picture without pixels");
    const uint32_t w = image->width, h = image->height, side = w > h ? w : h;
    if (w == h) return ry_fit(out, image, spec, kernels, al, err);
    RY_TRY(ry_fit_place(&x, &y, side, side, spec, err));
    if (!w || !h || (image->stride && image->stride < 3 * (size_t)w))
        return ry_fail(err, RENYI_ERR_ARG, -1, "a picture of %u x %u in rows of %zu bytes", w, h,
                       image->stride);
    square s = {{image->rgb, image->stride ? image->stride : 3 * (size_t)w, w, h},
                side,
                (side - w) / 2,
                (side - h) / 2,
                {0}};
    for (int c = 0; c < 3; c++) {
        const double v = 255.0 * spec->mean[c];
        s.colour[c] = (uint8_t)(v > 0.0 ? (v < 255.0 ? v : 255.0) : 0.0);
    }
    renyi_status st = ry_taps_new(&right, &x.axis, spec->interpolation, al, err);
    if (!st) st = ry_taps_new(&down, &y.axis, spec->interpolation, al, err);
    if (!st) st = resize(out, 3 * (size_t)spec->size, &s, &right, &down, kernels, al, err);
    ry_taps_free(&right, al);
    ry_taps_free(&down, al);
    return st;
}
