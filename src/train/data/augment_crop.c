/* augment_crop.c - see augment_crop.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/augment_crop.h"

#include "image/resize.h"
#include "train/data/augment_rand.h"

#include <math.h>

/* nearbyint rounds halves to even, as Python does; a side thinner than half a pixel keeps one. */
static uint32_t round_side(double x, uint32_t most)
{
    const double side = fmax(nearbyint(x), 1.0);
    return side < (double)most ? (uint32_t)side : most;
}

static ry_crop middle(uint32_t width, uint32_t height, double low, double high)
{
    const double shape = (double)width / height;
    ry_crop c = {0, 0, width, height};
    if (shape < low) c.height = round_side(width / low, height);
    if (shape > high) c.width = round_side(height * high, width);
    c.left = (width - c.width) / 2;
    c.top = (height - c.height) / 2;
    return c;
}

ry_crop ry_crop_draw(uint32_t width, uint32_t height, const ry_augment *a, ry_rng *rng)
{
    const int is_set = a->crop_ratio[1] > 0.0;
    const double low = is_set ? a->crop_ratio[0] : 3.0 / 4.0;
    const double high = is_set ? a->crop_ratio[1] : 4.0 / 3.0;
    const double log_low = log(low), log_high = log(high);
    for (int attempt = 0; attempt < 10; attempt++) {
        const double share =
            a->crop_scale[0] + (a->crop_scale[1] - a->crop_scale[0]) * ry_rng_uniform(rng);
        const double shape = exp(log_low + (log_high - log_low) * ry_rng_uniform(rng));
        const double area = share * width * height;
        const double w = nearbyint(sqrt(area * shape)), h = nearbyint(sqrt(area / shape));
        if (w < 1.0 || h < 1.0 || w > (double)width || h > (double)height) continue;
        ry_crop c = {0, 0, (uint32_t)w, (uint32_t)h};
        c.top = ry_rng_below(rng, height - c.height + 1);
        c.left = ry_rng_below(rng, width - c.width + 1);
        return c;
    }
    return middle(width, height, low, high);
}

renyi_status ry_crop_take(uint8_t *pixels, uint32_t size, const renyi_image *photo,
                          const ry_crop *c, renyi_interpolation filter, renyi_error *err)
{
    const size_t stride = photo->stride ? photo->stride : 3 * (size_t)photo->width;
    const ry_pixels in = {photo->rgb + c->top * stride + 3 * (size_t)c->left, stride, c->width,
                          c->height};
    const ry_resize_spec spec = {{c->width, size, 0, size}, {c->height, size, 0, size}, filter};
    return ry_resize(pixels, 3 * (size_t)size, &in, &spec, ry_resize_best(), NULL, err);
}

void ry_flip(uint8_t *pixels, uint32_t size)
{
    for (uint32_t y = 0; y < size; y++, pixels += 3 * (size_t)size)
        for (size_t l = 0, r = 3 * ((size_t)size - 1); l < r; l += 3, r -= 3)
            for (size_t c = 0; c < 3; c++) {
                const uint8_t left = pixels[l + c];
                pixels[l + c] = pixels[r + c];
                pixels[r + c] = left;
            }
}
