/* test_rows.c - kernels on rows against double: LayerNorm, RMSNorm and SwiGLU at every level, with
 * all tail sizes and alignments; rotary positions; sums over rows of floats and 16-bit integers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/kernel_test.h"
#include "kernels/rows/rows.h"

#ifndef RENYI_SANITIZED /* it would take a minute to compile */
#define RY_SIMD_EMU16
#include "kernels/rows/rows_template.h"
static const ry_kernels sixteen_lanes = {
    .layernorm = layernorm, .rmsnorm = rmsnorm, .swiglu = swiglu};
static const ry_kernels *const sixteen = &sixteen_lanes;
#else
static const ry_kernels *const sixteen = NULL;
#endif

/* ---- LayerNorm ------------------------------------------------------------------------------- */

static void check_layernorm_row(const float *y, const float *x, size_t n, const float *w,
                                const float *b, double eps)
{
    double mean = 0.0, var = 0.0;
    for (size_t i = 0; i < n; i++) mean += (double)x[i] / (double)n;
    for (size_t i = 0; i < n; i++) var += pow((double)x[i] - mean, 2.0) / (double)n;
    /* the rounding error of the mean, relative to the standard deviation */
    const double of_mean = 0x1p-23 * fabs(mean) / sqrt(var + eps);
    for (size_t i = 0; i < n; i++) {
        const double z = ((double)x[i] - mean) / sqrt(var + eps);
        const double want = z * (double)w[i] + (double)b[i];
        assert_true(fabs((double)y[i] - want) <= 4e-6 * (1.0 + fabs(z)) + 1e-6 + of_mean);
    }
}

static void check_layernorm(const ry_kernels *k)
{
    for (size_t n = 1; n <= 200; n += n < 40 ? 1 : 7)
        for (size_t shift = 0; shift < 16; shift += 5) {
            const size_t rows = 3, x_row = n + 2, y_row = n + 1;
            guarded x = guard_new(rows * x_row, shift),
                    y = guard_new((rows - 1) * y_row + n, shift);
            guarded w = guard_new(n, shift), b = guard_new(n, shift);
            fill_random(w.data, n);
            fill_random(b.data, n);
            for (size_t r = 0; r < rows; r++)
                for (size_t i = 0; i < n; i++) x.data[r * x_row + i] = unit() + 10.0f * (float)r;
            k->layernorm(y.data, y_row, x.data, x_row, rows, n, w.data, b.data, 1e-6f);
            for (size_t r = 0; r < rows; r++)
                if (n > 1)
                    check_layernorm_row(y.data + r * y_row, x.data + r * x_row, n, w.data, b.data,
                                        1e-6);
            for (size_t r = 0; r + 1 < rows; r++) assert_true(isnan(y.data[r * y_row + n]));
            assert_true(guard_intact(&y));
            guard_free(&x), guard_free(&y), guard_free(&w), guard_free(&b);
        }
}

static void test_layernorm(void **state)
{
    (void)state;
    at_every_level(check_layernorm, sixteen);
}

/* ---- RMSNorm and SwiGLU ---------------------------------------------------------------------- */

enum { ROWS = 3, MAX = 70 };

static void check_rmsnorm_of(const ry_kernels *k, size_t n)
{
    const float eps = 1e-5f;
    guarded x = guard_new(ROWS * (n + 3), 1), y = guard_new((ROWS - 1) * (n + 5) + n, 3);
    float w[MAX];
    fill_random(x.data, x.n), fill_random(w, n);
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

static void check_rmsnorm(const ry_kernels *k)
{
    for (size_t n = 1; n <= MAX; n++) check_rmsnorm_of(k, n);
}

static void check_swiglu_of(const ry_kernels *k, size_t n)
{
    guarded x = guard_new(ROWS * 2 * n, 1), y = guard_new((ROWS - 1) * (n + 5) + n, 3);
    for (size_t i = 0; i < x.n; i++) x.data[i] = 20.0f * unit();
    x.data[0] = -200.0f; /* e^200 is too large for a float */
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

static void check_swiglu(const ry_kernels *k)
{
    for (size_t n = 1; n <= MAX; n++) check_swiglu_of(k, n);
}

static void test_rmsnorm(void **state)
{
    (void)state;
    at_every_level(check_rmsnorm, sixteen);
}

static void test_swiglu(void **state)
{
    (void)state;
    at_every_level(check_swiglu, sixteen);
}

/* ---- rotary positions ------------------------------------------------------------------------ */

/* As complex numbers: pair i of a head times e^(i * position * theta^(-2i/d)). */
static void test_rope(void **state)
{
    (void)state;
    enum { HEADS = 2, D = 12, POSITION = 37 };
    float x[HEADS * D], y[HEADS * D], angles[D];
    assert_int_equal(ry_rope_floats(D), D);
    fill_random(x, HEADS * D);
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

/* ---- sums over rows -------------------------------------------------------------------------- */

enum { MOST = 100 };

static void test_sums(void **state)
{
    (void)state;
    ry_rng r = ry_rng_new(1);
    for (size_t n = 0; n <= MOST; n++) {
        float x[MOST + 1], y[MOST + 1];
        int16_t q[MOST + 1];
        double dot = 0.0, far = 0.0, whole = 0.0, size = 1e-6;
        for (size_t i = 0; i <= MOST; i++) { /* reading after the row would give NaN */
            x[i] = i < n ? (float)ry_rng_normal(&r) : NAN;
            y[i] = i < n ? (float)ry_rng_normal(&r) : NAN;
            q[i] = i < n ? (int16_t)(ry_rng_next(&r) >> 48) : 1;
        }
        for (size_t i = 0; i < n; i++) {
            dot += (double)x[i] * (double)y[i];
            far += pow((double)x[i] - (double)y[i], 2.0);
            whole += (double)q[i] * (double)y[i];
            size += fabs((double)x[i] * (double)y[i]);
        }
        assert_true(fabs((double)ry_row_dot(x, y, n) - dot) < 1e-5 * size);
        assert_true(fabs(ry_row_dot_double(x, y, n) - dot) <= 1e-13 * size);
        assert_true(fabs((double)ry_row_distance(x, y, n) - sqrt(far)) <= 1e-5 * sqrt(far));
        assert_true(fabs((double)ry_row_dot_i16(q, y, n) - whole) < 1.0);
        assert_true(ry_row_distance(x, x, n) == 0.0f);
    }
}

/* The error is at most half a step, and zeros stay zeros. */
static void test_steps(void **state)
{
    (void)state;
    ry_rng r = ry_rng_new(2);
    for (size_t n = 0; n <= MOST; n++) {
        float x[MOST];
        int16_t q[MOST];
        const double scale = pow(10.0, (double)(n % 9) - 4.0);
        for (size_t i = 0; i < n; i++) x[i] = (float)(scale * ry_rng_normal(&r));
        const float step = ry_row_to_i16(q, x, n);
        for (size_t i = 0; i < n; i++)
            assert_true(fabs((double)q[i] * (double)step - (double)x[i]) < 0.501 * (double)step);
        for (size_t i = 0; i < n; i++) x[i] = 0.0f;
        assert_true(ry_row_to_i16(q, x, n) == 0.0f);
        for (size_t i = 0; i < n; i++) assert_int_equal(q[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layernorm), cmocka_unit_test(test_rmsnorm),
        cmocka_unit_test(test_swiglu),    cmocka_unit_test(test_rope),
        cmocka_unit_test(test_sums),      cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
