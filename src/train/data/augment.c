/* augment.c - augments one image: crop, flip, RandAugment and color operations, normalization,
 * erasing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/augment.h"

#include "base/status.h"
#include "image/patches.h"
#include "image/resize.h"
#include "train/data/augment_steps.h"

#include <math.h>

/* ---- crop ------------------------------------------------------------------------------------ */

/* nearbyint rounds halves to even, as Python does; a side has at least one pixel. */
static uint32_t round_side(double x, uint32_t most)
{
    const double side = fmax(nearbyint(x), 1.0);
    return side < (double)most ? (uint32_t)side : most;
}

static ry_crop middle_crop(uint32_t width, uint32_t height, double low, double high)
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
    return middle_crop(width, height, low, high);
}

renyi_status ry_crop_take(uint8_t *pixels, uint32_t size, const renyi_image *image,
                          const ry_crop *c, renyi_interpolation filter, renyi_error *err)
{
    const size_t stride = image->stride ? image->stride : 3 * (size_t)image->width;
    const ry_pixels in = {image->rgb + c->top * stride + 3 * (size_t)c->left, stride, c->width,
                          c->height};
    const ry_resize_spec spec = {
        {c->width, size, 0, size, 0.0, 0.0}, {c->height, size, 0, size, 0.0, 0.0}, filter};
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

/* ---- RandAugment ----------------------------------------------------------------------------- */

static void swap_buffers(ry_canvas *c)
{
    uint8_t *const rgb = c->rgb;
    c->rgb = c->other;
    c->other = rgb;
}

/* ---- strength -------------------------------------------------------------------------------- */

/* Factor of an enhancement, 0.1 to 1.9; 1 changes nothing. */
static double enhance_factor(double share, int negate)
{
    const double factor = 1.0 + (negate ? -share * 0.9 : share * 0.9);
    return factor > 0.1 ? factor : 0.1;
}

double ry_rand_argument(ry_rand_op op, double magnitude, int negate)
{
    const double share = magnitude / 10.0, sign = negate ? -1.0 : 1.0;
    switch (op) {
    case RY_RAND_ROTATE: return sign * (share * 30.0);
    case RY_RAND_POSTERIZE: /* at least 1 bit: newer Pillows reject 0 */
        return share < 1.0 ? 4 - (int)(share * 4) : 1;
    case RY_RAND_SOLARIZE: return 256 - (int)(share * 256);
    case RY_RAND_SOLARIZE_ADD: return (int)(share * 110);
    case RY_RAND_COLOR:
    case RY_RAND_CONTRAST:
    case RY_RAND_BRIGHTNESS:
    case RY_RAND_SHARPNESS: return enhance_factor(share, negate);
    case RY_RAND_SHEAR_X:
    case RY_RAND_SHEAR_Y: return sign * (share * 0.3);
    case RY_RAND_TRANSLATE_X:
    case RY_RAND_TRANSLATE_Y: return sign * (share * 0.45);
    case RY_RAND_AUTO_CONTRAST:
    case RY_RAND_EQUALIZE:
    case RY_RAND_INVERT:
    case RY_RAND_OPS: break;
    }
    return 0.0;
}

/* ---- operations ------------------------------------------------------------------------------ */

static void apply_affine(ry_canvas *c, ry_rand_op op, double argument)
{
    ry_op_affine_spec spec = {{1, 0, 0, 0, 1, 0}, c->filter, {c->fill[0], c->fill[1], c->fill[2]}};
    if (op == RY_RAND_ROTATE) {
        if (argument == 0.0) return;
        ry_op_rotation(spec.m, c->size, argument);
    }
    if (op == RY_RAND_SHEAR_X) spec.m[1] = argument;
    if (op == RY_RAND_SHEAR_Y) spec.m[3] = argument;
    if (op == RY_RAND_TRANSLATE_X) spec.m[2] = argument * c->size.width;
    if (op == RY_RAND_TRANSLATE_Y) spec.m[5] = argument * c->size.height;
    ry_op_affine(c->other, c->rgb, c->size, &spec);
    swap_buffers(c);
}

void ry_rand_apply(ry_canvas *c, ry_rand_op op, double argument)
{
    const size_t n = (size_t)c->size.width * c->size.height;
    switch (op) {
    case RY_RAND_AUTO_CONTRAST: ry_op_auto_contrast(c->rgb, n); break;
    case RY_RAND_EQUALIZE: ry_op_equalize(c->rgb, n); break;
    case RY_RAND_INVERT: ry_op_invert(c->rgb, n); break;
    case RY_RAND_POSTERIZE: ry_op_posterize(c->rgb, n, (unsigned)argument); break;
    case RY_RAND_SOLARIZE: ry_op_solarize(c->rgb, n, (unsigned)argument); break;
    case RY_RAND_SOLARIZE_ADD: ry_op_solarize_add(c->rgb, n, (unsigned)argument); break;
    case RY_RAND_COLOR: ry_op_color(c->rgb, n, argument); break;
    case RY_RAND_CONTRAST: ry_op_contrast(c->rgb, n, argument); break;
    case RY_RAND_BRIGHTNESS: ry_op_brightness(c->rgb, n, argument); break;
    case RY_RAND_SHARPNESS:
        ry_op_sharpness(c->other, c->rgb, c->size, argument);
        swap_buffers(c);
        break;
    case RY_RAND_ROTATE:
    case RY_RAND_SHEAR_X:
    case RY_RAND_SHEAR_Y:
    case RY_RAND_TRANSLATE_X:
    case RY_RAND_TRANSLATE_Y: apply_affine(c, op, argument); break;
    case RY_RAND_OPS: break;
    }
}

/* Each draw takes the same count of random numbers, used or not. */
void ry_rand_augment(ry_canvas *c, const ry_augment *a, ry_rng *rng)
{
    for (uint32_t i = 0; i < a->rand_ops; i++) {
        const ry_rand_op op = (ry_rand_op)ry_rng_below(rng, RY_RAND_OPS);
        const int is_done = ry_rng_uniform(rng) <= a->rand_prob;
        const int negate = ry_rng_uniform(rng) > 0.5;
        double magnitude = a->rand_magnitude + a->rand_std * ry_rng_normal(rng);
        if (!(magnitude > 0.0)) magnitude = 0.0;
        if (magnitude > 10.0) magnitude = 10.0;
        if (is_done) ry_rand_apply(c, op, ry_rand_argument(op, magnitude, negate));
    }
}

void ry_color_jitter(ry_canvas *c, double strength, ry_rng *rng)
{
    ry_rand_op order[3] = {RY_RAND_BRIGHTNESS, RY_RAND_CONTRAST, RY_RAND_COLOR};
    const double low = strength < 1.0 ? 1.0 - strength : 0.0;
    for (uint32_t i = 3; i > 1; i--) {
        const uint32_t j = ry_rng_below(rng, i);
        const ry_rand_op last = order[i - 1];
        order[i - 1] = order[j];
        order[j] = last;
    }
    for (int i = 0; i < 3; i++)
        ry_rand_apply(c, order[i], low + (1.0 + strength - low) * ry_rng_uniform(rng));
}

void ry_three_augment(ry_canvas *c, ry_rng *rng)
{
    const size_t n = (size_t)c->size.width * c->size.height;
    const uint32_t which = ry_rng_below(rng, 3);
    const double radius = 0.1 + 1.9 * ry_rng_uniform(rng);
    if (which == 0) ry_op_grey(c->rgb, n);
    if (which == 1) ry_op_solarize(c->rgb, n, 128);
    if (which == 2) ry_op_blur(c->rgb, c->other, c->size, radius);
}

void ry_augment_defaults(ry_augment *a)
{
    *a = (ry_augment){
        .crop_scale = {0.08, 1.0},
        .crop_ratio = {3.0 / 4.0, 4.0 / 3.0},
        .filter = RENYI_BICUBIC,
        .flip = 0.5,
        .rand_ops = 2,
        .rand_prob = 0.5,
        .rand_magnitude = 9.0,
        .rand_std = 0.5,
        .erase = 0.25,
        .erase_area = {0.02, 1.0 / 3.0},
        .mixup_alpha = 0.8,
        .cutmix_alpha = 1.0,
        .mix_prob = 1.0,
        .mix_switch_prob = 0.5,
    };
}

/* ---- check ----------------------------------------------------------------------------------- */

typedef struct range_check {
    const char *name;
    double value, low, high;
} range_check;

static renyi_status check_pair(const char *name, const double pair[2], double high,
                               renyi_error *err)
{
    if (pair[1] == 0.0) return RENYI_OK;
    if (pair[0] > 0.0 && pair[0] <= pair[1] && pair[1] <= high) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1, "%s %g to %g; 0 < low <= high <= %g is allowed", name,
                   pair[0], pair[1], high);
}

renyi_status ry_augment_check(const ry_augment *a, renyi_error *err)
{
    const range_check checks[] = {
        {"flip", a->flip, 0, 1},
        {"RandAugment's probability", a->rand_prob, 0, 1},
        {"RandAugment's magnitude", a->rand_magnitude, 0, 10},
        {"RandAugment's deviation", a->rand_std, 0, 100},
        {"color jitter", a->color_jitter, 0, 10},
        {"random erasing", a->erase, 0, 1},
        {"mixup's alpha", a->mixup_alpha, 0, 1000},
        {"cutmix's alpha", a->cutmix_alpha, 0, 1000},
        {"probability of mixing", a->mix_prob, 0, 1},
        {"probability of cutmix", a->mix_switch_prob, 0, 1},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        const range_check *c = &checks[i];
        if (!(c->value >= c->low && c->value <= c->high))
            return ry_fail(err, RENYI_ERR_ARG, -1, "%s %g; %g to %g is allowed", c->name, c->value,
                           c->low, c->high);
    }
    if (a->rand_ops > 100)
        return ry_fail(err, RENYI_ERR_ARG, -1, "RandAugment with %u operations; 0 to 100 allowed",
                       (unsigned)a->rand_ops);
    if ((unsigned)a->filter > RENYI_LANCZOS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "interpolation %d is not known", (int)a->filter);
    RY_TRY(check_pair("crop scale", a->crop_scale, 1.0, err));
    RY_TRY(check_pair("crop ratio", a->crop_ratio, 1000.0, err));
    return check_pair("erased area", a->erase_area, 1.0, err);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Without a random crop: resized as for evaluation. */
static renyi_status fit_image(uint8_t *pixels, const renyi_image *image, const ry_augment *a,
                              const ry_augment_target *t, renyi_error *err)
{
    const renyi_preprocess spec = {
        t->size,  RENYI_CROP_CENTER, a->filter, 1.0, {t->mean[0], t->mean[1], t->mean[2]},
        {1, 1, 1}};
    return renyi_image_fit(pixels, image, &spec, NULL, err);
}

/* timm's RandomErasing, mode "pixel": a box of normal noise. */
static void erase_box(float *chw, uint32_t size, const ry_augment *a, ry_rng *rng)
{
    const int is_set = a->erase_area[1] > 0.0;
    const double low = is_set ? a->erase_area[0] : 0.02;
    const double high = is_set ? a->erase_area[1] : 1.0 / 3.0;
    const double log_shape = log(0.3); /* shapes from 0.3 to 1 / 0.3 */
    const size_t area = (size_t)size * size;
    for (int attempt = 0; attempt < 10; attempt++) {
        const double target = (low + (high - low) * ry_rng_uniform(rng)) * (double)area;
        const double shape = exp(log_shape * (1.0 - 2.0 * ry_rng_uniform(rng)));
        const double h = nearbyint(sqrt(target * shape)), w = nearbyint(sqrt(target / shape));
        if (!(w < (double)size && h < (double)size)) continue;
        const uint32_t height = (uint32_t)h, width = (uint32_t)w;
        const size_t top = ry_rng_below(rng, size - height + 1);
        const size_t left = ry_rng_below(rng, size - width + 1);
        for (size_t c = 0; c < 3; c++)
            for (size_t y = top; y < top + height; y++)
                for (size_t x = left; x < left + width; x++)
                    chw[c * area + y * size + x] = (float)ry_rng_normal(rng);
        return;
    }
}

static uint8_t level_of(double share)
{
    return (uint8_t)fmin(fmax(nearbyint(255.0 * share), 0.0), 255.0);
}

renyi_status ry_augment_image(float *chw, uint8_t *pixels, const renyi_image *image,
                              const ry_augment *a, const ry_augment_target *t, ry_rng *rng,
                              renyi_error *err)
{
    ry_canvas canvas = {pixels,
                        pixels + 3 * (size_t)t->size * t->size,
                        {t->size, t->size},
                        a->filter,
                        {level_of(t->mean[0]), level_of(t->mean[1]), level_of(t->mean[2])}};
    if (a->crop_scale[1] > 0.0) {
        const ry_crop crop = ry_crop_draw(image->width, image->height, a, rng);
        RY_TRY(ry_crop_take(pixels, t->size, image, &crop, a->filter, err));
    } else {
        RY_TRY(fit_image(pixels, image, a, t, err));
    }
    if (ry_rng_uniform(rng) < a->flip) ry_flip(pixels, t->size);
    ry_rand_augment(&canvas, a, rng);
    if (a->three_augment) ry_three_augment(&canvas, rng);
    if (a->color_jitter > 0.0) ry_color_jitter(&canvas, a->color_jitter, rng);
    ry_normalize_pixels(chw, canvas.rgb, t->size, t->lut);
    if (ry_rng_uniform(rng) < a->erase) erase_box(chw, t->size, a, rng);
    return RENYI_OK;
}

void ry_augment_to_rgb(uint8_t *rgb, const float *chw, const ry_augment_target *t)
{
    const size_t area = (size_t)t->size * t->size;
    for (size_t i = 0; i < area; i++)
        for (size_t c = 0; c < 3; c++)
            rgb[3 * i + c] = level_of((double)chw[c * area + i] * t->std[c] + t->mean[c]);
}
