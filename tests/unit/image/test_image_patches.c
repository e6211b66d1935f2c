/* test_image_patches.c - the patch matrix against its definition, index by index.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/patches.h"

#include <stdlib.h>

#include "test.h"

static const double MEAN[3] = {0.485, 0.456, 0.406}, STD[3] = {0.229, 0.224, 0.225};

/* Values from torch 2: (torch.tensor(x) / 255 - mean) / std in float32. */
static void test_lut(void **state)
{
    (void)state;
    const double half[3] = {0.5, 0.5, 0.5};
    float lut[3][256];
    ry_normalize_lut(lut, half, half);
    assert_true(lut[0][0] == -1.0f && lut[2][255] == 1.0f);
    ry_normalize_lut(lut, MEAN, STD);
    assert_true(lut[0][0] == (0.0f - 0.485f) / 0.229f);
    assert_true(lut[1][128] == (128.0f / 255.0f - 0.456f) / 0.224f);
    assert_true(lut[2][255] == (1.0f - 0.406f) / 0.225f);
}

static void check_patches(uint32_t size, uint32_t patch)
{
    const size_t grid = size / patch, cols = 3 * (size_t)patch * patch;
    const size_t pixels = (size_t)size * size;
    uint8_t *rgb = malloc(pixels * 3);
    float *chw = malloc(pixels * 3 * sizeof *chw);
    float *a = malloc(grid * grid * cols * sizeof *a), *b = malloc(grid * grid * cols * sizeof *b);
    float lut[3][256];
    ry_normalize_lut(lut, MEAN, STD);
    for (size_t i = 0; i < pixels * 3; i++) {
        rgb[i] = (uint8_t)(i * 2654435761u >> 13);
        chw[i % 3 * pixels + i / 3] = lut[i % 3][rgb[i]];
    }
    ry_patches_from_pixels(a, rgb, size, patch, (const float(*)[256])lut);
    ry_patches_from_chw(b, chw, size, patch);
    for (size_t i = 0; i < grid * grid * cols; i++) {
        const size_t p = i / cols, c = i % cols / (patch * patch), k = i % (patch * patch);
        const size_t y = p / grid * patch + k / patch, x = p % grid * patch + k % patch;
        assert_true(a[i] == chw[(c * size + y) * size + x]);
        assert_true(b[i] == a[i]);
    }
    free(rgb);
    free(chw);
    free(a);
    free(b);
}

static void test_order(void **state)
{
    (void)state;
    check_patches(224, 16);
    check_patches(32, 8);
    check_patches(30, 14); /* two pixels at the right and below are not used */
    check_patches(5, 1);
    check_patches(7, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lut), cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
