/* test_llama_rows.c - RMSNorm, the gated activation and rotary positions against doubles, at every
 * level.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/kernel_test.h"
#include "kernels/kernels.h"
#include "kernels/rows/rows.h"

#ifndef RENYI_SANITIZED /* it would take a minute to compile */
#define RY_SIMD_EMU16
#include "kernels/rows/rows_template.h"
#endif

enum { ROWS = 3, MAX = 70 };

static void at_every_level(void (*check)(const ry_kernels *k, size_t n))
{
    for (size_t n = 1; n <= MAX; n++) {
#ifdef RY_SIMD_EMU16
        const ry_kernels sixteen = {.layernorm = layernorm, .rmsnorm = rmsnorm, .swiglu = swiglu};
        check(&sixteen, n);
#endif
        for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
            ry_kernels k;
            ry_kernels_init(&k, (renyi_cpu)level);
            check(&k, n);
        }
    }
}

static void check_rmsnorm(const ry_kernels *k, size_t n)
{
    const float eps = 1e-5f;
    guarded x = guard_new(ROWS * (n + 3), 1), y = guard_new((ROWS - 1) * (n + 5) + n, 3);
    float w[MAX];
    fill(x.data, x.n), fill(w, n);
    k->rmsnorm(y.data, n + 5, x.data, n + 3, ROWS, n, w, eps);
    assert_true(guard_intact(&y));
    for (size_t r = 0; r < ROWS; r++) {
        const float *row = x.data + r * (n + 3);
        double square = 0.0;
        for (size_t i = 0; i < n; i++) square += (double)row[i] * (double)row[i];
        for (size_t i = 0; i < n; i++) {
            const double want = (double)row[i] / sqrt(square / (double)n + (double)eps);
            assert_true(fabs((double)y.data[r * (n + 5) + i] - want * (double)w[i]) < 4e-6);
        }
    }
    guard_free(&x), guard_free(&y);
}

static void check_swiglu(const ry_kernels *k, size_t n)
{
    guarded x = guard_new(ROWS * 2 * n, 1), y = guard_new((ROWS - 1) * (n + 5) + n, 3);
    for (size_t i = 0; i < x.n; i++) x.data[i] = 20.0f * unit();
    x.data[0] = -200.0f; /* e^200 is no float */
    k->swiglu(y.data, n + 5, x.data, 2 * n, ROWS, n);
    assert_true(guard_intact(&y));
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < n; i++) {
            const double g = (double)x.data[r * 2 * n + i], u = (double)x.data[r * 2 * n + n + i];
            const double want = g / (1.0 + exp(-g)) * u;
            assert_true(fabs((double)y.data[r * (n + 5) + i] - want) < 1e-6 * fabs(want) + 1e-6);
        }
    guard_free(&x), guard_free(&y);
}

static void test_rmsnorm(void **state)
{
    (void)state;
    at_every_level(check_rmsnorm);
}

static void test_swiglu(void **state)
{
    (void)state;
    at_every_level(check_swiglu);
}

/* As complex numbers: pair i of a head times e^(i * position * theta^(-2i/d)). */
static void test_rope(void **state)
{
    (void)state;
    enum { HEADS = 2, D = 12, POSITION = 37 };
    float x[HEADS * D], y[HEADS * D], angles[D];
    assert_int_equal(ry_rope_floats(D), D);
    fill(x, HEADS * D);
    memcpy(y, x, sizeof y);
    ry_rope_angles(angles, POSITION, D, 500.0);
    ry_rope(y, HEADS, D, angles);
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < D / 2; i++) {
            const double turn = POSITION * pow(500.0, -2.0 * (double)i / D);
            const double a = (double)x[h * D + i], b = (double)x[h * D + D / 2 + i];
            assert_true(fabs((double)y[h * D + i] - (a * cos(turn) - b * sin(turn))) < 1e-5);
            assert_true(fabs((double)y[h * D + D / 2 + i] - (a * sin(turn) + b * cos(turn))) <
                        1e-5);
        }
    ry_rope_angles(angles, 0, D, 500.0);
    memcpy(y, x, sizeof y);
    ry_rope(y, HEADS, D, angles);
    assert_memory_equal(x, y, sizeof x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rmsnorm),
                                       cmocka_unit_test(test_swiglu), cmocka_unit_test(test_rope)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
