/* augment_crop.h - torchvision's RandomResizedCrop: a box of random area and shape, resized to the
 * model's square.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_AUGMENT_CROP_H
#define RY_AUGMENT_CROP_H

#include "train/data/augment.h"

typedef struct ry_crop {
    uint32_t left, top, width, height; /* in pixels of the photo; not empty */
} ry_crop;

/* Ten tries, then the largest box in the middle whose shape is allowed. */
ry_crop ry_crop_draw(uint32_t width, uint32_t height, const ry_augment *a, ry_rng *rng);

/* pixels: [size, size, 3]. The box is cut out first, so its edges see nothing beyond it. */
renyi_status ry_crop_take(uint8_t *pixels, uint32_t size, const renyi_image *photo,
                          const ry_crop *crop, renyi_interpolation filter,
                          renyi_error *err) RENYI_CHECK;

/* Left for right, in place. */
void ry_flip(uint8_t *pixels, uint32_t size);

#endif
