/* patches.h - pixels to model input: normalized floats, as planes or cut into patches.
 *
 * The patch embedding multiplies a matrix with one row per patch, patches in raster order; inside a
 * row the order is channel, row, column, as in a convolution's weights.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PATCHES_H
#define RY_PATCHES_H

#include <stdint.h>

/* lut[c][x] = (x / 255 - mean[c]) / std[c], each step rounded to float as in torchvision. */
void ry_normalize_lut(float lut[3][256], const double mean[3], const double std[3]);

/* pixels [S, S, 3] -> chw [3, S, S] */
void ry_normalize_pixels(float *chw, const uint8_t *pixels, uint32_t size, const float lut[3][256]);

/* out: [G * G, 3 * patch * patch] with G = size / patch rounded down: a remainder at the right and
 * bottom is not used. */
void ry_patches_from_pixels(float *out, const uint8_t *pixels /* [S, S, 3] */, uint32_t size,
                            uint32_t patch, const float lut[3][256]);
void ry_patches_from_chw(float *out, const float *chw /* [3, S, S] */, uint32_t size,
                         uint32_t patch);

#endif
