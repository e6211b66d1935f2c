/* fit.c - from a photo to the model's square: timm's three evaluation transforms with the rounding
 * of Python and torchvision.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/fit.h"

#include "base/status.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAX_SIDE (1u << 24) /* Pillow holds a box side in a float */

/* torchvision's centre crop: cut what is too long at round((long - size) / 2), where Python rounds
 * halves to even; put a border round what is too short. */
static ry_placed place(uint32_t in_size, uint32_t resized, uint32_t size)
{
    ry_placed p = {{in_size, resized, 0, size}, 0};
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
                       "crop_pct %g makes no picture of size %" PRIu32 "; use a value in (0, 1]",
                       pct, spec->size);
    if ((unsigned)spec->crop_mode > RENYI_CROP_BORDER)
        return ry_fail(err, RENYI_ERR_ARG, -1, "crop mode %d is not known", (int)spec->crop_mode);
    if ((unsigned)spec->interpolation > RENYI_LANCZOS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "interpolation %d is not known",
                       (int)spec->interpolation);
    return RENYI_OK;
}

static renyi_status check_image(const renyi_image *image, renyi_error *err)
{
    if (!image || !image->rgb) return ry_fail(err, RENYI_ERR_ARG, -1, "a picture without pixels");
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
        /* ResizeKeepRatio(longest=1); nearbyint rounds halves to even as Python does. A line
         * thinner than half a pixel, where timm raises an error, keeps one. */
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

static void fill(uint8_t *out, uint32_t size, const uint8_t colour[3])
{
    for (size_t i = 0; i < (size_t)size * size; i++) memcpy(out + 3 * i, colour, 3);
}

/* timm pads with the mean colour in "border"; torchvision's centre crop pads with black. */
static void border_colour(const renyi_preprocess *spec, uint8_t colour[3])
{
    for (int c = 0; c < 3; c++) {
        const double v =
            spec->crop_mode == RENYI_CROP_BORDER ? nearbyint(255 * spec->mean[c]) : 0.0;
        colour[c] = (uint8_t)(v > 0.0 ? (v < 255.0 ? v : 255.0) : 0.0);
    }
}

renyi_status ry_fit_place(ry_placed *x, ry_placed *y, uint32_t width, uint32_t height,
                          const renyi_preprocess *spec, renyi_error *err)
{
    double scale_size = 0.0, w, h;
    RY_TRY(check_spec(spec, &scale_size, err));
    if (!width || !height) return ry_fail(err, RENYI_ERR_ARG, -1, "a picture without pixels");
    if (width > MAX_SIDE || height > MAX_SIDE)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "a picture of %" PRIu32 " x %" PRIu32 "; sides up to %u can be resized",
                       width, height, MAX_SIDE);
    resized_size(width, height, spec->crop_mode, scale_size, &w, &h);
    if (w > INT32_MAX || h > INT32_MAX)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "a picture of %" PRIu32 " x %" PRIu32 " becomes %.0f x %.0f when resized",
                       width, height, w, h);
    *x = place(width, (uint32_t)w, spec->size);
    *y = place(height, (uint32_t)h, spec->size);
    return RENYI_OK;
}

renyi_status ry_fit(uint8_t *out, const renyi_image *image, const renyi_preprocess *spec,
                    const ry_resize_kernels *kernels, const renyi_allocator *al, renyi_error *err)
{
    ry_placed x, y;
    RY_TRY(check_image(image, err));
    RY_TRY(ry_fit_place(&x, &y, image->width, image->height, spec, err));
    const size_t stride = 3 * (size_t)spec->size;
    if (x.axis.n < spec->size || y.axis.n < spec->size) {
        uint8_t colour[3];
        border_colour(spec, colour);
        fill(out, spec->size, colour);
    }
    const ry_pixels in = {image->rgb, image->stride ? image->stride : 3 * (size_t)image->width,
                          image->width, image->height};
    const ry_resize_spec window = {x.axis, y.axis, spec->interpolation};
    return ry_resize(out + y.pad * stride + 3 * (size_t)x.pad, stride, &in, &window, kernels, al,
                     err);
}

renyi_status renyi_image_fit(uint8_t *out, const renyi_image *image, const renyi_preprocess *spec,
                             const renyi_allocator *allocator, renyi_error *err)
{
    if (!out || !spec) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_image_fit: NULL argument");
    return ry_fit(out, image, spec, ry_resize_best(), allocator, err);
}

renyi_status renyi_image_load_pixels(uint8_t *pixels, const char *path,
                                     const renyi_preprocess *spec, const renyi_image_options *opt,
                                     renyi_error *err)
{
    renyi_image image;
    RY_TRY(renyi_image_load(&image, path, opt, err));
    const renyi_status st =
        renyi_image_fit(pixels, &image, spec, opt ? &opt->allocator : NULL, err);
    renyi_image_free(&image, opt);
    return st;
}
