/* test_mask_rank.c - the area under the ranking curve against all pairs, fates of patches through
 * cuts written by hand, means and their intervals.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/masks/mask.h"
#include "eval/run/stats.h"

#include <math.h>
#include <string.h>

#include "test.h"

enum { MOST = 64 };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* 1 = a before b, 0.5 = level; NaN below everything. */
static double wins(float a, float b)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0.5 : isnan(b) ? 1.0 : 0.0;
    return a > b ? 1.0 : a == b ? 0.5 : 0.0;
}

static void test_area(void **state)
{
    uint32_t seed = 1;
    (void)state;
    for (int round = 0; round < 2000; round++) {
        const uint32_t n = 2 + next_random(&seed) % (MOST - 2), kinds = 1 + next_random(&seed) % 40;
        float score[MOST];
        uint8_t sides[MOST];
        uint32_t order[MOST], better;
        uint64_t scratch[2 * MOST];
        double sum = 0.0, pairs = 0.0, all[3] = {0}, kept[3] = {0};
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t k = next_random(&seed) % kinds;
            score[i] = k == 3 ? NAN : k == 4 ? -0.0f : k == 5 ? 0.0f : (float)k - 10.0f;
            sides[i] = (uint8_t)(i < 2 ? i + 1 : next_random(&seed) % 3);
        }
        const uint32_t n_kept = 1 + next_random(&seed) % n;
        for (uint32_t i = 0; i < n; i++) {
            better = 0;
            for (uint32_t j = 0; j < n; j++) {
                const double w = wins(score[j], score[i]);
                better += w == 1.0 || (w == 0.5 && j < i);
                if (sides[i] == RY_OBJECT && sides[j] == RY_BACKGROUND)
                    sum += wins(score[i], score[j]), pairs++;
            }
            all[sides[i]]++;
            kept[sides[i]] += better < n_kept;
        }
        ry_ranked r;
        ry_mask_rank(&r, score, sides, n, n_kept, order, scratch);
        assert_true(r.auc == sum / pairs);
        assert_true(r.kept_object == kept[RY_OBJECT] / all[RY_OBJECT]);
        assert_true(r.kept_background == kept[RY_BACKGROUND] / all[RY_BACKGROUND]);
    }
}

/* One prefix token, six patches. First cut: 0 and 1 stay, 2 joins 1, 3 is dropped, 4 and 5 are
 * fused. Second: 0 is dropped, 1 (with 2) stays, the fused token stays. Third: the fused token
 * joins 1. */
static void test_fates(void **state)
{
    static const int32_t position1[] = {RENYI_PREFIX, 0, 1, 2, 3, 4, 5};
    static const uint32_t source1[] = {0, 1, 2, RENYI_NONE};
    static const uint32_t target1[] = {0, 1, 2, 2, RENYI_NONE, 3, 3};
    static const int32_t position2[] = {RENYI_PREFIX, 0, 1, RENYI_FUSED};
    static const uint32_t source2[] = {0, 2, 3}, target2[] = {0, RENYI_NONE, 1, 2};
    static const int32_t position3[] = {RENYI_PREFIX, 1, RENYI_FUSED};
    static const uint32_t source3[] = {0, 1}, target3[] = {0, 1, 1};
    const renyi_cut cuts[] = {{.n_prefix = 1,
                               .n_in = 7,
                               .n_out = 4,
                               .position = position1,
                               .source = source1,
                               .target = target1},
                              {.n_prefix = 1,
                               .n_in = 4,
                               .n_out = 3,
                               .position = position2,
                               .source = source2,
                               .target = target2},
                              {.n_prefix = 1,
                               .n_in = 3,
                               .n_out = 2,
                               .position = position3,
                               .source = source3,
                               .target = target3}};
    enum { A = RY_FATE_ALONE, M = RY_FATE_MERGED, F = RY_FATE_FUSED, D = RY_FATE_DROPPED };
    static const uint8_t want[][6] = {
        {A, A, A, A, A, A}, {A, M, M, D, F, F}, {D, M, M, D, F, F}, {D, M, M, D, M, M}};
    uint8_t fate[6];
    uint32_t row[6], members[7];
    (void)state;
    ry_fate_begin(fate, row, 6, 1);
    assert_memory_equal(fate, want[0], 6);
    for (int c = 0; c < 3; c++) {
        ry_fate_cut(fate, row, 6, &cuts[c], members);
        assert_memory_equal(fate, want[c + 1], 6);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_area), cmocka_unit_test(test_fates),
                                       cmocka_unit_test(test_student),
                                       cmocka_unit_test(test_moments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
