/* test_next_token.c - the choice of the next token: greedy, by temperature and top-p, and the
 * random numbers behind it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/llava/next_token.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

#include "test.h"

enum { VOCAB = 257 };

static int32_t next(const float *logits, uint32_t vocab, ry_choice how)
{
    uint32_t order[VOCAB];
    int32_t id = -1;
    renyi_error err = {0};
    if (ry_next_token(&id, logits, vocab, &how, order, &err)) fail_msg("%s", err.message);
    return id;
}

static void test_greedy(void **state)
{
    (void)state;
    const float ties[] = {-1.0f, 2.0f, 2.0f, -INFINITY};
    const float nothing[] = {-INFINITY, -INFINITY};
    assert_int_equal(next(ties, 4, (ry_choice){0}), 1);
    assert_int_equal(next(ties + 3, 1, (ry_choice){0}), 0);
    assert_int_equal(next(nothing, 2, (ry_choice){.temperature = 1.0, .top_p = 1.0}), 0);
}

static void test_no_numbers(void **state)
{
    (void)state;
    const float bad[][3] = {{0.0f, NAN, 1.0f}, {NAN, 0.0f, 0.0f}, {0.0f, 1.0f, INFINITY}};
    for (size_t i = 0; i < 3; i++)
        for (int greedy = 0; greedy < 2; greedy++) {
            const ry_choice how = {greedy ? 0.0 : 1.0, 1.0, 1, 0};
            uint32_t order[3];
            int32_t id;
            renyi_error err = {0};
            assert_int_equal(ry_next_token(&id, bad[i], 3, &how, order, &err), RENYI_ERR_FORMAT);
            assert_non_null(strstr(err.message, i == 2 ? "infinity for token 2" : "NaN"));
        }
}

/* Number k of a seed is the (k + 1)-th that the generator gives; two known values. */
static void test_numbers(void **state)
{
    (void)state;
    ry_rng all = ry_rng_new(0);
    for (uint64_t k = 0; k < 5; k++) {
        ry_rng one = ry_rng_at(0, k);
        const uint64_t number = ry_rng_next(&one);
        assert_true(number == ry_rng_next(&all));
        if (k == 0) assert_true(number == 0xe220a8397b1dcdafu);
        if (k == 1) assert_true(number == 0x6e789e6aa1b965f4u);
    }
}

/* Probabilities 1/2, 1/4, 1/8, 1/8, ids mixed up. */
static void test_shares(void **state)
{
    (void)state;
    const float logits[] = {logf(0.125f), logf(0.5f), logf(0.125f), logf(0.25f)};
    enum { DRAWS = 20000 };
    const double want[][4] = {{0.125, 0.5, 0.125, 0.25},               /* everything */
                              {0.0, 2.0 / 3.0, 0.0, 1.0 / 3.0},        /* 0.5 + 0.25 reach 0.7 */
                              {0.0, 1.0, 0.0, 0.0},                    /* the first alone */
                              {1.0 / 7.0, 4.0 / 7.0, 0.0, 2.0 / 7.0}}; /* of equals the lower id */
    const double top_p[] = {1.0, 0.7, 0.3, 0.8};
    for (size_t c = 0; c < 4; c++) {
        unsigned hits[4] = {0};
        for (uint64_t k = 0; k < DRAWS; k++)
            hits[next(logits, 4, (ry_choice){1.0, top_p[c], 42, k})]++;
        for (size_t i = 0; i < 4; i++) {
            if (want[c][i] == 0.0) assert_int_equal(hits[i], 0);
            assert_true(fabs(hits[i] / (double)DRAWS - want[c][i]) < 0.015);
        }
    }
}

/* The token drawn has the rank that a full sort gives for the random number. */
static void test_ranking(void **state)
{
    (void)state;
    float logits[VOCAB];
    ry_rng rng = ry_rng_new(9);
    for (size_t i = 0; i < VOCAB; i++) logits[i] = (float)(ry_rng_next(&rng) % 40) * 0.1f;
    uint32_t sorted[VOCAB];
    for (uint32_t i = 0; i < VOCAB; i++) { /* by insertion, equal ones stay in order */
        uint32_t at = i;
        for (; at > 0 && logits[sorted[at - 1]] < logits[i]; at--) sorted[at] = sorted[at - 1];
        sorted[at] = i;
    }
    double all = 0.0;
    for (size_t i = 0; i < VOCAB; i++) all += exp((double)logits[i] / 0.7);
    for (uint64_t k = 0; k < 500; k++) {
        ry_rng one = ry_rng_at(3, k);
        const double goal = ry_rng_uniform(&one) * all;
        double sum = 0.0;
        uint32_t at = 0;
        while (at + 1 < VOCAB && (sum += exp((double)logits[sorted[at]] / 0.7)) <= goal) at++;
        assert_int_equal(next(logits, VOCAB, (ry_choice){0.7, 1.0, 3, k}), sorted[at]);
    }
}

/* A temperature near 0 is greedy; a high one makes all tokens equally likely. */
static void test_temperature(void **state)
{
    (void)state;
    const float logits[] = {1.0f, 1.5f, -3.0f};
    unsigned hits[3] = {0};
    for (uint64_t k = 0; k < 3000; k++) {
        assert_int_equal(next(logits, 3, (ry_choice){1e-9, 1.0, 5, k}), 1);
        hits[next(logits, 3, (ry_choice){1e6, 1.0, 5, k})]++;
    }
    for (size_t i = 0; i < 3; i++) assert_in_range(hits[i], 900, 1100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy),  cmocka_unit_test(test_no_numbers),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_shares),
        cmocka_unit_test(test_ranking), cmocka_unit_test(test_temperature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
