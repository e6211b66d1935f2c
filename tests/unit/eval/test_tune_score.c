/* test_tune_score.c - the arithmetic of a tuning: sizes of rungs, estimated losses.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/sweep/tuning.h"

#include <math.h>

#include "test.h"

static void test_rungs(void **state)
{
    (void)state;
    static const struct {
        size_t candidates, images;
        uint32_t n;
        size_t ends[5];
    } known[] = {{100, 250, 3, {27, 83, 250}},
                 {100, 71, 1, {71}},
                 {4, 25000, 1, {25000}},
                 {5, 25000, 2, {8333, 25000}},
                 {100, 25000, 4, {925, 2777, 8333, 25000}}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t ends[RY_TUNE_MAX_RUNGS];
        assert_int_equal(ry_tune_rungs(known[i].candidates, known[i].images, ends), known[i].n);
        assert_memory_equal(ends, known[i].ends, known[i].n * sizeof *ends);
    }
    size_t ends[RY_TUNE_MAX_RUNGS];
    assert_int_equal(ry_tune_rungs(SIZE_MAX, SIZE_MAX / 2, ends), RY_TUNE_MAX_RUNGS);
}

/* With many images the estimate is the measured loss, with its standard deviation. With few, the
 * line of all candidates counts. */
static void test_estimate(void **state)
{
    (void)state;
    const ry_pooled pooled = {0.25, 1.0, 0.5475};
    ry_tally t = {.n = 100000, .other = 20000, .only_dense = 12000, .only_it = 3000};
    double mean, deviation;
    ry_tune_estimate(&t, &pooled, &mean, &deviation);
    assert_true(fabs(mean - 9.0) < 0.01 && fabs(ry_tune_drop(&t) - 9.0) < 1e-12);
    /* the variance of (only_dense - only_it) / n is ((12000 + 3000) / n - 0.09^2) / n */
    assert_true(fabs(deviation - 100 * sqrt((0.15 - 0.0081) / 1e5)) < 0.02 * deviation);
    t = (ry_tally){.n = 27, .other = 5};
    ry_tune_estimate(&t, &pooled, &mean, &deviation);
    assert_true(mean > 7 && mean < 100 * 5.5 / 28 * (0.25 + 5.5 / 28) && deviation > 1);
    t = (ry_tally){.n = 27};
    ry_tune_estimate(&t, &pooled, &mean, &deviation);
    assert_true(mean > 0 && mean < 1 && deviation > 0);
    assert_true(isnan(ry_tune_drop(&(ry_tally){0})));
}

/* Candidates whose changed answers lose 0.1 + 1.5 x (their share): finds that line. */
static void test_pool(void **state)
{
    (void)state;
    ry_candidate candidates[40] = {0};
    uint32_t list[40];
    for (uint32_t i = 0; i < 40; i++) {
        ry_tally *t = &candidates[i].search;
        list[i] = i;
        t->n = 100000;
        t->other = 1000 * (i + 1);
        t->only_dense = (uint64_t)((double)t->other * (0.1 + 1.5 * (double)(i + 1) / 100) + 0.5);
    }
    const ry_pooled p = ry_tune_pool(candidates, list, 40);
    assert_true(fabs(p.at_zero - 0.1) < 1e-3 && fabs(p.slope - 1.5) < 1e-2 && p.variance > 0.2);
    const ry_pooled none = ry_tune_pool(candidates, list, 0);
    assert_true(fabs(none.at_zero - 0.2) < 1e-12 && fabs(none.slope - 1.0) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rungs), cmocka_unit_test(test_estimate), cmocka_unit_test(test_pool)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
