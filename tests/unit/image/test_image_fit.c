/* test_image_fit.c - resize and crop against hashes of the results of Pillow and timm, at every CPU
 * level of this machine.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "fixtures/image_test.h"
#include "fixtures/test_heap.h"
#include "image/fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

#include "pillow_hashes.h"

static const renyi_preprocess PLAIN = {224, RENYI_CROP_CENTER,     RENYI_BICUBIC,
                                       0.9, {0.485, 0.456, 0.406}, {1, 1, 1}};

static void check_case(const struct pillow_case *c, const ry_resize_kernels *kernels,
                       const char *level)
{
    renyi_preprocess spec = PLAIN;
    spec.size = c->size;
    spec.crop_mode = c->mode;
    spec.interpolation = c->filter;
    spec.crop_pct = c->crop_pct;
    uint8_t *rgb = draw(c->width, c->height);
    const renyi_image image = {rgb, c->width, c->height, 0};
    const size_t n = (size_t)c->size * c->size * 3;
    uint8_t *out = malloc(n);
    renyi_error err = {0};
    assert_int_equal(ry_fit(out, &image, &spec, kernels, NULL, &err), RENYI_OK);
    if (fnv1a(out, n) != c->hash)
        fail_msg("%s: %ux%u to %u, crop_pct %g, mode %d, filter %d differs from Pillow", level,
                 c->width, c->height, c->size, c->crop_pct, (int)c->mode, (int)c->filter);
    free(out);
    free(rgb);
}

static void test_equals_pillow(void **state)
{
    (void)state;
    const size_t n = sizeof PILLOW_CASES / sizeof *PILLOW_CASES;
    for (size_t i = 0; i < n; i++) {
        check_case(&PILLOW_CASES[i], &ry_resize_scalar, "scalar");
        if (renyi_cpu_detect() >= RENYI_CPU_AVX2)
            check_case(&PILLOW_CASES[i], &ry_resize_vec8, "vec8");
    }
    printf("%zu sizes, filters and modes equal Pillow's\n", n);
}

/* Rows with bytes behind the image: they must not be read. */
static void test_stride(void **state)
{
    (void)state;
    enum { W = 90, H = 70, STRIDE = 3 * W + 37, S = 32 };
    uint8_t *rgb = draw(W, H), *wide = malloc(STRIDE * H);
    uint8_t a[S * S * 3], b[S * S * 3];
    renyi_preprocess spec = PLAIN;
    spec.size = S;
    memset(wide, 0xee, STRIDE * H);
    for (size_t y = 0; y < H; y++) memcpy(wide + y * STRIDE, rgb + y * 3 * W, 3 * W);
    const renyi_image dense = {rgb, W, H, 0}, padded = {wide, W, H, STRIDE};
    assert_int_equal(renyi_image_fit(a, &dense, &spec, NULL, NULL), RENYI_OK);
    assert_int_equal(renyi_image_fit(b, &padded, &spec, NULL, NULL), RENYI_OK);
    assert_memory_equal(a, b, sizeof a);
    free(rgb);
    free(wide);
}

/* A strip that timm's border mode shrinks to nothing keeps one row here. */
static void test_thin_border(void **state)
{
    (void)state;
    uint8_t *rgb = draw(1000, 1), out[16 * 16 * 3];
    const renyi_image strip = {rgb, 1000, 1, 0};
    renyi_preprocess spec = PLAIN;
    spec.size = 16;
    spec.crop_mode = RENYI_CROP_BORDER;
    spec.crop_pct = 1.0;
    assert_int_equal(renyi_image_fit(out, &strip, &spec, NULL, NULL), RENYI_OK);
    assert_int_equal(out[0], 124); /* round(255 * 0.485) */
    free(rgb);
}

static void refused(const renyi_image *image, const renyi_preprocess *spec, renyi_status code)
{
    uint8_t out[16 * 16 * 3];
    renyi_error err = {0};
    assert_int_equal(renyi_image_fit(out, image, spec, NULL, &err), code);
    assert_int_equal(err.code, code);
    assert_true(err.message[0] != 0);
}

static void test_arguments(void **state)
{
    (void)state;
    uint8_t pixel[3] = {1, 2, 3};
    const renyi_image one = {pixel, 1, 1, 0}, none = {NULL, 1, 1, 0}, flat = {pixel, 1, 0, 0};
    const renyi_image thin = {pixel, 2, 1, 5}, huge = {pixel, 1u << 25, 1, 0};
    renyi_preprocess spec = PLAIN;
    spec.size = 16;
    refused(NULL, &spec, RENYI_ERR_ARG);
    refused(&none, &spec, RENYI_ERR_ARG);
    refused(&flat, &spec, RENYI_ERR_ARG);
    refused(&thin, &spec, RENYI_ERR_ARG);
    refused(&huge, &spec, RENYI_ERR_LIMIT);
    refused(&one, NULL, RENYI_ERR_ARG);
    const double bad_pct[] = {-1.0, NAN, INFINITY, 17.0, 1e-9};
    for (size_t i = 0; i < sizeof bad_pct / sizeof *bad_pct; i++) {
        spec.crop_pct = bad_pct[i];
        refused(&one, &spec, RENYI_ERR_ARG);
    }
    spec.crop_pct = 0.9;
    spec.crop_mode = (renyi_crop_mode)7;
    refused(&one, &spec, RENYI_ERR_ARG);
    spec.crop_mode = RENYI_CROP_CENTER;
    spec.interpolation = (renyi_interpolation)-1;
    refused(&one, &spec, RENYI_ERR_ARG);
    spec.interpolation = RENYI_BICUBIC;
    spec.size = 0;
    refused(&one, &spec, RENYI_ERR_ARG);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    uint8_t *rgb = draw(50, 40), out[16 * 16 * 3];
    const renyi_image image = {rgb, 50, 40, 0};
    renyi_preprocess spec = PLAIN;
    spec.size = 16;
    renyi_status st = RENYI_ERR_NOMEM;
    for (size_t n = 1; st != RENYI_OK; n++) {
        test_heap heap = {.fail_at = n, .fail_on = 1};
        const renyi_allocator al = test_heap_of(&heap);
        st = renyi_image_fit(out, &image, &spec, &al, NULL);
        assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
        assert_int_equal(heap.live, 0);
    }
    free(rgb);
}

/* Fitting with a border equals fitting the square with the border drawn. */
static void check_square(uint32_t w, uint32_t h, uint32_t size, double crop_pct,
                         const ry_resize_kernels *kernels)
{
    const uint32_t side = w > h ? w : h;
    renyi_preprocess spec = PLAIN;
    spec.size = size;
    spec.crop_pct = crop_pct;
    uint8_t *rgb = draw(w, h), *square = malloc((size_t)side * side * 3);
    uint8_t *want = malloc((size_t)size * size * 3), *got = malloc((size_t)size * size * 3);
    for (size_t i = 0; i < (size_t)side * side * 3; i++)
        square[i] = (uint8_t)(255 * spec.mean[i % 3]);
    for (size_t y = 0; y < h; y++)
        memcpy(square + (((side - h) / 2 + y) * side + (side - w) / 2) * 3, rgb + y * w * 3,
               (size_t)w * 3);
    const renyi_image image = {rgb, w, h, 0}, whole = {square, side, side, 0};
    assert_int_equal(ry_fit(want, &whole, &spec, kernels, NULL, NULL), RENYI_OK);
    assert_int_equal(ry_fit_square(got, &image, &spec, kernels, NULL, NULL), RENYI_OK);
    assert_memory_equal(got, want, (size_t)size * size * 3);
    free(rgb);
    free(square);
    free(want);
    free(got);
}

static void test_square(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{90, 61}, {61, 90}, {64, 64}, {200, 1}, {1, 33}, {48, 47}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_square(sizes[i][0], sizes[i][1], 48, 1.0, &ry_resize_scalar);
        check_square(sizes[i][0], sizes[i][1], 48, 0.8, ry_resize_best());
        check_square(sizes[i][0], sizes[i][1], 90, 1.0, ry_resize_best());
    }
    const renyi_image none = {NULL, 3, 4, 0};
    uint8_t out[3];
    assert_int_equal(ry_fit_square(out, &none, &PLAIN, &ry_resize_scalar, NULL, NULL),
                     RENYI_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_square),    cmocka_unit_test(test_equals_pillow),
        cmocka_unit_test(test_stride),    cmocka_unit_test(test_thin_border),
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
