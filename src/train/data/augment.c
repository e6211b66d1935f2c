/* augment.c - the way of one photo: crop, flip, operations, floats, erasing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/augment.h"

#include "base/status.h"
#include "image/patches.h"
#include "train/data/augment_crop.h"
#include "train/data/augment_rand.h"

#include <math.h>

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

/* ---- check --------------------------------------------------------------------------------- */

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
        {"colour jitter", a->color_jitter, 0, 10},
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

/* ---- steps --------------------------------------------------------------------------------- */

/* Without a crop: as for evaluation. */
static renyi_status fit(uint8_t *pixels, const renyi_image *photo, const ry_augment *a,
                        const ry_augment_target *t, renyi_error *err)
{
    const renyi_preprocess spec = {
        t->size,  RENYI_CROP_CENTER, a->filter, 1.0, {t->mean[0], t->mean[1], t->mean[2]},
        {1, 1, 1}};
    return renyi_image_fit(pixels, photo, &spec, NULL, err);
}

/* timm's RandomErasing, mode "pixel": a box of normal noise. */
static void erase(float *chw, uint32_t size, const ry_augment *a, ry_rng *rng)
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

renyi_status ry_augment_picture(float *chw, uint8_t *pixels, const renyi_image *photo,
                                const ry_augment *a, const ry_augment_target *t, ry_rng *rng,
                                renyi_error *err)
{
    ry_canvas canvas = {pixels,
                        pixels + 3 * (size_t)t->size * t->size,
                        {t->size, t->size},
                        a->filter,
                        {level_of(t->mean[0]), level_of(t->mean[1]), level_of(t->mean[2])}};
    if (a->crop_scale[1] > 0.0) {
        const ry_crop crop = ry_crop_draw(photo->width, photo->height, a, rng);
        RY_TRY(ry_crop_take(pixels, t->size, photo, &crop, a->filter, err));
    } else {
        RY_TRY(fit(pixels, photo, a, t, err));
    }
    if (ry_rng_uniform(rng) < a->flip) ry_flip(pixels, t->size);
    ry_rand_augment(&canvas, a, rng);
    if (a->three_augment) ry_three_augment(&canvas, rng);
    if (a->color_jitter > 0.0) ry_color_jitter(&canvas, a->color_jitter, rng);
    ry_normalize_pixels(chw, canvas.rgb, t->size, t->lut);
    if (ry_rng_uniform(rng) < a->erase) erase(chw, t->size, a, rng);
    return RENYI_OK;
}

void ry_augment_to_rgb(uint8_t *rgb, const float *chw, const ry_augment_target *t)
{
    const size_t area = (size_t)t->size * t->size;
    for (size_t i = 0; i < area; i++)
        for (size_t c = 0; c < 3; c++)
            rgb[3 * i + c] = level_of((double)chw[c * area + i] * t->std[c] + t->mean[c]);
}
