/* augment.h - timm's training transforms, from a decoded image to the model's input. Pixel
 * operations match Pillow bit for bit. All random numbers come from the generator that is passed
 * in.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_AUGMENT_H
#define RY_AUGMENT_H

#include "base/rng.h"
#include "renyi/renyi.h"

/* For one image and, mix_*, for one batch. All zero = the image is fitted as for evaluation: the
 * shorter side to the size, the centre. */
typedef struct ry_augment {
    double crop_scale[2]; /* share of the image's area that a crop has, (0, 1]; [1] = 0: no crop */
    double crop_ratio[2]; /* width / height of a crop; [1] = 0: 3/4 to 4/3 */
    renyi_interpolation filter; /* of the crop and of operations that turn or shift */
    double flip;                /* probability of mirroring left and right */
    uint32_t rand_ops;          /* RandAugment: operations drawn per image; 0 = off */
    double rand_prob;           /* each of them is done with this probability */
    double rand_magnitude;      /* 0 to 10 */
    double rand_std;            /* of the magnitude, normal, kept in 0 to 10 */
    double color_jitter;        /* brightness, contrast, saturation each times a number in
                                   [1 - j, 1 + j], in random order; 0 = off */
    int three_augment;          /* 1 = one of: grey, solarize, Gaussian blur (DeiT III) */
    double erase;               /* probability that a box becomes noise; 0 = off */
    double erase_area[2];       /* share of the image; [1] = 0: 0.02 to 1/3 */
    double mixup_alpha;         /* Beta(a, a) of mixup's weight; 0 = no mixup */
    double cutmix_alpha;        /* ... of cutmix's area; 0 = no cutmix */
    double mix_prob;            /* a batch is mixed at all */
    double mix_switch_prob;     /* cutmix, where both are possible */
} ry_augment;

/* timm's rand-m9-mstd0.5-inc1 and what DeiT and EViT train with: crop .08-1, flip .5, erase .25,
 * mixup .8, cutmix 1, switch .5. */
void ry_augment_defaults(ry_augment *a);

/* RENYI_ERR_ARG names the field and what is allowed. */
renyi_status ry_augment_check(const ry_augment *a, renyi_error *err) RENYI_CHECK;

/* The input of a model. */
typedef struct ry_augment_target {
    uint32_t size;
    double mean[3], std[3];
    float lut[3][256]; /* level -> float: ry_normalize_lut */
} ry_augment_target;

/* One image -> chw [3, size, size], normalized, with a box erased at random; not mixed. pixels:
 * scratch of 2 * 3 * size * size bytes. Heap: the C library's, so any thread may call it. */
renyi_status ry_augment_image(float *chw, uint8_t *pixels, const renyi_image *image,
                              const ry_augment *a, const ry_augment_target *target, ry_rng *rng,
                              renyi_error *err) RENYI_CHECK;

/* Back to 8-bit levels, to look at: rounded and clipped. rgb: [size, size, 3]. */
void ry_augment_to_rgb(uint8_t *rgb, const float *chw, const ry_augment_target *target);

#endif
