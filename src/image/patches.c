/* patches.c - pixels to model input: normalized floats, as planes or cut into patches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/patches.h"

#include "renyi/renyi.h"

#include <stddef.h>
#include <string.h>

void ry_normalize_lut(float lut[3][256], const double mean[3], const double std[3])
{
    for (int c = 0; c < 3; c++) {
        const float m = (float)mean[c], s = (float)std[c];
        for (int x = 0; x < 256; x++) lut[c][x] = ((float)x / 255.0f - m) / s;
    }
}

void ry_normalize_pixels(float *chw, const uint8_t *pixels, uint32_t size, const float lut[3][256])
{
    const size_t area = (size_t)size * size;
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < area; i++) chw[c * area + i] = lut[c][pixels[3 * i + c]];
}

void renyi_image_normalize(float *chw, const uint8_t *pixels, uint32_t n,
                           const renyi_preprocess *spec)
{
    const size_t values = 3 * (size_t)spec->size * spec->size;
    float lut[3][256];
    ry_normalize_lut(lut, spec->mean, spec->std);
    for (uint32_t i = 0; i < n; i++)
        ry_normalize_pixels(chw + i * values, pixels + i * values, spec->size,
                            (const float(*)[256])lut);
}

/* One row of one patch: `patch` pixels to three runs, `plane` floats apart. */
static void patch_row(float *out, const uint8_t *rgb, size_t patch, size_t plane,
                      const float lut[3][256])
{
    for (size_t x = 0; x < patch; x++) {
        out[x] = lut[0][rgb[3 * x]];
        out[plane + x] = lut[1][rgb[3 * x + 1]];
        out[2 * plane + x] = lut[2][rgb[3 * x + 2]];
    }
}

void ry_patches_from_pixels(float *out, const uint8_t *pixels, uint32_t size, uint32_t patch,
                            const float lut[3][256])
{
    const size_t grid = size / patch, plane = (size_t)patch * patch;
    for (size_t y = 0; y < grid * patch; y++) {
        const uint8_t *row = pixels + y * size * 3;
        float *to = out + (y / patch) * grid * 3 * plane + (y % patch) * patch;
        for (size_t g = 0; g < grid; g++)
            patch_row(to + g * 3 * plane, row + g * patch * 3, patch, plane, lut);
    }
}

void ry_patches_from_chw(float *out, const float *chw, uint32_t size, uint32_t patch)
{
    const size_t grid = size / patch, plane = (size_t)patch * patch;
    for (size_t c = 0; c < 3; c++) {
        for (size_t y = 0; y < grid * patch; y++) {
            const float *row = chw + (c * size + y) * size;
            float *to = out + ((y / patch) * grid * 3 + c) * plane + (y % patch) * patch;
            for (size_t g = 0; g < grid; g++)
                memcpy(to + g * 3 * plane, row + g * patch, patch * sizeof *row);
        }
    }
}
