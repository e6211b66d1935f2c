/* test_image_load.c - image files become RGB, pixels and floats as their bytes do in memory; files
 * that cannot be read, limits, failing allocations.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "fixtures/image_test.h"
#include "fixtures/test_heap.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

#include "image_expected.h"

#define N_IMAGES (sizeof IMAGES / sizeof *IMAGES)

static const renyi_preprocess SPEC = {24,  RENYI_CROP_CENTER,     RENYI_BICUBIC,
                                      0.9, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
enum { VALUES = 3 * 24 * 24 };

static const char *seed(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/fuzz/seeds/%s", RENYI_SOURCE_DIR, name);
    return path;
}

static void test_equals_decode(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_IMAGES; i++) {
        const struct image_expected *want = &IMAGES[i];
        const renyi_image_options opt = {.struct_size = sizeof opt, .apply_exif = want->apply_exif};
        renyi_image image;
        renyi_error err = {0};
        assert_int_equal(renyi_image_load(&image, seed(want->file), &opt, &err), want->status);
        assert_int_equal(image.width, want->width);
        assert_int_equal(image.height, want->height);
        if (want->status == RENYI_OK)
            assert_true(fnv1a(image.rgb, image.stride * image.height) == want->hash);
        else
            assert_true(strlen(err.message) >= 10 && !strstr(err.message, want->file));
        renyi_image_free(&image, &opt);
    }
}

static void test_pixels(void **state)
{
    (void)state;
    const renyi_image_options opt = {.struct_size = sizeof opt, .apply_exif = 1};
    uint8_t want[VALUES], got[VALUES];
    renyi_image image;
    assert_int_equal(renyi_image_load(&image, seed("fuzz_jpeg/exif6"), &opt, NULL), RENYI_OK);
    assert_int_equal(renyi_image_fit(want, &image, &SPEC, NULL, NULL), RENYI_OK);
    renyi_image_free(&image, &opt);
    assert_int_equal(renyi_image_load_pixels(got, seed("fuzz_jpeg/exif6"), &SPEC, &opt, NULL),
                     RENYI_OK);
    assert_memory_equal(got, want, sizeof want);
    assert_int_equal(renyi_image_load_pixels(got, seed("fuzz_jpeg/exif6"), NULL, &opt, NULL),
                     RENYI_ERR_ARG);
}

/* Two images; float arithmetic in the order of torchvision. */
static void test_normalize(void **state)
{
    (void)state;
    enum { AREA = VALUES / 3 };
    uint8_t pixels[2 * VALUES];
    float chw[2 * VALUES];
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * 2654435761u >> 13);
    renyi_image_normalize(chw, pixels, 2, &SPEC);
    for (size_t i = 0; i < sizeof pixels; i++) {
        const size_t image = i / VALUES, c = i % 3, at = i % VALUES / 3;
        const float want = ((float)pixels[i] / 255.0f - (float)SPEC.mean[c]) / (float)SPEC.std[c];
        assert_true(chw[image * VALUES + c * AREA + at] == want);
    }
}

static void refused(const char *path, const renyi_image_options *opt, renyi_status status,
                    const char *message)
{
    renyi_image image;
    renyi_error err = {0};
    assert_int_equal(renyi_image_load(&image, path, opt, &err), status);
    if (!strstr(err.message, message)) fail_msg("\"%s\" lacks \"%s\"", err.message, message);
    assert_null(image.rgb);
}

static void test_refused(void **state)
{
    (void)state;
    const char *good = "fuzz_png/type2-8bit";
    renyi_image_options opt = {.struct_size = sizeof opt};
    refused(seed("fuzz_png/absent"), NULL, RENYI_ERR_IO, "No such file");
    refused(seed("fuzz_png"), NULL, RENYI_ERR_IO, "not a regular file");
    refused("/dev/null", NULL, RENYI_ERR_IO, "not a regular file");
    opt.limits = (renyi_limits){.max_image_bytes = 50};
    refused(seed(good), &opt, RENYI_ERR_LIMIT, "at most 50");
    opt.limits = (renyi_limits){.max_image_side = 12};
    refused(seed(good), &opt, RENYI_ERR_LIMIT, "13 x 9");
    opt.struct_size = 3;
    refused(seed(good), &opt, RENYI_ERR_ARG, "3 bytes");
    assert_int_equal(renyi_image_load(NULL, seed(good), NULL, NULL), RENYI_ERR_ARG);
    renyi_image image;
    assert_int_equal(renyi_image_load(&image, NULL, NULL, NULL), RENYI_ERR_ARG);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    uint8_t pixels[VALUES];
    renyi_status st = RENYI_ERR_NOMEM;
    for (size_t n = 1; st != RENYI_OK; n++) {
        test_heap heap = {.fail_at = n, .fail_on = 1};
        const renyi_image_options opt = {
            sizeof opt, 1, {0}, test_heap_of(&heap), RENYI_DECODE_EXACT};
        st = renyi_image_load_pixels(pixels, seed("fuzz_jpeg/exif6"), &SPEC, &opt, NULL);
        assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
        assert_int_equal(heap.live, 0);
        assert_true(st == RENYI_ERR_NOMEM || n > 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_decode),   cmocka_unit_test(test_pixels),
        cmocka_unit_test(test_normalize),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
