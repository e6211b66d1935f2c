/* augment_steps.h - the single steps of ry_augment_image; tests call them one by one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_AUGMENT_STEPS_H
#define RY_AUGMENT_STEPS_H

#include "train/data/augment.h"
#include "train/data/augment_ops.h"

/* The image being augmented; operations that cannot work in place write to `other` and swap. */
typedef struct ry_canvas {
    uint8_t *rgb, *other; /* [height, width, 3] each */
    ry_op_size size;
    renyi_interpolation filter; /* of operations that turn or shift */
    uint8_t fill[3];            /* color of pixels from outside the image */
} ry_canvas;

/* Operations of timm's RandAugment ("rand-m9-mstd0.5-inc1"), in its order: each has a strength that
 * grows with one magnitude from 0 to 10. */
typedef enum ry_rand_op {
    RY_RAND_AUTO_CONTRAST,
    RY_RAND_EQUALIZE,
    RY_RAND_INVERT,
    RY_RAND_ROTATE,
    RY_RAND_POSTERIZE,
    RY_RAND_SOLARIZE,
    RY_RAND_SOLARIZE_ADD,
    RY_RAND_COLOR,
    RY_RAND_CONTRAST,
    RY_RAND_BRIGHTNESS,
    RY_RAND_SHARPNESS,
    RY_RAND_SHEAR_X,
    RY_RAND_SHEAR_Y,
    RY_RAND_TRANSLATE_X,
    RY_RAND_TRANSLATE_Y,
    RY_RAND_OPS
} ry_rand_op;

/* Argument of the operation at a magnitude: degrees, bits, threshold, factor, share of the side.
 * `negate`: the other direction, where there is one. 0 for operations without an argument. */
double ry_rand_argument(ry_rand_op op, double magnitude, int negate);

void ry_rand_apply(ry_canvas *canvas, ry_rand_op op, double argument);

/* a->rand_ops draws with replacement, each done with probability a->rand_prob at a magnitude of its
 * own. */
void ry_rand_augment(ry_canvas *canvas, const ry_augment *a, ry_rng *rng);

/* Brightness, contrast and saturation in random order, each times [1 - strength, 1 + strength]. */
void ry_color_jitter(ry_canvas *canvas, double strength, ry_rng *rng);

/* DeiT III: grey, or inverted from 128 on, or blurred with a radius of 0.1 to 2 pixels. */
void ry_three_augment(ry_canvas *canvas, ry_rng *rng);

/* 0 .. n-1, n >= 1; the bias is below n / 2^32. */
static inline uint32_t ry_rng_below(ry_rng *rng, uint32_t n)
{
    return (uint32_t)((ry_rng_next(rng) >> 32) * n >> 32);
}

/* ---- crop ------------------------------------------------------------------------------------ */

typedef struct ry_crop {
    uint32_t left, top, width, height; /* in pixels of the image; not empty */
} ry_crop;

/* torchvision's RandomResizedCrop: ten tries at a box of random area and shape, then the largest
 * box in the middle whose shape is allowed. */
ry_crop ry_crop_draw(uint32_t width, uint32_t height, const ry_augment *a, ry_rng *rng);

/* pixels: [size, size, 3]. The box is cut out first, so pixels outside it have no influence. */
renyi_status ry_crop_take(uint8_t *pixels, uint32_t size, const renyi_image *image,
                          const ry_crop *crop, renyi_interpolation filter,
                          renyi_error *err) RENYI_CHECK;

/* Mirrors left and right, in place. */
void ry_flip(uint8_t *pixels, uint32_t size);

#endif
