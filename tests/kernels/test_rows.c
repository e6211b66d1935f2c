/* test_rows.c - sums over rows of floats and of 16-bit integers against doubles, at every length.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "kernels/rows/rows.h"

#include <math.h>

#include "test.h"

enum { MOST = 100 };

static void test_sums(void **state)
{
    (void)state;
    ry_rng r = ry_rng_new(1);
    for (size_t n = 0; n <= MOST; n++) {
        float x[MOST + 1], y[MOST + 1];
        int16_t q[MOST + 1];
        double dot = 0.0, far = 0.0, whole = 0.0, size = 1e-6;
        for (size_t i = 0; i <= MOST; i++) { /* what lies behind the row would poison it */
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
        assert_true(fabs((double)ry_row_distance(x, y, n) - sqrt(far)) <= 1e-5 * sqrt(far));
        assert_true(fabs((double)ry_row_dot_i16(q, y, n) - whole) < 1.0);
        assert_true(ry_row_distance(x, x, n) == 0.0f);
    }
}

/* Within half a step everywhere, and zeros stay zeros. */
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
