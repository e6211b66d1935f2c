/* test_image_window.c - a JPEG that is fitted row by row, with only the columns and rows that are
 * read, has the bits of one that is decoded whole: for all samplings, scans, sizes and crops. A
 * truncated file is an error wherever it ends.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "fixtures/test_heap.h"
#include "image/fit_rows.h"

#include "base/alloc.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "test.h"

enum { SIDE = 48, VALUES = 3 * SIDE * SIDE };

typedef struct drawing {
    uint32_t width, height;
    int channels;     /* 1, 3 or 4 */
    int across, down; /* sampling of the first channel; the others have 1 x 1 */
    int progressive;
    unsigned restart; /* interval in blocks; 0 = none */
} drawing;

typedef struct blob {
    uint8_t *bytes; /* free() */
    size_t size;
} blob;

/* Noise over a pattern, so that every pixel differs from its neighbours. */
static blob encode(const drawing *d)
{
    struct jpeg_compress_struct lib;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    uint32_t noise = 1;
    uint8_t *line = malloc((size_t)d->channels * d->width);
    assert_non_null(line);
    lib.err = jpeg_std_error(&errors);
    jpeg_create_compress(&lib);
    jpeg_mem_dest(&lib, &bytes, &size);
    lib.image_width = d->width;
    lib.image_height = d->height;
    lib.input_components = d->channels;
    lib.in_color_space = d->channels == 1 ? JCS_GRAYSCALE : d->channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&lib);
    jpeg_set_quality(&lib, 92, TRUE);
    lib.comp_info[0].h_samp_factor = d->across;
    lib.comp_info[0].v_samp_factor = d->down;
    lib.restart_interval = d->restart;
    if (d->progressive) jpeg_simple_progression(&lib);
    jpeg_start_compress(&lib, TRUE);
    while (lib.next_scanline < d->height) {
        for (uint32_t x = 0; x < (uint32_t)d->channels * d->width; x++) {
            noise = noise * 1664525u + 1013904223u;
            line[x] = (uint8_t)(x * 5 / 3 + lib.next_scanline * 3 + (noise >> 25));
        }
        jpeg_write_scanlines(&lib, &line, 1);
    }
    jpeg_finish_compress(&lib);
    jpeg_destroy_compress(&lib);
    free(line);
    return (blob){bytes, size};
}

static renyi_preprocess spec_of(renyi_crop_mode mode, double crop, renyi_interpolation filter)
{
    return (renyi_preprocess){SIDE, mode, filter, crop, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}};
}

/* Decoded whole, then fitted. */
static void fit_whole(uint8_t *pixels, const blob *b, const renyi_preprocess *spec, int scaled)
{
    ry_scaling scaling = {.spec = spec};
    const ry_encoded in = {b->bytes, b->size, ry_limits(NULL), NULL, scaled ? &scaling : NULL,
                           NULL};
    renyi_image image = {0};
    renyi_error err = {0};
    assert_int_equal(ry_decode_jpeg(&image, &in, &err), RENYI_OK);
    assert_int_equal(
        scaled ? ry_fit_scaled(pixels, &image, &scaling.whole, spec, ry_resize_best(), NULL, &err)
               : ry_fit(pixels, &image, spec, ry_resize_best(), NULL, &err),
        RENYI_OK);
    renyi_image_free(&image, NULL);
}

static void compare(const drawing *d, const renyi_preprocess *spec)
{
    static uint8_t whole[VALUES], window[VALUES];
    const blob b = encode(d);
    for (int scaled = 0; scaled < 2; scaled++) {
        const renyi_image_options opt = {
            .struct_size = sizeof opt, .decode = scaled ? RENYI_DECODE_SCALED : RENYI_DECODE_EXACT};
        renyi_error err = {0};
        uint32_t size[2] = {0, 0};
        fit_whole(whole, &b, spec, scaled);
        memset(window, 1, sizeof window);
        if (renyi_image_decode_pixels(window, size, b.bytes, b.size, spec, &opt, &err))
            fail_msg("%s", err.message);
        assert_int_equal(size[0], d->width);
        assert_int_equal(size[1], d->height);
        if (memcmp(whole, window, sizeof whole) != 0)
            fail_msg("%u x %u, %d channels, sampling %d x %d, progressive %d, restart %u, crop "
                     "mode %d, scaled %d",
                     d->width, d->height, d->channels, d->across, d->down, d->progressive,
                     d->restart, (int)spec->crop_mode, scaled);
    }
    free(b.bytes);
}

static void test_same_bits(void **state)
{
    (void)state;
    static const int SAMPLING[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}};
    static const uint32_t SIZES[][2] = {{403, 302},  {302, 403}, {1201, 477}, {640, 640},
                                        {1001, 877}, {64, 900},  {1200, 50},  {49, 47}};
    const renyi_preprocess specs[] = {spec_of(RENYI_CROP_CENTER, 0.875, RENYI_BICUBIC),
                                      spec_of(RENYI_CROP_CENTER, 0.3, RENYI_LANCZOS),
                                      spec_of(RENYI_CROP_SQUASH, 0.7, RENYI_BILINEAR),
                                      spec_of(RENYI_CROP_BORDER, 1.0, RENYI_BICUBIC)};
    for (size_t i = 0; i < sizeof SAMPLING / sizeof *SAMPLING; i++)
        for (size_t k = 0; k < sizeof SIZES / sizeof *SIZES; k++)
            for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
                drawing d = {SIZES[k][0],      SIZES[k][1],     3, SAMPLING[i][0], SAMPLING[i][1],
                             (int)(k + s) % 2, s == 1 ? 7u : 0u};
                compare(&d, &specs[s]);
            }
}

static void test_channels(void **state)
{
    (void)state;
    const renyi_preprocess spec = spec_of(RENYI_CROP_CENTER, 0.6, RENYI_BICUBIC);
    for (int channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
        const drawing d = {701, 333, channels, 1, 1, 0, 0};
        compare(&d, &spec);
    }
}

static void test_truncated(void **state)
{
    (void)state;
    const renyi_preprocess spec = spec_of(RENYI_CROP_CENTER, 0.5, RENYI_BICUBIC);
    static uint8_t pixels[VALUES];
    for (int progressive = 0; progressive < 2; progressive++) {
        const drawing d = {301, 217, 3, 2, 2, progressive, 0};
        const blob b = encode(&d);
        for (size_t size = 0; size + 2 < b.size; size += size + 100 < b.size ? 37 : 1) {
            renyi_error err = {0};
            const renyi_status st =
                renyi_image_decode_pixels(pixels, NULL, b.bytes, size, &spec, NULL, &err);
            if (st != RENYI_ERR_FORMAT) fail_msg("%zu of %zu bytes: %d", size, b.size, (int)st);
        }
        free(b.bytes);
    }
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    const drawing d = {301, 217, 3, 2, 2, 0, 0};
    const blob b = encode(&d);
    const renyi_preprocess spec = spec_of(RENYI_CROP_CENTER, 0.5, RENYI_BICUBIC);
    static uint8_t pixels[VALUES];
    test_heap heap = {0};
    const renyi_image_options opt = {.struct_size = sizeof opt, .allocator = test_heap_of(&heap)};
    renyi_status st = RENYI_ERR_NOMEM;
    for (size_t n = 1; st != RENYI_OK; n++) {
        renyi_error err = {0};
        heap.calls = 0;
        heap.fail_at = n;
        st = renyi_image_decode_pixels(pixels, NULL, b.bytes, b.size, &spec, &opt, &err);
        assert_true(st == RENYI_OK ? n > 4 : st == RENYI_ERR_NOMEM);
        assert_int_equal(heap.live, 0);
    }
    free(b.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_channels),
        cmocka_unit_test(test_truncated), cmocka_unit_test(test_memory_runs_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
