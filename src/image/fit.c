/* fit.c - from an image of any size to the square of pixels that a model reads: timm's three
 * evaluation transforms with the rounding of Python and torchvision, and LLaVA's padding.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/fit.h"

#include "base/alloc.h"
#include "base/status.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- resize and crop ----------------------------------------------------------------------- */

#define MAX_SIDE (1u << 24) /* Pillow holds a box side in a float */

/* torchvision's center crop: a side that is too long is cut at round((long - size) / 2), where
 * Python rounds halves to even; one that is too short gets a border. */
static ry_placed place_axis(uint32_t in_size, uint32_t resized, uint32_t size)
{
    ry_placed p = {{in_size, resized, 0, size, 0.0, 0.0}, 0};
    if (resized < size) {
        p.axis.n = resized;
        p.pad = (size - resized) / 2;
    } else {
        const uint32_t extra = resized - size, half = extra / 2;
        p.axis.from = half + (extra & half & 1);
    }
    return p;
}

static renyi_status check_spec(const renyi_preprocess *spec, double *scale_size, renyi_error *err)
{
    const double pct = spec->crop_pct == 0.0 ? 0.875 : spec->crop_pct; /* timm's default */
    if (!spec->size || spec->size > 16384)
        return ry_fail(err, RENYI_ERR_ARG, -1, "input size %" PRIu32 "; 1 to 16384 is allowed",
                       spec->size);
    *scale_size = floor(spec->size / pct);
    if (!(pct > 0.0) || !(*scale_size >= 1.0 && *scale_size <= MAX_SIDE))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "crop_pct %g makes no image of size %" PRIu32 "; use a value in (0, 1]", pct,
                       spec->size);
    if ((unsigned)spec->crop_mode > RENYI_CROP_BORDER)
        return ry_fail(err, RENYI_ERR_ARG, -1, "crop mode %d is not known", (int)spec->crop_mode);
    if ((unsigned)spec->interpolation > RENYI_LANCZOS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "interpolation %d is not known",
                       (int)spec->interpolation);
    return RENYI_OK;
}

renyi_status ry_fit_check_image(const renyi_image *image, renyi_error *err)
{
    if (!image || !image->rgb) return ry_fail(err, RENYI_ERR_ARG, -1, "an image without pixels");
    if (image->stride && image->stride < 3 * (size_t)image->width)
        return ry_fail(err, RENYI_ERR_ARG, -1, "stride of %zu bytes for %" PRIu32 " RGB pixels",
                       image->stride, image->width);
    return RENYI_OK;
}

/* Width and height after the resize, before the crop. */
static void resized_size(double iw, double ih, renyi_crop_mode mode, double scale_size, double *w,
                         double *h)
{
    if (mode == RENYI_CROP_SQUASH) {
        *w = *h = scale_size;
    } else if (mode == RENYI_CROP_BORDER) {
        /* ResizeKeepRatio(longest=1); nearbyint rounds halves to even like Python. A side of less
         * than half a pixel, where timm raises an error, becomes one pixel. */
        const double ratio = fmax(ih / scale_size, iw / scale_size);
        *w = fmax(nearbyint(iw / ratio), 1.0);
        *h = fmax(nearbyint(ih / ratio), 1.0);
    } else if (iw <= ih) {
        *w = scale_size;
        *h = trunc(scale_size * ih / iw);
    } else {
        *w = trunc(scale_size * iw / ih);
        *h = scale_size;
    }
}

static void fill_pixels(uint8_t *to, size_t n, const uint8_t color[3])
{
    for (size_t i = 0; i < n; i++) memcpy(to + 3 * i, color, 3);
}

/* timm's "border" pads with the mean color, torchvision's center crop with black. */
static void border_color(const renyi_preprocess *spec, uint8_t color[3])
{
    for (int c = 0; c < 3; c++) {
        const double v =
            spec->crop_mode == RENYI_CROP_BORDER ? nearbyint(255 * spec->mean[c]) : 0.0;
        color[c] = (uint8_t)(v > 0.0 ? (v < 255.0 ? v : 255.0) : 0.0);
    }
}

renyi_status ry_fit_place(ry_placed *x, ry_placed *y, uint32_t width, uint32_t height,
                          const renyi_preprocess *spec, renyi_error *err)
{
    double scale_size = 0.0, w, h;
    RY_TRY(check_spec(spec, &scale_size, err));
    if (!width || !height) return ry_fail(err, RENYI_ERR_ARG, -1, "an image without pixels");
    if (width > MAX_SIDE || height > MAX_SIDE)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "an image of %" PRIu32 " x %" PRIu32 "; sides up to %u can be resized",
                       width, height, MAX_SIDE);
    resized_size(width, height, spec->crop_mode, scale_size, &w, &h);
    if (w > INT32_MAX || h > INT32_MAX)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "an image of %" PRIu32 " x %" PRIu32 " becomes %.0f x %.0f when resized",
                       width, height, w, h);
    *x = place_axis(width, (uint32_t)w, spec->size);
    *y = place_axis(height, (uint32_t)h, spec->size);
    return RENYI_OK;
}

renyi_status ry_fit_place_decoded(ry_placed *x, ry_placed *y, uint32_t width, uint32_t height,
                                  const ry_whole *whole, const renyi_preprocess *spec,
                                  renyi_error *err)
{
    if (!whole) return ry_fit_place(x, y, width, height, spec, err);
    RY_TRY(ry_fit_place(x, y, whole->width, whole->height, spec, err));
    x->axis.in_size = width;
    x->axis.origin = whole->left;
    x->axis.span = whole->across;
    y->axis.in_size = height;
    y->axis.origin = whole->top;
    y->axis.span = whole->down;
    return RENYI_OK;
}

void ry_fit_border(uint8_t *out, const ry_placed *x, const ry_placed *y,
                   const renyi_preprocess *spec)
{
    uint8_t color[3];
    if (x->axis.n >= spec->size && y->axis.n >= spec->size) return;
    border_color(spec, color);
    fill_pixels(out, (size_t)spec->size * spec->size, color);
}

static renyi_status fit_placed(uint8_t *out, const renyi_image *image, const ry_placed *x,
                               const ry_placed *y, const renyi_preprocess *spec,
                               const ry_resize_kernels *kernels, const renyi_allocator *al,
                               renyi_error *err)
{
    const size_t stride = 3 * (size_t)spec->size;
    ry_fit_border(out, x, y, spec);
    const ry_pixels in = {image->rgb, image->stride ? image->stride : 3 * (size_t)image->width,
                          image->width, image->height};
    const ry_resize_spec window = {x->axis, y->axis, spec->interpolation};
    return ry_resize(out + y->pad * stride + 3 * (size_t)x->pad, stride, &in, &window, kernels, al,
                     err);
}

/* Both sides of a smaller image must have twice the pixels that the resize makes of them. */
uint32_t ry_image_scale(const ry_encoded *in, uint32_t width, uint32_t height)
{
    ry_placed x, y;
    uint32_t scale = 1;
    if (!in->scaling) return 1;
    if (ry_fit_place(&x, &y, width, height, in->scaling->spec, NULL)) return 1;
    while (scale < 8 && width / 4.0 / scale >= x.axis.out_size &&
           height / 4.0 / scale >= y.axis.out_size)
        scale *= 2;
    in->scaling->whole =
        (ry_whole){width, height, 0.0, 0.0, (double)width / scale, (double)height / scale};
    return scale;
}

renyi_status ry_fit(uint8_t *out, const renyi_image *image, const renyi_preprocess *spec,
                    const ry_resize_kernels *kernels, const renyi_allocator *al, renyi_error *err)
{
    ry_placed x, y;
    RY_TRY(ry_fit_check_image(image, err));
    RY_TRY(ry_fit_place(&x, &y, image->width, image->height, spec, err));
    return fit_placed(out, image, &x, &y, spec, kernels, al, err);
}

renyi_status ry_fit_scaled(uint8_t *out, const renyi_image *image, const ry_whole *whole,
                           const renyi_preprocess *spec, const ry_resize_kernels *kernels,
                           const renyi_allocator *al, renyi_error *err)
{
    ry_placed x, y;
    RY_TRY(ry_fit_check_image(image, err));
    RY_TRY(ry_fit_place_decoded(&x, &y, image->width, image->height, whole, spec, err));
    return fit_placed(out, image, &x, &y, spec, kernels, al, err);
}

/* ---- padded to a square -------------------------------------------------------------------- */

typedef struct square {
    ry_pixels image;
    uint32_t side, left, top;
    uint8_t color[3];
} square;

/* Rows [first, first + n) of the square, resized across, to `to` [n, stride]. Rows of the border
 * have one color and need no resizing. line: scratch, [side, 3] */
static void rows_across(uint8_t *to, size_t stride, const square *s, uint32_t first, uint32_t n,
                        const ry_taps *right, const ry_resize_kernels *kernels, uint8_t *line)
{
    const ry_pixels one = {line, 3 * (size_t)s->side, s->side, 1};
    fill_pixels(line, s->side, s->color);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t y = first + i;
        uint8_t *row = to + i * stride;
        if (y < s->top || y - s->top >= s->image.rows) {
            fill_pixels(row, right->n, s->color);
            continue;
        }
        memcpy(line + 3 * (size_t)s->left, s->image.at + (y - s->top) * s->image.stride,
               3 * (size_t)s->image.width);
        kernels->across(row, stride, &one, right);
    }
}

static renyi_status resize_square(uint8_t *out, size_t out_stride, const square *s,
                                  const ry_taps *right, const ry_taps *down,
                                  const ry_resize_kernels *kernels, const renyi_allocator *al,
                                  renyi_error *err)
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
    if (!image || !image->rgb) return ry_fail(err, RENYI_ERR_ARG, -1, "an image without pixels");
    const uint32_t w = image->width, h = image->height, side = w > h ? w : h;
    if (w == h) return ry_fit(out, image, spec, kernels, al, err);
    RY_TRY(ry_fit_place(&x, &y, side, side, spec, err));
    if (!w || !h || (image->stride && image->stride < 3 * (size_t)w))
        return ry_fail(err, RENYI_ERR_ARG, -1, "an image of %u x %u in rows of %zu bytes", w, h,
                       image->stride);
    square s = {{image->rgb, image->stride ? image->stride : 3 * (size_t)w, w, h},
                side,
                (side - w) / 2,
                (side - h) / 2,
                {0}};
    for (int c = 0; c < 3; c++) {
        const double v = 255.0 * spec->mean[c];
        s.color[c] = (uint8_t)(v > 0.0 ? (v < 255.0 ? v : 255.0) : 0.0);
    }
    renyi_status st = ry_taps_new(&right, &x.axis, spec->interpolation, al, err);
    if (!st) st = ry_taps_new(&down, &y.axis, spec->interpolation, al, err);
    if (!st) st = resize_square(out, 3 * (size_t)spec->size, &s, &right, &down, kernels, al, err);
    ry_taps_free(&right, al);
    ry_taps_free(&down, al);
    return st;
}

/* ---- public functions ---------------------------------------------------------------------- */

renyi_status renyi_image_fit(uint8_t *out, const renyi_image *image, const renyi_preprocess *spec,
                             const renyi_allocator *allocator, renyi_error *err)
{
    if (!out || !spec) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_image_fit: NULL argument");
    return ry_fit(out, image, spec, ry_resize_best(), allocator, err);
}
