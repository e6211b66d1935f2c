/* test_image_resize.c - the AVX2 kernels against the plain ones, byte for byte: all tails and
 * windows, input blocks of exactly the right size, guard bytes behind the output.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "base/rng.h"
#include "fixtures/image_test.h"
#include "image/resize.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

static uint32_t below(ry_rng *rng, uint32_t n) { return (uint32_t)(ry_rng_next(rng) % n); }

static ry_axis random_axis(ry_rng *rng, uint32_t in_size)
{
    ry_axis a = {in_size, 1 + below(rng, 90), 0, 0, 0.0, 0.0};
    if (below(rng, 8) == 0) a.out_size = in_size; /* no pass is needed */
    a.from = below(rng, a.out_size);
    a.n = 1 + below(rng, a.out_size - a.from);
    return a;
}

static void resize(uint8_t *out, size_t stride, const ry_pixels *in, const ry_resize_spec *spec,
                   const ry_resize_kernels *kernels)
{
    renyi_error err = {0};
    if (ry_resize(out, stride, in, spec, kernels, NULL, &err)) fail_msg("%s", err.message);
}

static void test_levels_agree(void **state)
{
    (void)state;
    if (renyi_cpu_detect() < RENYI_CPU_AVX2) {
        printf("SKIP: no AVX2 on this machine\n");
        skip();
    }
    ry_rng rng = ry_rng_new(20240611);
    for (int round = 0; round < 3000; round++) {
        const uint32_t w = 1 + below(&rng, round % 3 ? 60 : 700), h = 1 + below(&rng, 60);
        const ry_resize_spec spec = {random_axis(&rng, w), random_axis(&rng, h),
                                     (renyi_interpolation)below(&rng, 3)};
        uint8_t *rgb = draw(w, h);
        const ry_pixels in = {rgb, 3 * (size_t)w, w, h};
        const size_t row = 3 * (size_t)spec.x.n, stride = row + below(&rng, 40);
        const size_t size = stride * (spec.y.n - 1) + row + 16; /* 16 guard bytes */
        uint8_t *a = malloc(size), *b = malloc(size);
        memset(a, 0xa5, size);
        memset(b, 0xa5, size);
        resize(a, stride, &in, &spec, &ry_resize_scalar);
        resize(b, stride, &in, &spec, &ry_resize_vec8);
        if (memcmp(a, b, size))
            fail_msg("round %d: %ux%u to %ux%u, window %u+%u, %u+%u", round, w, h, spec.x.out_size,
                     spec.y.out_size, spec.x.from, spec.x.n, spec.y.from, spec.y.n);
        free(a);
        free(b);
        free(rgb);
    }
}

/* A window of the result is that part of the whole result. */
static void test_window(void **state)
{
    (void)state;
    enum { W = 61, H = 47, TO_W = 40, TO_H = 83 };
    uint8_t *rgb = draw(W, H), whole[TO_W * TO_H * 3], part[TO_W * TO_H * 3];
    const ry_pixels in = {rgb, 3 * W, W, H};
    ry_resize_spec spec = {{W, TO_W, 0, TO_W}, {H, TO_H, 0, TO_H}, RENYI_LANCZOS};
    resize(whole, 3 * TO_W, &in, &spec, ry_resize_best());
    spec.x.from = 11;
    spec.x.n = 17;
    spec.y.from = 30;
    spec.y.n = 9;
    resize(part, 3 * 17, &in, &spec, ry_resize_best());
    for (size_t y = 0; y < 9; y++)
        assert_memory_equal(part + y * 3 * 17, whole + ((30 + y) * TO_W + 11) * 3, 3 * 17);
    free(rgb);
}

/* An image of one color keeps it: the rounded weights of each output sum to one. */
static void test_flat(void **state)
{
    (void)state;
    for (uint32_t out_size = 1; out_size < 200; out_size += 7) {
        uint8_t in_bytes[3 * 90 * 4], out[3 * 200 * 3];
        memset(in_bytes, 200, sizeof in_bytes);
        const ry_pixels in = {in_bytes, 3 * 90, 90, 4};
        const ry_resize_spec spec = {{90, out_size, 0, out_size}, {4, 3, 0, 3}, RENYI_BICUBIC};
        resize(out, 3 * (size_t)out_size, &in, &spec, ry_resize_best());
        for (size_t i = 0; i < 3 * 3 * (size_t)out_size; i++) assert_int_equal(out[i], 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels_agree),
                                       cmocka_unit_test(test_window), cmocka_unit_test(test_flat)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
