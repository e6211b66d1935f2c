/* test_augment_ops.c - every pixel operation of the training transforms against Pillow's, byte for
 * byte, and the strength of RandAugment's operations against timm's.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "fixtures/image_test.h"
#include "train/data/augment_steps.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

#include "augment_expected.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void test_operations(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(OPS); i++) {
        const struct op_case *k = &OPS[i];
        const size_t bytes = 3 * (size_t)k->width * k->height;
        uint8_t *rgb = draw(k->width, k->height), *other = malloc(bytes);
        for (size_t j = 0; k->is_dim && j < bytes; j++) rgb[j] = (uint8_t)(rgb[j] / 3 + 40);
        ry_canvas canvas = {rgb, other, {k->width, k->height}, k->filter, {0}};
        memcpy(canvas.fill, FILL, 3);
        ry_rand_apply(&canvas, k->op, k->argument);
        if (fnv1a(canvas.rgb, bytes) != k->hash)
            fail_msg("case %zu: operation %d, %u x %u, argument %g, filter %d", i, (int)k->op,
                     k->width, k->height, k->argument, (int)k->filter);
        free(rgb);
        free(other);
    }
}

/* The implementation that test_operations does not run on this machine. */
static void test_affine_levels_agree(void **state)
{
    (void)state;
    if (renyi_cpu_detect() < RENYI_CPU_AVX2) {
        printf("SKIP: no AVX2 on this machine\n");
        skip();
    }
    const uint32_t sides[][2] = {{1, 1}, {3, 2}, {5, 9}, {61, 47}};
    for (int i = 0; i < 200; i++) {
        const ry_op_size size = {sides[i % 4][0], sides[i % 4][1]};
        const size_t bytes = 3 * (size_t)size.width * size.height;
        uint8_t *rgb = draw(size.width, size.height), *a = malloc(bytes), *b = malloc(bytes);
        ry_op_affine_spec spec = {.filter = i % 3 ? RENYI_BICUBIC : RENYI_BILINEAR,
                                  .fill = {1, 2, 3}};
        ry_op_rotation(spec.m, size, 1.7 * i);
        if (i % 5 == 0) spec.m[2] = 0.3 * i - 30.0;
        ry_op_affine_plain(a, rgb, size, &spec);
        ry_op_affine_vec8(b, rgb, size, &spec);
        assert_memory_equal(a, b, bytes);
        free(rgb);
        free(a);
        free(b);
    }
}

static void test_crops(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(CROPS); i++) {
        const struct crop_case *k = &CROPS[i];
        const size_t bytes = 3 * (size_t)k->size * k->size;
        uint8_t *rgb = draw(k->width, k->height), *out = malloc(bytes);
        const renyi_image image = {rgb, k->width, k->height, 0};
        renyi_error err;
        if (ry_crop_take(out, k->size, &image, &k->crop, k->filter, &err))
            fail_msg("%s", err.message);
        if (k->flip) ry_flip(out, k->size);
        if (fnv1a(out, bytes) != k->hash) fail_msg("case %zu", i);
        free(rgb);
        free(out);
    }
}

static void test_blurs(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(BLURS); i++) {
        const struct blur_case *k = &BLURS[i];
        const size_t n = (size_t)k->width * k->height;
        uint8_t *rgb = draw(k->width, k->height), *scratch = malloc(3 * n);
        if (k->radius < 0)
            ry_op_grey(rgb, n);
        else
            ry_op_blur(rgb, scratch, (ry_op_size){k->width, k->height}, k->radius);
        if (fnv1a(rgb, 3 * n) != k->hash)
            fail_msg("case %zu: %u x %u, radius %g", i, k->width, k->height, k->radius);
        free(rgb);
        free(scratch);
    }
}

static void test_arguments(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ARGUMENTS); i++) {
        const struct argument_case *k = &ARGUMENTS[i];
        const double argument = ry_rand_argument(k->op, k->magnitude, k->negate);
        /* timm keeps 0 bits here, which newer Pillows reject. */
        const double wanted = k->op == RY_RAND_POSTERIZE && k->argument == 0 ? 1 : k->argument;
        if (argument != wanted)
            fail_msg("operation %d at %g: %.17g, timm has %.17g", (int)k->op, k->magnitude,
                     argument, wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations), cmocka_unit_test(test_affine_levels_agree),
        cmocka_unit_test(test_crops),      cmocka_unit_test(test_blurs),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
