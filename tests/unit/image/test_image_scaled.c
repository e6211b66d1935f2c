/* test_image_scaled.c - RENYI_DECODE_SCALED: which scale is chosen, how near the pixels are to
 * exact ones, orientation, and what stays exact. The images are drawn and encoded here.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "fixtures/image_test.h"
#include "fixtures/test_heap.h"
#include "image/fit.h"

#include "base/alloc.h"
#include "base/limits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <webp/encode.h>

#include "test.h"

#include "image_expected.h"

#define N_IMAGES (sizeof IMAGES / sizeof *IMAGES)

enum { SIDE = 64, VALUES = 3 * SIDE * SIDE };

static const renyi_preprocess SPEC = {SIDE,  RENYI_CROP_CENTER, RENYI_BICUBIC,
                                      0.875, {0.5, 0.5, 0.5},   {0.5, 0.5, 0.5}};

typedef struct blob {
    uint8_t *bytes; /* free() */
    size_t size;
} blob;

/* ---- images -------------------------------------------------------------------------------- */

/* Waves of several lengths and a little noise; no two parts are alike. */
static uint8_t *draw_waves(uint32_t width, uint32_t height)
{
    uint8_t *rgb = malloc(3 * (size_t)width * height), *to = rgb;
    uint32_t noise = 1;
    assert_non_null(rgb);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < 3; c++) {
                const double u = 60.0 * x / width, v = 45.0 * y / height;
                noise = noise * 1664525u + 1013904223u;
                *to++ = (uint8_t)(128 + 50 * sin(u + c + v * v / 30) + 40 * cos(v - 0.2 * u * c) +
                                  (noise >> 28));
            }
    return rgb;
}

/* orientation: 0 = no EXIF data. */
static blob encode_jpeg(uint32_t width, uint32_t height, uint8_t orientation)
{
    const uint8_t exif[] = {'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42,          0, 0, 0, 8, 0, 1,
                            1,   18,  0,   3,   0, 0, 0,   1,   0, orientation, 0, 0, 0, 0, 0, 0};
    struct jpeg_compress_struct lib;
    struct jpeg_error_mgr errors;
    uint8_t *rgb = draw_waves(width, height);
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    lib.err = jpeg_std_error(&errors);
    jpeg_create_compress(&lib);
    jpeg_mem_dest(&lib, &bytes, &size);
    lib.image_width = width;
    lib.image_height = height;
    lib.input_components = 3;
    lib.in_color_space = JCS_RGB;
    jpeg_set_defaults(&lib);
    jpeg_set_quality(&lib, 90, TRUE);
    jpeg_start_compress(&lib, TRUE);
    if (orientation) jpeg_write_marker(&lib, JPEG_APP0 + 1, exif, sizeof exif);
    while (lib.next_scanline < height) {
        JSAMPROW row = rgb + 3 * (size_t)width * lib.next_scanline;
        jpeg_write_scanlines(&lib, &row, 1);
    }
    jpeg_finish_compress(&lib);
    jpeg_destroy_compress(&lib);
    free(rgb);
    return (blob){bytes, size};
}

static blob encode_webp(uint32_t width, uint32_t height)
{
    uint8_t *rgb = draw_waves(width, height), *bytes = NULL;
    const size_t size = WebPEncodeRGB(rgb, (int)width, (int)height, 3 * (int)width, 90.0f, &bytes);
    free(rgb);
    assert_true(size > 0);
    blob b = {malloc(size), size};
    assert_non_null(b.bytes);
    memcpy(b.bytes, bytes, size);
    WebPFree(bytes);
    return b;
}

static blob read_seed(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/fuzz/seeds/%s", RENYI_SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing", path);
    blob b = {malloc(1 << 20), 0};
    assert_non_null(b.bytes);
    b.size = fread(b.bytes, 1, 1 << 20, f);
    fclose(f);
    return b;
}

/* ---- comparing ----------------------------------------------------------------------------- */

static renyi_image_options options(renyi_decode_mode mode, uint32_t apply_exif)
{
    return (renyi_image_options){
        .struct_size = sizeof(renyi_image_options), .apply_exif = apply_exif, .decode = mode};
}

static double psnr(const uint8_t *a, const uint8_t *b, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum > 0.0 ? 10 * log10(255.0 * 255.0 * (double)n / sum) : INFINITY;
}

/* PSNR of the scaled pixels against the exact ones; full_size must be the same. */
static double nearness(const blob *file, const renyi_preprocess *spec, uint32_t apply_exif)
{
    uint8_t exact[VALUES], scaled[VALUES];
    uint32_t full[2], other[2];
    const renyi_image_options a = options(RENYI_DECODE_EXACT, apply_exif),
                              b = options(RENYI_DECODE_SCALED, apply_exif);
    assert_int_equal(
        renyi_image_decode_pixels(exact, full, file->bytes, file->size, spec, &a, NULL), RENYI_OK);
    assert_int_equal(
        renyi_image_decode_pixels(scaled, other, file->bytes, file->size, spec, &b, NULL),
        RENYI_OK);
    assert_memory_equal(full, other, sizeof full);
    return psnr(exact, scaled, VALUES);
}

static uint32_t scale_of(uint32_t width, uint32_t height, const renyi_preprocess *spec)
{
    ry_scaling scaling = {.spec = spec};
    const ry_encoded in = {NULL, 0, ry_limits(NULL), NULL, &scaling, NULL};
    return ry_image_scale(&in, width, height);
}

/* ---- tests --------------------------------------------------------------------------------- */

static void test_scale_is_chosen(void **state)
{
    (void)state;
    static const struct {
        uint32_t width, height;
        renyi_crop_mode mode;
        uint32_t want;
    } CASES[] = {
        {4032, 3024, RENYI_CROP_CENTER, 4}, {3024, 4032, RENYI_CROP_CENTER, 4},
        {4096, 4096, RENYI_CROP_CENTER, 8}, {4095, 4096, RENYI_CROP_CENTER, 4},
        {1024, 1024, RENYI_CROP_CENTER, 2}, {1023, 9000, RENYI_CROP_CENTER, 1},
        {1024, 1024, RENYI_CROP_CENTER, 2}, {20000, 500, RENYI_CROP_CENTER, 1},
        {4096, 2048, RENYI_CROP_SQUASH, 4}, {4096, 1024, RENYI_CROP_SQUASH, 2},
        {4096, 1023, RENYI_CROP_SQUASH, 1}, {8192, 100, RENYI_CROP_BORDER, 8},
        {1, 1, RENYI_CROP_CENTER, 1},
    };
    const renyi_preprocess base = {224, RENYI_CROP_CENTER, RENYI_BICUBIC, 0.875, {0}, {0}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        renyi_preprocess spec = base;
        spec.crop_mode = CASES[i].mode;
        const uint32_t got = scale_of(CASES[i].width, CASES[i].height, &spec);
        if (got != CASES[i].want)
            fail_msg("%u x %u, mode %d: scale %u", CASES[i].width, CASES[i].height,
                     (int)CASES[i].mode, got);
    }
    const ry_encoded exact = {NULL, 0, ry_limits(NULL), NULL, NULL, NULL};
    assert_int_equal(ry_image_scale(&exact, 9000, 9000), 1);
}

/* At least twice the resized size on both axes, and the next scale would have less. */
static void test_never_below_twice(void **state)
{
    (void)state;
    uint32_t n_scaled = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        const uint32_t w = 1 + i * 7919 % 9001, h = 1 + i * 104729 % 8009;
        const renyi_preprocess spec = {
            16 + i % 300, (renyi_crop_mode)(i % 3), RENYI_BICUBIC, 0.9, {0}, {0}};
        ry_placed x, y;
        assert_int_equal(ry_fit_place(&x, &y, w, h, &spec, NULL), RENYI_OK);
        const uint32_t s = scale_of(w, h, &spec), t = 2 * s;
        n_scaled += s > 1;
        if (s > 1) assert_true(w >= 2 * s * x.axis.out_size && h >= 2 * s * y.axis.out_size);
        if (s < 8) assert_true(w < 2 * t * x.axis.out_size || h < 2 * t * y.axis.out_size);
    }
    assert_true(n_scaled > 500);
}

/* The sizes leave remainders 0 to 7, so the last pixel of the scaled image is partly outside. */
static void test_pixels_are_near(void **state)
{
    (void)state;
    static const uint32_t SIZES[][2] = {{1280, 960}, {603, 809}, {1999, 1501}, {2401, 1177}};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
        for (int mode = 0; mode < 3; mode++) {
            renyi_preprocess spec = SPEC;
            spec.crop_mode = (renyi_crop_mode)mode;
            blob jpeg = encode_jpeg(SIZES[i][0], SIZES[i][1], 0);
            blob webp = encode_webp(SIZES[i][0], SIZES[i][1]);
            const double a = nearness(&jpeg, &spec, 0), b = nearness(&webp, &spec, 0);
            assert_true(scale_of(SIZES[i][0], SIZES[i][1], &spec) > 1);
            if (!(a >= 48 && a < 100 && b >= 38 && b < 100)) /* measured: 49.4, 38.6 */
                fail_msg("%u x %u, mode %d: PSNR %g and %g dB", SIZES[i][0], SIZES[i][1], mode, a,
                         b);
            free(jpeg.bytes);
            free(webp.bytes);
        }
}

/* 1201 = 8 * 150 + 1: turned, 7/8 of a pixel outside the image come first. */
static void test_orientation(void **state)
{
    (void)state;
    for (uint8_t o = 1; o <= 8; o++) {
        blob file = encode_jpeg(1201, 1305, o);
        const double turned = nearness(&file, &SPEC, 1), stored = nearness(&file, &SPEC, 0);
        if (turned < 50 || stored < 50) /* measured: 50.7 */
            fail_msg("orientation %d: PSNR %g dB turned, %g as stored", o, turned, stored);
        free(file.bytes);
    }
}

/* Images that are too small to be scaled, and formats that cannot be: the same bits. With an input
 * of one pixel every seed is scaled: the same errors, the same full size. */
static void test_small_images_are_exact(void **state)
{
    (void)state;
    renyi_preprocess pixel = SPEC;
    pixel.size = 1;
    for (size_t i = 0; i < N_IMAGES; i++) {
        const struct image_expected *want = &IMAGES[i];
        const renyi_image_options a = options(RENYI_DECODE_EXACT, want->apply_exif),
                                  b = options(RENYI_DECODE_SCALED, want->apply_exif);
        uint8_t exact[VALUES] = {0}, scaled[VALUES] = {0}, one[3];
        uint32_t full[2];
        blob file = read_seed(want->file);
        assert_int_equal(
            renyi_image_decode_pixels(exact, NULL, file.bytes, file.size, &SPEC, &a, NULL),
            want->status);
        assert_int_equal(
            renyi_image_decode_pixels(scaled, full, file.bytes, file.size, &SPEC, &b, NULL),
            want->status);
        assert_memory_equal(exact, scaled, VALUES);
        const renyi_status st =
            renyi_image_decode_pixels(one, full, file.bytes, file.size, &pixel, &b, NULL);
        if (st != want->status) fail_msg("%s: %d scaled", want->file, (int)st);
        if (st == RENYI_OK) assert_true(full[0] == want->width && full[1] == want->height);
        free(file.bytes);
    }
}

static uint32_t decoded_width(ry_image_reader *reader, const char *name)
{
    const renyi_preprocess pixel = {1, RENYI_CROP_CENTER, RENYI_BICUBIC, 1.0, {0}, {0}};
    ry_scaling scaling = {.spec = &pixel};
    blob file = read_seed(name);
    const ry_encoded in = {file.bytes, file.size, ry_limits(NULL), NULL, &scaling, NULL};
    renyi_image image;
    assert_int_equal(reader(&image, &in, NULL), RENYI_OK);
    ry_free(NULL, (uint8_t *)(uintptr_t)image.rgb);
    free(file.bytes);
    return image.width;
}

/* The seeds are 37 x 21: divided by 8, 5 x 3. */
static void test_what_is_scaled(void **state)
{
    (void)state;
    assert_int_equal(decoded_width(ry_decode_jpeg, "fuzz_jpeg/baseline-0"), 5);
    assert_int_equal(decoded_width(ry_decode_jpeg, "fuzz_jpeg/progressive-2"), 5);
    assert_int_equal(decoded_width(ry_decode_jpeg, "fuzz_jpeg/cmyk"), 5);
    assert_int_equal(decoded_width(ry_decode_webp, "fuzz_webp/lossy"), 5);
    assert_int_equal(decoded_width(ry_decode_webp, "fuzz_webp/lossless"), 5);
    assert_int_equal(decoded_width(ry_decode_webp, "fuzz_webp/lossless-alpha"), 37);
    assert_int_equal(decoded_width(ry_decode_webp, "fuzz_webp/animated"), 37);
    assert_int_equal(decoded_width(ry_decode_png, "fuzz_png/type2-8bit"), 13);
}

/* Limits are about the size in the file; options of older programs have no mode. */
static void test_options(void **state)
{
    (void)state;
    uint8_t exact[VALUES], other[VALUES];
    blob file = encode_jpeg(1200, 900, 0);
    renyi_image_options o = options(RENYI_DECODE_EXACT, 0);
    renyi_error err = {0};
    renyi_image image;
    assert_int_equal(renyi_image_decode_pixels(exact, NULL, file.bytes, file.size, &SPEC, &o, NULL),
                     RENYI_OK);
    o.decode = RENYI_DECODE_SCALED;
    assert_int_equal(renyi_image_decode(&image, file.bytes, file.size, &o, NULL), RENYI_OK);
    assert_int_equal(image.width, 1200); /* this function decodes every pixel */
    renyi_image_free(&image, &o);
    o.struct_size = offsetof(renyi_image_options, decode);
    assert_int_equal(renyi_image_decode_pixels(other, NULL, file.bytes, file.size, &SPEC, &o, NULL),
                     RENYI_OK);
    assert_memory_equal(exact, other, VALUES);
    o.struct_size = sizeof o;
    o.limits.max_pixels = 1200 * 900 - 1;
    assert_int_equal(renyi_image_decode_pixels(other, NULL, file.bytes, file.size, &SPEC, &o, &err),
                     RENYI_ERR_LIMIT);
    assert_non_null(strstr(err.message, "1200 x 900"));
    o.decode = (renyi_decode_mode)7;
    assert_int_equal(renyi_image_decode_pixels(other, NULL, file.bytes, file.size, &SPEC, &o, &err),
                     RENYI_ERR_ARG);
    assert_int_equal(renyi_image_decode_pixels(NULL, NULL, file.bytes, 9, &SPEC, NULL, &err),
                     RENYI_ERR_ARG);
    free(file.bytes);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    uint8_t pixels[VALUES];
    blob file = encode_jpeg(700, 600, 6);
    renyi_status st = RENYI_ERR_NOMEM;
    for (size_t n = 1; st != RENYI_OK; n++) {
        test_heap heap = {.fail_at = n, .fail_on = 1};
        renyi_image_options o = options(RENYI_DECODE_SCALED, 1);
        o.allocator = test_heap_of(&heap);
        st = renyi_image_decode_pixels(pixels, NULL, file.bytes, file.size, &SPEC, &o, NULL);
        assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
        assert_int_equal(heap.live, 0);
        assert_true(st == RENYI_ERR_NOMEM || n > 4);
    }
    free(file.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale_is_chosen),
        cmocka_unit_test(test_never_below_twice),
        cmocka_unit_test(test_pixels_are_near),
        cmocka_unit_test(test_orientation),
        cmocka_unit_test(test_small_images_are_exact),
        cmocka_unit_test(test_what_is_scaled),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
