/* test_layernorm.c - LayerNorm at every level against double arithmetic, every tail and alignment.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/kernel_test.h"
#include "kernels/kernels.h"

static void check_row(const float *y, const float *x, size_t n, const float *w, const float *b,
                      double eps)
{
    double mean = 0.0, var = 0.0;
    for (size_t i = 0; i < n; i++) mean += (double)x[i] / (double)n;
    for (size_t i = 0; i < n; i++) var += pow((double)x[i] - mean, 2.0) / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double z = ((double)x[i] - mean) / sqrt(var + eps);
        const double want = z * (double)w[i] + (double)b[i];
        assert_true(fabs((double)y[i] - want) <= 4e-6 * (1.0 + fabs(z)) + 1e-6);
    }
}

static void run_level(renyi_cpu level)
{
    ry_kernels k;
    ry_kernels_init(&k, level);
    for (size_t n = 1; n <= 200; n += n < 40 ? 1 : 7)
        for (size_t shift = 0; shift < 16; shift += 5) {
            const size_t rows = 3, x_row = n + 2, y_row = n + 1;
            guarded x = guard_new(rows * x_row, shift),
                    y = guard_new((rows - 1) * y_row + n, shift);
            guarded w = guard_new(n, shift), b = guard_new(n, shift);
            fill(w.data, n);
            fill(b.data, n);
            for (size_t r = 0; r < rows; r++)
                for (size_t i = 0; i < n; i++) x.data[r * x_row + i] = unit() + 10.0f * (float)r;
            k.layernorm(y.data, y_row, x.data, x_row, rows, n, w.data, b.data, 1e-6f);
            for (size_t r = 0; r < rows; r++)
                if (n > 1)
                    check_row(y.data + r * y_row, x.data + r * x_row, n, w.data, b.data, 1e-6);
            for (size_t r = 0; r + 1 < rows; r++) assert_true(isnan(y.data[r * y_row + n]));
            assert_true(guard_intact(&y));
            guard_free(&x), guard_free(&y), guard_free(&w), guard_free(&b);
        }
}

static void test_scalar(void **state)
{
    (void)state;
    run_level(RENYI_CPU_SCALAR);
}

static void test_levels(void **state)
{
    (void)state;
    for_levels(run_level);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scalar),
                                       cmocka_unit_test(test_levels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
