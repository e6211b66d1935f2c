/* test_prune_select.c - tests that ranking and choosing are exact: ties to the lower index, NaN
 * last.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "prune/rules/select.h"

#include <math.h>
#include <string.h>

#include "test.h"

enum { MOST = 700 };

static uint32_t order[MOST];
static uint64_t scratch[2 * MOST];

/* Whether a ranks before b, by the definition. */
static int before(const float *s, uint32_t a, uint32_t b)
{
    if (isnan(s[a]) != isnan(s[b])) return !isnan(s[a]);
    if (!isnan(s[a]) && s[a] != s[b]) return s[a] > s[b];
    return a < b;
}

static void check_order(const float *score, uint32_t n)
{
    uint8_t seen[MOST] = {0};
    ry_rank(order, score, n, scratch);
    for (uint32_t i = 0; i < n; i++) {
        assert_in_range(order[i], 0, n - 1);
        assert_false(seen[order[i]]++);
        if (i) assert_true(before(score, order[i - 1], order[i]));
    }
}

static void known_orders(void **state)
{
    (void)state;
    const float odd[] = {NAN, -INFINITY, 0.0f, 1.0f, -0.0f, INFINITY, -1.0f, 1.0f, -NAN, 1e-45f};
    const uint32_t want[] = {5, 3, 7, 9, 2, 4, 6, 1, 0, 8};
    ry_rank(order, odd, 10, scratch);
    assert_memory_equal(order, want, sizeof want);
    ry_rank(order, odd, 0, scratch); /* nothing to do, nothing touched */
    assert_int_equal(order[0], 5);
    ry_rank(order, odd, 1, scratch);
    assert_int_equal(order[0], 0);
}

static void random_orders(void **state)
{
    (void)state;
    ry_rng r = ry_rng_new(1);
    float score[MOST];
    for (uint32_t n = 1; n <= MOST; n += 1 + n / 5)
        for (int few = 0; few < 3; few++) { /* all different, many ties, any bits */
            for (uint32_t i = 0; i < n; i++) {
                const uint32_t bits = (uint32_t)ry_rng_next(&r);
                score[i] = few == 1 ? (float)(bits % 5) - 2.0f : (float)ry_rng_normal(&r);
                if (few == 2) memcpy(&score[i], &bits, sizeof bits);
            }
            check_order(score, n);
        }
}

static void two_rankings(void **state)
{
    (void)state;
    const uint32_t first[] = {4, 2, 0, 1, 3}, second[] = {2, 3, 4, 0, 1};
    uint32_t kept[5];
    uint8_t taken[5];
    ry_select_correct(kept, taken, first, 2, second, 2, 5);
    assert_memory_equal(kept, ((uint32_t[]){4, 2, 3, 0}), 16);
    assert_memory_equal(taken, ((uint8_t[]){1, 0, 1, 1, 1}), 5);
    ry_select_ascending(kept, taken, 5);
    assert_memory_equal(kept, ((uint32_t[]){0, 2, 3, 4}), 16);
    ry_select_correct(kept, taken, NULL, 0, second, 3, 5);
    assert_memory_equal(kept, ((uint32_t[]){2, 3, 4}), 12);
    ry_select_correct(kept, taken, first, 5, second, 0, 5);
    assert_memory_equal(kept, first, 20);
    ry_select_correct(kept, taken, first, 1, second, 4, 5); /* all: the rest by the second */
    assert_memory_equal(kept, ((uint32_t[]){4, 2, 3, 0, 1}), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_orders),
        cmocka_unit_test(random_orders),
        cmocka_unit_test(two_rankings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
