/* test_prune_metric.c - tests `naive` and `evit` on a block of known attention: the scores, the
 * order of the kept tokens, Algorithm 2, and the weights of a fused token.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/prune_fixture.h"

static plain_block block;
static decision got, other;

/* The 5 x 5 matrix that the method's description works through; index 0 is the class token. */
static const double matrix[5][5] = {{0.10, 0.40, 0.20, 0.20, 0.10},
                                    {0.05, 0.70, 0.05, 0.10, 0.10},
                                    {0.20, 0.10, 0.10, 0.50, 0.10},
                                    {0.10, 0.05, 0.05, 0.60, 0.20},
                                    {0.30, 0.15, 0.15, 0.25, 0.15}};

static void use_matrix(uint32_t heads)
{
    static const int permuted[5] = {0, 3, 1, 4, 2}; /* columns of the second head */
    block_random(&block, 5, 1, heads, 4, 1);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) {
            block.a[0][i][j] = matrix[i][j];
            if (heads > 1) block.a[1][i][j] = matrix[i][permuted[j]];
        }
}

/* Three of four patches stay, so the whole ranking is known. */
static void expect_scores(const ry_policy *p, const double *score, const uint32_t *best)
{
    decide_with(p, &block, &got);
    assert_int_equal(got.cut.n_out, 4);
    for (uint32_t j = 0; j < 5; j++)
        if (fabs((double)got.score[j] - score[j]) > 6e-7)
            fail_msg("score %u is %.7f instead of %.6f", j, (double)got.score[j], score[j]);
    assert_memory_equal(got.source + 1, best, 3 * sizeof *best);
    assert_true(got.target[best[3]] == RY_NO_TOKEN);
    assert_true(got.needs.drops && !got.needs.sizes && got.needs.place == RY_CUT_MID);
}

static void known_columns(void **state)
{
    (void)state;
    const struct {
        double n;
        double score[5];
        uint32_t best[4];
    } rows[] = {
        {1, {0.75, 1.40, 0.55, 1.65, 0.65}, {3, 1, 4, 2}},
        {2, {0.390512, 0.827647, 0.278388, 0.850000, 0.304138}, {3, 1, 4, 2}},
        {3, {0.333597, 0.743801, 0.232850, 0.715065, 0.243147}, {1, 3, 4, 2}},
        {4, {0.315484, 0.718370, 0.217034, 0.666815, 0.221480}, {1, 3, 4, 2}},
        {8, {0.301450, 0.700990, 0.202490, 0.615956, 0.202668}, {1, 3, 4, 2}},
        {INFINITY, {0.30, 0.70, 0.20, 0.60, 0.20}, {1, 3, 2, 4}}, /* 2 = 4 */
    };
    use_matrix(1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ry_policy p = plain_policy(RY_RULE_NAIVE, RY_METRIC_COL, 1);
        p.n = rows[i].n;
        expect_scores(&p, rows[i].score, rows[i].best);
        assert_int_equal(got.needs.what, RY_NEED_COLUMNS);
    }
}

static void known_others(void **state)
{
    (void)state;
    use_matrix(1);
    ry_policy p = plain_policy(RY_RULE_NAIVE, RY_METRIC_CLS, 1);
    expect_scores(&p, matrix[0], (uint32_t[]){1, 2, 3, 4});
    assert_int_equal(got.needs.what, RY_NEED_CLASS_ROW);
    p.metric = RY_METRIC_RENYI; /* the score is minus the entropy */
    expect_scores(&p, (double[]){-1.154620, -0.889658, -1.239821, -1.208025, -1.435518},
                  (uint32_t[]){1, 3, 2, 4});
    p.n = 2;
    expect_scores(&p, (double[]){-1.305227, -1.051281, -1.361803, -1.326588, -1.518981},
                  (uint32_t[]){1, 3, 2, 4});
    p.metric = RY_METRIC_SHANNON;
    expect_scores(&p, (double[]){-1.436829, -1.251331, -1.468140, -1.441253, -1.564957},
                  (uint32_t[]){1, 3, 2, 4});
    p.metric = RY_METRIC_COL, p.n = 4, p.diagonal = 0;
    expect_scores(&p, (double[]){0.314685, 0.402371, 0.214546, 0.510854, 0.208780},
                  (uint32_t[]){3, 1, 2, 4});
    p.diagonal = 1, p.class_row = 0;
    expect_scores(&p, (double[]){0.314685, 0.700446, 0.157717, 0.665461, 0.219142},
                  (uint32_t[]){1, 3, 4, 2});
}

static void known_heads(void **state)
{
    (void)state;
    use_matrix(2);
    ry_policy p = plain_policy(RY_RULE_NAIVE, RY_METRIC_COL, 1);
    expect_scores(&p, (double[]){0.315484, 0.483295, 0.410833, 0.435304, 0.193028},
                  (uint32_t[]){1, 3, 2, 4});
    p.heads = RY_HEADS_EACH;
    expect_scores(&p, (double[]){0.315484, 0.692592, 0.467702, 0.444147, 0.219257},
                  (uint32_t[]){1, 2, 3, 4});
}

static void known_correcting(void **state)
{
    (void)state;
    use_matrix(1);
    ry_policy p = plain_policy(RY_RULE_NAIVE, RY_METRIC_CORRECT, 1);
    p.c = 0.4;
    decide_with(&p, &block, &got);
    assert_memory_equal(got.source, ((uint32_t[]){0, 1, 2, 3}), 16);
    assert_memory_equal(got.rescued, ((uint8_t[]){0, 0, 0, 1, 0}), 5);
    assert_int_equal(got.needs.what, RY_NEED_COLUMNS | RY_NEED_CLASS_ROW);
    p.c = 0.5, p.cuts[0].count = 2;
    decide_with(&p, &block, &got);
    assert_memory_equal(got.source, ((uint32_t[]){0, 1, 3}), 12);
    assert_memory_equal(got.rescued, ((uint8_t[]){0, 0, 0, 1, 0}), 5);
}

/* colv is Col-Ln times the length of the value row. */
static void colv_uses_values(void **state)
{
    (void)state;
    block_random(&block, 40, 1, 3, 7, 5);
    ry_policy p = plain_policy(RY_RULE_NAIVE, RY_METRIC_COLV, 9);
    decide_with(&p, &block, &got);
    for (uint32_t j = 0; j < 40; j++) {
        double sum = 0.0;
        for (int i = 42; i < 63; i++) sum += (double)block.qkv[j][i] * (double)block.qkv[j][i];
        const double want = (double)block.columns[j] * sqrt(sum);
        assert_true(fabs((double)got.score[j] - want) <= 1e-6 * want);
    }
}

static int same_choice(uint32_t n)
{
    return !memcmp(got.source, other.source, got.cut.n_out * sizeof *got.source) &&
           !memcmp(got.target, other.target, n * sizeof *got.target);
}

/* c = 0 is the class ranking, c = 1 is Col-Ln, for both roundings; a large n is close to n=inf. */
static void limits(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        block_random(&block, 50, 1, 2, 4, seed);
        for (int paper = 0; paper < 2; paper++) {
            ry_policy p = plain_policy(RY_RULE_NAIVE, RY_METRIC_CORRECT, 11);
            p.rounding = paper ? RY_ROUND_PAPER : RY_ROUND_CODE;
            for (int c = 0; c < 2; c++) {
                p.metric = RY_METRIC_CORRECT, p.c = c;
                decide_with(&p, &block, &got);
                p.metric = c ? RY_METRIC_COL : RY_METRIC_CLS;
                decide_with(&p, &block, &other);
                assert_true(same_choice(50));
            }
        }
        ry_policy p = plain_policy(RY_RULE_NAIVE, RY_METRIC_COL, 11);
        p.n = 64;
        decide_with(&p, &block, &got);
        p.n = INFINITY;
        decide_with(&p, &block, &other);
        for (uint32_t j = 0; j < 50; j++)
            assert_true(fabsf(got.score[j] / other.score[j] - 1.0f) < 0.07f);
    }
}

/* Ranking by Col-Ln is ranking by the smallest Renyi entropy of the raw column. */
static void raw_renyi(void **state)
{
    (void)state;
    block_random(&block, 60, 1, 1, 4, 77);
    ry_policy p = plain_policy(RY_RULE_NAIVE, RY_METRIC_COL, 1);
    p.n = 2.5;
    decide_with(&p, &block, &got);
    double last = -INFINITY;
    for (uint32_t r = 1; r < got.cut.n_out; r++) {
        double sum = 0.0;
        for (uint32_t i = 0; i < 60; i++) sum += pow(block.a[0][i][got.source[r]], 2.5);
        const double entropy = log(sum) / (1.0 - 2.5);
        assert_true(entropy >= last - 1e-7);
        last = entropy;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_columns),    cmocka_unit_test(known_others),
        cmocka_unit_test(known_heads),      cmocka_unit_test(known_correcting),
        cmocka_unit_test(colv_uses_values), cmocka_unit_test(limits),
        cmocka_unit_test(raw_renyi),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
