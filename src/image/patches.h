/* patches.h - from a picture to the matrix that the patch embedding multiplies: one row a patch,
 * patches in raster order, inside a patch channel, row, column (the order of a convolution's
 * weights).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PATCHES_H
#define RY_PATCHES_H

#include <stdint.h>

/* lut[c][x] = (x / 255 - mean[c]) / std[c], every step rounded to float as torchvision does. */
void ry_normalize_lut(float lut[3][256], const double mean[3], const double std[3]);

/* pixels [S, S, 3] -> chw [3, S, S] */
void ry_normalize_pixels(float *chw, const uint8_t *pixels, uint32_t size, const float lut[3][256]);

/* With G = size / patch (rounded down: a remainder at the right and below is not seen),
 * out is [G * G, 3 * patch * patch]. */
void ry_patches_from_pixels(float *out, const uint8_t *pixels /* [S, S, 3] */, uint32_t size,
                            uint32_t patch, const float lut[3][256]);
void ry_patches_from_chw(float *out, const float *chw /* [3, S, S] */, uint32_t size,
                         uint32_t patch);

#endif
