/* test_image_exif.c - valid and invalid orientation tags, and the eight turns.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "base/alloc.h"
#include "image/decode.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

/* A JPEG up to its Exif segment: SOI, APP1 with one directory of one entry. */
static const uint8_t BIG[] = "\xff\xd8\xff\xe1\0\x22"
                             "Exif\0\0"
                             "MM\0*\0\0\0\x08"
                             "\0\1"
                             "\x01\x12\0\3\0\0\0\1\0\6\0\0"
                             "\0\0\0\0";
static const uint8_t LITTLE[] = "\xff\xd8\xff\xe1\0\x22"
                                "Exif\0\0"
                                "II*\0\x08\0\0\0"
                                "\1\0"
                                "\x12\x01\3\0\1\0\0\0\x08\0\0\0"
                                "\0\0\0\0";
enum { SIZE = sizeof BIG - 1 };

static uint32_t read_tag(const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees accesses beyond it */
    memcpy(exact, bytes, size);
    const uint32_t value = ry_exif_orientation(exact, size, RENYI_IMAGE_JPEG);
    free(exact);
    return value;
}

static void test_tag(void **state)
{
    (void)state;
    assert_int_equal(read_tag(BIG, SIZE), 6);
    assert_int_equal(read_tag(LITTLE, SIZE), 8);
    for (size_t n = 0; n < SIZE; n++) assert_int_equal(read_tag(BIG, n), 1); /* cut short */
}

static void with_byte(size_t at, uint8_t value, uint32_t want)
{
    uint8_t bytes[SIZE];
    memcpy(bytes, BIG, SIZE);
    bytes[at] = value;
    assert_int_equal(read_tag(bytes, SIZE), want);
}

static void test_invalid(void **state)
{
    (void)state;
    with_byte(31, 0, 1);    /* orientation 0 */
    with_byte(31, 9, 1);    /* 9 */
    with_byte(30, 1, 1);    /* 262 */
    with_byte(25, 4, 1);    /* a long where a short belongs */
    with_byte(15, 43, 1);   /* not 42 */
    with_byte(16, 0xff, 1); /* directory far outside */
    with_byte(19, 30, 1);   /* directory at the very end */
    with_byte(20, 0xff, 6); /* a wrong number of entries; the tag is the first */
    with_byte(22, 9, 1);    /* another tag, and no more entries */
    with_byte(5, 1, 1);     /* segment shorter than its own length field */
}

/* 2 x 3 image, pixel value = 10 * row + column. */
static void check_turn(uint32_t orientation, uint32_t width, const uint8_t *want)
{
    uint8_t *rgb = ry_alloc(NULL, 6, 3);
    for (size_t i = 0; i < 6; i++) memset(rgb + 3 * i, (int)(10 * (i / 2) + i % 2), 3);
    renyi_image image = {rgb, 2, 3, 6};
    assert_int_equal(ry_image_turn(&image, orientation, NULL, NULL), RENYI_OK);
    assert_int_equal(image.width, width);
    assert_int_equal(image.height, 6 / width);
    assert_int_equal(image.stride, 3 * width);
    for (size_t i = 0; i < 6; i++) assert_int_equal(image.rgb[3 * i + 1], want[i]);
    ry_free(NULL, (void *)(uintptr_t)image.rgb);
}

static void test_turns(void **state)
{
    (void)state;
    check_turn(1, 2, (const uint8_t[]){0, 1, 10, 11, 20, 21});
    check_turn(2, 2, (const uint8_t[]){1, 0, 11, 10, 21, 20});
    check_turn(3, 2, (const uint8_t[]){21, 20, 11, 10, 1, 0});
    check_turn(4, 2, (const uint8_t[]){20, 21, 10, 11, 0, 1});
    check_turn(5, 3, (const uint8_t[]){0, 10, 20, 1, 11, 21});
    check_turn(6, 3, (const uint8_t[]){20, 10, 0, 21, 11, 1});
    check_turn(7, 3, (const uint8_t[]){21, 11, 1, 20, 10, 0});
    check_turn(8, 3, (const uint8_t[]){1, 11, 21, 0, 10, 20});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tag), cmocka_unit_test(test_invalid),
                                       cmocka_unit_test(test_turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
