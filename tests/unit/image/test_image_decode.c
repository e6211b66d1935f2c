/* test_image_decode.c - the images of fuzz/seeds, whole and damaged, against Pillow's result;
 * formats by their bytes; limits; failing allocations.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "fixtures/image_test.h"
#include "fixtures/test_heap.h"
#include "image/decode.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

#include "image_expected.h"

#define N_IMAGES (sizeof IMAGES / sizeof *IMAGES)

typedef struct blob {
    uint8_t *bytes; /* of exactly `size` bytes: free() */
    size_t size;
} blob;

static blob read_seed(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/fuzz/seeds/%s", RENYI_SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing", path);
    fseek(f, 0, SEEK_END);
    blob b = {NULL, (size_t)ftell(f)};
    rewind(f);
    b.bytes = malloc(b.size);
    if (!b.bytes || fread(b.bytes, 1, b.size, f) != b.size) abort();
    fclose(f);
    return b;
}

static void check_error(const renyi_error *err, renyi_status st, const char *name)
{
    assert_int_equal(err->code, st);
    if (strlen(err->message) < 10) fail_msg("%s: message \"%s\"", name, err->message);
}

static void test_equals_pillow(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_IMAGES; i++) {
        const struct image_expected *want = &IMAGES[i];
        const renyi_image_options opt = {.struct_size = sizeof opt, .apply_exif = want->apply_exif};
        blob file = read_seed(want->file);
        renyi_image image;
        renyi_error err = {0};
        const renyi_status st = renyi_image_decode(&image, file.bytes, file.size, &opt, &err);
        if (st != want->status) fail_msg("%s: %d, %s", want->file, (int)st, err.message);
        assert_int_equal(image.width, want->width);
        assert_int_equal(image.height, want->height);
        if (st != RENYI_OK) {
            check_error(&err, st, want->file);
            assert_null(image.rgb);
        } else if (fnv1a(image.rgb, image.stride * image.height) != want->hash) {
            fail_msg("%s (exif %u): pixels differ from Pillow's", want->file, want->apply_exif);
        }
        renyi_image_free(&image, &opt);
        free(file.bytes);
    }
}

/* Every prefix of every file, in a block of its size: an error or an image, no access beyond it. */
static void test_every_prefix(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_IMAGES; i++) {
        blob file = read_seed(IMAGES[i].file);
        const size_t step = file.size > 300 ? file.size / 150 : 1;
        for (size_t size = 0; size < file.size; size += step) {
            uint8_t *part = malloc(size ? size : 1);
            memcpy(part, file.bytes, size);
            const renyi_image_options opt = {.apply_exif = 1};
            renyi_image image;
            renyi_error err = {0};
            if (renyi_image_decode(&image, part, size, &opt, &err))
                check_error(&err, err.code, IMAGES[i].file);
            renyi_image_free(&image, &opt);
            free(part);
        }
        free(file.bytes);
    }
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_IMAGES; i++) {
        blob file = read_seed(IMAGES[i].file);
        renyi_status st = RENYI_ERR_NOMEM;
        for (size_t n = 1; st == RENYI_ERR_NOMEM; n++) {
            test_heap heap = {.fail_at = n, .fail_on = 1};
            const renyi_image_options opt = {
                sizeof opt, IMAGES[i].apply_exif, {0}, test_heap_of(&heap), RENYI_DECODE_EXACT};
            renyi_image image;
            st = renyi_image_decode(&image, file.bytes, file.size, &opt, NULL);
            assert_true(st == RENYI_ERR_NOMEM || st == IMAGES[i].status);
            renyi_image_free(&image, &opt);
            assert_int_equal(heap.live, 0);
        }
        free(file.bytes);
    }
}

static void expect_refusal(const void *bytes, size_t size, const renyi_image_options *opt,
                           renyi_status status, const char *message)
{
    renyi_image image;
    renyi_error err = {0};
    assert_int_equal(renyi_image_decode(&image, bytes, size, opt, &err), status);
    if (!strstr(err.message, message)) fail_msg("\"%s\" lacks \"%s\"", err.message, message);
    assert_null(image.rgb);
}

static void test_limits(void **state)
{
    (void)state;
    blob huge = read_seed("fuzz_png/bad-huge"), good = read_seed("fuzz_png/type2-8bit");
    renyi_image_options opt = {.struct_size = sizeof opt};
    expect_refusal(huge.bytes, huge.size, NULL, RENYI_ERR_LIMIT, "60000 x 60000");
    expect_refusal(huge.bytes, huge.size, NULL, RENYI_ERR_LIMIT, "max_image_side");
    opt.limits.max_image_side = 100000;
    expect_refusal(huge.bytes, huge.size, &opt, RENYI_ERR_LIMIT, "178956970 are allowed");
    opt.limits = (renyi_limits){.max_image_bytes = 50};
    expect_refusal(good.bytes, good.size, &opt, RENYI_ERR_LIMIT, "max_image_bytes");
    opt.limits = (renyi_limits){.max_pixels = 13 * 9 - 1};
    expect_refusal(good.bytes, good.size, &opt, RENYI_ERR_LIMIT, "13 x 9");
    opt.limits = (renyi_limits){.max_image_side = 12};
    expect_refusal(good.bytes, good.size, &opt, RENYI_ERR_LIMIT, "13 x 9");
    opt.limits = (renyi_limits){.max_pixels = 13 * 9, .max_image_side = 13};
    renyi_image image;
    assert_int_equal(renyi_image_decode(&image, good.bytes, good.size, &opt, NULL), RENYI_OK);
    renyi_image_free(&image, &opt);
    free(huge.bytes);
    free(good.bytes);
}

/* The limit is checked before memory of that size is allocated. */
static void test_limit_comes_first(void **state)
{
    (void)state;
    const char *const files[] = {"fuzz_png/bad-huge", "fuzz_png/bad-lying", "fuzz_jpeg/bad-huge",
                                 "fuzz_ppm/bad-huge"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        blob file = read_seed(files[i]);
        test_heap heap = {0};
        const renyi_image_options opt = {
            sizeof opt, 0, {0}, test_heap_of(&heap), RENYI_DECODE_EXACT};
        renyi_image image;
        assert_true(renyi_image_decode(&image, file.bytes, file.size, &opt, NULL) != RENYI_OK);
        assert_int_equal(heap.calls, 0);
        free(file.bytes);
    }
}

static void test_other_formats(void **state)
{
    (void)state;
    expect_refusal("GIF89a..", 8, NULL, RENYI_ERR_UNSUPPORTED,
                   "GIF is not supported; convert to PNG or JPEG");
    expect_refusal("BM......", 8, NULL, RENYI_ERR_UNSUPPORTED, "BMP");
    expect_refusal("II*\0....", 8, NULL, RENYI_ERR_UNSUPPORTED, "TIFF");
    expect_refusal("MM\0*....", 8, NULL, RENYI_ERR_UNSUPPORTED, "TIFF");
    expect_refusal("\0\0\0\x1c"
                   "ftypavif",
                   12, NULL, RENYI_ERR_UNSUPPORTED, "AVIF");
    expect_refusal("\0\0\0\x1c"
                   "ftypheic",
                   12, NULL, RENYI_ERR_UNSUPPORTED, "HEIC");
    expect_refusal("P3 1 1 255 1 2 3", 16, NULL, RENYI_ERR_UNSUPPORTED, "plain PPM");
    expect_refusal("hello", 5, NULL, RENYI_ERR_FORMAT, "starts with 68 65 6c 6c 6f;");
    expect_refusal("", 0, NULL, RENYI_ERR_FORMAT, "empty");
    expect_refusal(NULL, 0, NULL, RENYI_ERR_FORMAT, "empty");
    expect_refusal(NULL, 1, NULL, RENYI_ERR_ARG, "NULL");
    const renyi_image_options other = {.struct_size = 3};
    expect_refusal("hello", 5, &other, RENYI_ERR_ARG, "3 bytes");
}

static void test_sniff(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_IMAGES; i++) {
        const char *name = IMAGES[i].file + strlen("fuzz_");
        const renyi_image_format want = !strncmp(name, "jpeg", 4)   ? RENYI_IMAGE_JPEG
                                        : !strncmp(name, "png", 3)  ? RENYI_IMAGE_PNG
                                        : !strncmp(name, "webp", 4) ? RENYI_IMAGE_WEBP
                                                                    : RENYI_IMAGE_PPM;
        blob file = read_seed(IMAGES[i].file);
        assert_int_equal(renyi_image_sniff(file.bytes, file.size), want);
        free(file.bytes);
    }
    assert_int_equal(renyi_image_sniff(NULL, 0), RENYI_IMAGE_UNKNOWN);
    assert_int_equal(renyi_image_sniff("P6", 2), RENYI_IMAGE_UNKNOWN);
    assert_int_equal(renyi_image_sniff("P6x", 3), RENYI_IMAGE_UNKNOWN);
    renyi_image_free(NULL, NULL);
}

/* A wrong checksum is found in every chunk that decides about the pixels, also in the last one; in
 * the others it does not matter. */
static void test_png_checksums(void **state)
{
    (void)state;
    size_t counts[2] = {0, 0};
    for (size_t i = 0; i < N_IMAGES; i++) {
        if (strncmp(IMAGES[i].file, "fuzz_png/", 9) != 0 || IMAGES[i].status != RENYI_OK) continue;
        blob b = read_seed(IMAGES[i].file);
        for (size_t at = 8, n; (n = ry_png_chunk(b.bytes, b.size, at)) != SIZE_MAX; at += n + 12) {
            const uint8_t *name = b.bytes + at + 4;
            const int matters = memcmp(name, "IHDR", 4) == 0 || memcmp(name, "PLTE", 4) == 0 ||
                                memcmp(name, "IDAT", 4) == 0;
            renyi_image image;
            b.bytes[at + 8 + n] ^= 1;
            if (matters)
                expect_refusal(b.bytes, b.size, NULL, RENYI_ERR_FORMAT, "checksum");
            else if (renyi_image_decode(&image, b.bytes, b.size, NULL, NULL))
                fail_msg("%s is refused for its chunk %.4s", IMAGES[i].file, (const char *)name);
            else
                renyi_image_free(&image, NULL);
            b.bytes[at + 8 + n] ^= 1;
            counts[matters]++;
        }
        free(b.bytes);
    }
    assert_true(counts[0] > 20 && counts[1] > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_pillow), cmocka_unit_test(test_png_checksums),
        cmocka_unit_test(test_every_prefix),  cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_limit_comes_first),
        cmocka_unit_test(test_other_formats), cmocka_unit_test(test_sniff),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
