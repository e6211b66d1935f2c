/* test_prune_ats.c - tests Adaptive Token Sampling on blocks of known attention: against doubles,
 * at its limits, and with scores that are zero or NaN.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/prune_fixture.h"

static plain_block block;
static decision got;

static ry_policy ats(ry_budget budget, double keep, uint32_t tokens)
{
    ry_policy p = plain_policy(RY_RULE_ATS, RY_METRIC_CLS, tokens);
    p.budget = budget;
    p.cuts[0].keep = keep;
    return p;
}

/* Raises the class row to a power and renormalizes: the larger the power, the more uneven. */
static void sharpen(double power)
{
    for (uint32_t h = 0; h < block.heads; h++) {
        double sum = 0.0;
        for (uint32_t j = 0; j < block.n; j++)
            sum += block.a[h][0][j] = pow(block.a[h][0][j], power);
        for (uint32_t j = 0; j < block.n; j++) block.a[h][0][j] /= sum;
    }
}

/* Score: head mean of the class row times the length of the values of all heads, summing to 1. */
static void check_scores(void)
{
    const uint32_t C = block.heads * block.head;
    double want[MAX_TOKENS], sum = 0.0;
    for (uint32_t j = block.prefix; j < block.n; j++) {
        double length = 0.0, attention = 0.0;
        for (uint32_t i = 0; i < C; i++) length += pow((double)block.qkv[j][2 * C + i], 2.0);
        for (uint32_t h = 0; h < block.heads; h++) attention += block.a[h][0][j] / block.heads;
        sum += want[j] = attention * sqrt(length);
    }
    for (uint32_t j = block.prefix; j < block.n; j++)
        assert_true(fabs((double)got.score[j] * sum / want[j] - 1.0) < 1e-5);
}

/* Patch j comes before patch k in ascending order; of equal scores the lower index is better. */
static int below(uint32_t j, uint32_t k)
{
    return got.score[j] != got.score[k] ? got.score[j] < got.score[k] : j > k;
}

/* The rule by its definition: for every level of the CDF the nearest patch. */
static uint32_t sample_plainly(uint8_t *taken, uint32_t steps)
{
    double cdf[MAX_TOKENS], least = INFINITY, most = 0.0, first = INFINITY;
    memset(taken, 0, MAX_TOKENS);
    for (uint32_t j = block.prefix; j < block.n; j++) {
        cdf[j] = (double)got.score[j];
        for (uint32_t k = block.prefix; k < block.n; k++)
            if (below(k, j)) cdf[j] += (double)got.score[k];
        least = fmin(least, cdf[j]), most = fmax(most, cdf[j]);
    }
    for (uint32_t j = block.prefix; j < block.n; j++) {
        cdf[j] = (cdf[j] - least) / (most - least);
        if (cdf[j] > 1e-14) first = fmin(first, cdf[j]);
    }
    uint32_t kept = 0;
    for (uint32_t k = 0; k < steps; k++) {
        const double level = steps > 1 ? first + k * (1.0 - first) / (steps - 1) : 1.0;
        uint32_t nearest = block.prefix;
        for (uint32_t j = block.prefix; j < block.n; j++) /* tolerance: sums in another order */
            if (fabs(cdf[j] - level) < fabs(cdf[nearest] - level) - 1e-13) nearest = j;
        kept += !taken[nearest];
        taken[nearest] = 1;
    }
    return kept;
}

static void against_doubles(void **state)
{
    (void)state;
    uint8_t taken[MAX_TOKENS];
    for (uint32_t v = 0; v < 60; v++) {
        const uint32_t n = 12 + v * 3, prefix = 1 + v % 2, budget = prefix + 1 + (v * 7) % (n - 5);
        const ry_policy p = ats(RY_BUDGET_COUNT, 0.0, budget - prefix);
        block_random(&block, n, prefix, 1 + v % 4, 4 + v % 9, v);
        sharpen(0.3 + v % 5);
        decide_with(&p, &block, &got);
        assert_true(got.needs.adaptive && got.needs.drops);
        assert_int_equal(got.needs.what, RY_NEED_CLASS_ROW);
        assert_int_equal(got.needs.n_after, budget);
        check_scores();
        assert_int_equal(got.cut.n_out, prefix + sample_plainly(taken, budget - prefix));
        assert_true(got.cut.n_out <= budget);
        for (uint32_t j = prefix; j < n; j++)
            assert_int_equal(taken[j], got.target[j] != RY_NO_TOKEN);
        for (uint32_t r = 1; r < got.cut.n_out; r++) /* in raster order */
            assert_true(got.source[r] > got.source[r - 1]);
    }
}

/* Keeps the best `most` of the taken by definition: one is better if fewer taken ones are above it.
 */
static void limit_plainly(uint8_t *taken, uint32_t most)
{
    uint8_t all[MAX_TOKENS];
    memcpy(all, taken, sizeof all);
    for (uint32_t j = block.prefix; j < block.n; j++) {
        uint32_t above = 0;
        for (uint32_t k = block.prefix; k < block.n; k++) above += all[k] && below(j, k);
        if (above >= most) taken[j] = 0;
    }
}

/* levels=N: as many levels as it says however many tokens enter; the budget only limits. */
static void levels_against_doubles(void **state)
{
    (void)state;
    uint8_t taken[MAX_TOKENS];
    uint32_t n_limited = 0, n_free = 0, n_other = 0;
    for (uint32_t v = 0; v < 60; v++) {
        const uint32_t n = 12 + v * 3, prefix = 1 + v % 2, levels = v % 3 ? 196 : 1 + v;
        const double keep = v % 4 ? 1.0 : 0.3 + 0.01 * v;
        ry_policy p = ats(RY_BUDGET_KEEP, keep, 0);
        p.levels = levels;
        block_random(&block, n, prefix, 1 + v % 4, 4 + v % 9, v);
        sharpen(0.3 + v % 5);
        decide_with(&p, &block, &got);
        check_scores();
        const double rate = fmax(8, nearbyint(keep * n)), bound = fmin(levels + prefix, n - 1);
        assert_int_equal(got.needs.n_after, (uint32_t)fmin(rate, bound));
        const uint32_t most = got.needs.n_after - prefix, hit = sample_plainly(taken, levels);
        limit_plainly(taken, most);
        assert_int_equal(got.cut.n_out, prefix + (hit < most ? hit : most));
        for (uint32_t j = prefix; j < n; j++)
            assert_int_equal(taken[j], got.target[j] != RY_NO_TOKEN);
        hit > most ? n_limited++ : n_free++;

        if (!(keep < 1)) continue; /* levels=budget would keep every token */
        const ry_policy ours = ats(RY_BUDGET_KEEP, keep, 0);
        const uint32_t published = got.cut.n_out;
        decide_with(&ours, &block, &got);
        n_other += got.cut.n_out != published;
    }
    assert_true(n_limited > 3 && n_free > 30 && n_other > 5);
}

/* The more the score is concentrated in few patches, the fewer stay. */
static void adapts(void **state)
{
    (void)state;
    uint32_t before = UINT32_MAX;
    const ry_policy p = ats(RY_BUDGET_KEEP, 0.5, 0);
    for (int power = 0; power <= 8; power += 2) {
        block_random(&block, 197, 1, 3, 8, 5);
        sharpen(power);
        decide_with(&p, &block, &got);
        assert_int_equal(got.needs.n_after, 98); /* round(98.5) to even */
        assert_in_range(got.cut.n_out, 2, before - (power > 2));
        before = got.cut.n_out;
    }
    assert_true(before < 40);
}

/* Fewer tokens enter than the plan allows: the budget follows their number and stays within the
 * plan's. */
static void fewer_enter(void **state)
{
    (void)state;
    const ry_policy by_rate = ats(RY_BUDGET_KEEP, 0.5, 0), by_count = ats(RY_BUDGET_COUNT, 0.0, 30);
    static plain_block fewer;
    block_random(&block, 100, 1, 2, 6, 7);
    for (int count = 0; count < 2; count++) {
        ry_pruner *pruner = pruner_for(count ? &by_count : &by_rate, &block, 1);
        const ry_token_hook hook = ry_pruner_hook(pruner);
        hook.needs(hook.self, 0, 100, &got.needs);
        block_show(&block, &got.needs);
        fewer = block;
        for (uint32_t n = 2; n <= 100; n += 7) {
            fewer.n = n;
            const ry_block_view view = block_view(&fewer, 0, 0);
            run_phases(&hook, &view, &got);
            check_decision(&fewer, &got);
            const uint32_t half = (uint32_t)nearbyint(0.5 * n);
            const uint32_t budget = count ? 31 : half < 8 ? 8 : half;
            if (n <= budget) /* nothing to choose */
                assert_int_equal(got.cut.n_out, n);
            else
                assert_in_range(got.cut.n_out, 2, budget);
        }
        ry_pruner_free(pruner, NULL);
    }
}

/* One patch has the whole score; no patch has any; some scores are NaN or infinite. */
static void extremes(void **state)
{
    (void)state;
    const ry_policy p = ats(RY_BUDGET_COUNT, 0.0, 4), one = ats(RY_BUDGET_COUNT, 0.0, 1);
    ry_policy published = ats(RY_BUDGET_KEEP, 1.0, 0);
    published.levels = 196;
    block_random(&block, 12, 1, 1, 4, 3);
    for (uint32_t j = 0; j < 12; j++) block.a[0][0][j] = j == 7;
    decide_with(&published, &block, &got);
    assert_int_equal(got.cut.n_out, 2);
    assert_int_equal(got.source[1], 7);
    decide_with(&p, &block, &got);
    assert_int_equal(got.cut.n_out, 2);
    assert_int_equal(got.source[1], 7);
    block.a[0][0][7] = 0.6, block.a[0][0][3] = 0.4;
    for (uint32_t i = 8; i < 12; i++) block.qkv[3][i] = block.qkv[7][i] = 1.0f;
    decide_with(&one, &block, &got); /* a single level: the best */
    assert_int_equal(got.cut.n_out, 2);
    assert_int_equal(got.source[1], 7);

    for (int kind = 0; kind < 3; kind++) {
        const double bad[] = {0.0, NAN, INFINITY};
        for (uint32_t j = 0; j < 12; j++) block.a[0][0][j] = bad[kind];
        decide_with(&p, &block, &got);
        assert_int_equal(got.cut.n_out, 5);
        assert_memory_equal(got.source, ((uint32_t[]){0, 1, 2, 3, 4}), 20);
        decide_with(&published, &block, &got); /* more levels than patches */
        assert_int_equal(got.cut.n_out, 11);
        block.a[0][0][9] = 0.5;
        decide_with(&p, &block, &got);
        assert_int_equal(got.cut.n_out, 2);
        assert_int_equal(got.source[1], 9);
    }
    block.qkv[9][8] = NAN; /* the value of the only patch with a score */
    decide_with(&p, &block, &got);
    assert_memory_equal(got.source, ((uint32_t[]){0, 1, 2, 3, 4}), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_doubles), cmocka_unit_test(levels_against_doubles),
        cmocka_unit_test(adapts), cmocka_unit_test(fewer_enter), cmocka_unit_test(extremes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
