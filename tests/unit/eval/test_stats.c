/* test_stats.c - checks intervals, McNemar's test and Student's t against values computed with 50
 * digits, and means with their intervals.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/run/stats.h"
#include "renyi/eval.h"

#include <math.h>

#include "test.h"

static void assert_near(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want))) fail_msg("%.17g, expected %.17g", got, want);
}

static void test_interval(void **state)
{
    (void)state;
    static const struct {
        uint64_t k, n;
        double low, high;
    } known[] = {{371, 500, 0.70190601943942177, 0.77840379977718699},
                 {348, 500, 0.65431332159633615, 0.73469793694273533},
                 {1, 10, 0.017876213095072906, 0.40415002679523848},
                 {9, 10, 0.59584997320476152, 0.98212378690492708},
                 {41000, 50000, 0.81660796653635592, 0.82334286656819133},
                 {3, 4, 0.3006418425824019, 0.95441273919029945},
                 {1, 1000000, 1.765245767453715e-07, 5.664911804311442e-06}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const renyi_interval r = renyi_stats_interval(known[i].k, known[i].n);
        assert_near(r.low, known[i].low, 1e-12);
        assert_near(r.high, known[i].high, 1e-12);
    }
    assert_true(renyi_stats_interval(0, 0).low == 0.0 && renyi_stats_interval(0, 0).high == 1.0);
    assert_true(renyi_stats_interval(0, 7).low == 0.0 && renyi_stats_interval(7, 7).high == 1.0);
    for (uint64_t k = 0; k <= 50; k++) { /* contains the share; symmetric in hits and misses */
        const renyi_interval a = renyi_stats_interval(k, 50), b = renyi_stats_interval(50 - k, 50);
        assert_true(a.low <= (double)k / 50 && a.high >= (double)k / 50);
        assert_true(fabs(a.low + b.high - 1) < 1e-15);
    }
}

static void test_difference(void **state)
{
    (void)state;
    /* (a - b) / (n + 2) +- z sqrt((a + b + 1) - (a - b)^2 / (n + 2)) / (n + 2) */
    const renyi_interval r = renyi_stats_difference(25, 10, 250);
    assert_near(r.low, 0.013440326762200992, 1e-12);
    assert_near(r.high, 0.10560729228541804, 1e-12);
    assert_true(renyi_stats_difference(0, 0, 0).low == -1 &&
                renyi_stats_difference(0, 0, 0).high == 1);
    for (uint64_t a = 0; a <= 20; a++)
        for (uint64_t b = 0; a + b <= 20; b++) { /* contains the difference; symmetric */
            const renyi_interval x = renyi_stats_difference(a, b, 20);
            const renyi_interval y = renyi_stats_difference(b, a, 20);
            const double d = ((double)a - (double)b) / 20;
            assert_true(x.low <= d && d <= x.high && x.low < x.high);
            assert_true(x.low == -y.high && x.high == -y.low);
        }
}

static void test_mcnemar_known(void **state)
{
    (void)state;
    static const struct {
        uint64_t b, c;
        double p;
    } known[] = {{1, 5, 0.21875},
                 {10, 25, 0.016673847800120711},
                 {59, 6, 4.9646503271286169e-12},
                 {121, 59, 4.4344492637551764e-06},
                 {3, 4, 1},
                 {500, 450, 0.11183864514157879},
                 {20000, 19000, 4.2168414473734398e-07},
                 {100, 1000, 2.3274498138259826e-187},
                 {0, 30, 1.862645149230957e-09},
                 {100000, 100500, 0.26510509544158234}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_near(renyi_stats_mcnemar(known[i].b, known[i].c), known[i].p, 1e-12);
        assert_near(renyi_stats_mcnemar(known[i].c, known[i].b), known[i].p, 1e-12);
    }
    assert_true(renyi_stats_mcnemar(0, 0) == 1.0 && renyi_stats_mcnemar(9, 9) == 1.0);
    const double far = renyi_stats_mcnemar(0, UINT64_MAX); /* the largest count */
    assert_true(far >= 0.0 && far < 1e-300);
}

/* Against the plain sum of binomial coefficients in long double. */
static void test_mcnemar_all_small(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 60; n++)
        for (unsigned k = 0; 2 * k < n; k++) {
            long double choose = 1, sum = 0;
            for (unsigned i = 0; i <= k; i++) {
                sum += choose;
                choose = choose * (n - i) / (i + 1);
            }
            const double want = (double)fminl(1, 2 * sum / ldexpl(1, (int)n));
            assert_near(renyi_stats_mcnemar(k, n - k), want, 1e-13);
        }
}

static void test_student(void **state)
{
    static const struct {
        uint64_t df;
        double t;
    } known[] = {{1, 12.7062047},  {2, 4.3026527},    {5, 2.5705818},       {9, 2.2621572},
                 {10, 2.2281389},  {20, 2.0859634},   {30, 2.0422725},      {100, 1.9839715},
                 {294, 1.9680561}, {1000, 1.9623391}, {1u << 30, 1.9599640}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(fabs(ry_student_975(known[i].df) - known[i].t) < 2e-4);
}

static void test_moments(void **state)
{
    ry_moments m = {0};
    (void)state;
    assert_true(isnan(ry_moments_estimate(&m).mean) && isnan(ry_moments_estimate(&m).range.low));
    ry_moments_add(&m, 1e9 + 1);
    assert_true(ry_moments_estimate(&m).mean == 1e9 + 1);
    assert_true(isinf(ry_moments_estimate(&m).range.high));
    ry_moments_add(&m, 1e9 + 2);
    ry_moments_add(&m, 1e9 + 3);
    ry_moments_add(&m, 1e9 + 6); /* mean 3, squares 14, so s = sqrt(14 / 3) */
    const renyi_estimate e = ry_moments_estimate(&m);
    assert_true(e.mean == 1e9 + 3);
    assert_true(fabs(e.range.high - e.mean - 3.182446 * sqrt(14.0 / 3 / 4)) < 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interval),      cmocka_unit_test(test_difference),
        cmocka_unit_test(test_mcnemar_known), cmocka_unit_test(test_mcnemar_all_small),
        cmocka_unit_test(test_student),       cmocka_unit_test(test_moments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
