/* test_prune_merge.c - tests merging into the token with the nearest key, and ToMe, against doubles
 * and against small worked examples.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/prune_fixture.h"

static plain_block block;
static decision got;

static double cosine(const plain_block *b, uint32_t i, uint32_t j)
{
    double ij = 0.0, ii = 0.0, jj = 0.0;
    for (uint32_t d = 0; d < b->head; d++) {
        double x = 0.0, y = 0.0; /* head means of the keys */
        for (uint32_t h = 0; h < b->heads; h++) {
            x += (double)b->qkv[i][(b->heads + h) * b->head + d];
            y += (double)b->qkv[j][(b->heads + h) * b->head + d];
        }
        ij += x * y, ii += x * x, jj += y * y;
    }
    return ij / sqrt(ii * jj);
}

static double size_of(uint32_t j) { return block.sized ? (double)block.sizes[j] : 1.0; }

static void random_sizes(uint64_t seed)
{
    ry_rng r = ry_rng_new(seed);
    block.sized = 1;
    for (uint32_t j = 0; j < block.n; j++)
        block.sizes[j] = j < block.prefix ? 1.0f : (float)(1 + ry_rng_next(&r) % 9);
}

/* Each row is the mean of its tokens, weighted by their sizes in patches. */
static void check_means(void)
{
    double sum[MAX_TOKENS] = {0};
    for (uint32_t j = 0; j < block.n; j++) {
        assert_true(got.target[j] != RY_NO_TOKEN);
        sum[got.target[j]] += size_of(j);
    }
    for (uint32_t j = 0; j < block.n; j++)
        assert_true(fabs((double)got.weight[j] - size_of(j) / sum[got.target[j]]) < 1e-6);
    assert_true(got.needs.sizes && !got.needs.drops);
}

/* Token j was merged into the row of [from, to) whose source has the most similar key. */
static void check_nearest(uint32_t j, uint32_t from, uint32_t to)
{
    const double mine = cosine(&block, j, got.source[got.target[j]]);
    assert_in_range(got.target[j], from, to - 1);
    for (uint32_t r = from; r < to; r++)
        assert_true(cosine(&block, j, got.source[r]) <= mine + 1e-6);
}

static void merge_nearest(void **state)
{
    (void)state;
    for (uint32_t v = 0; v < 30; v++) {
        const uint32_t prefix = v % 3, head = 3 + v % 17;
        ry_policy p = plain_policy(RY_RULE_EVIT, prefix ? RY_METRIC_CLS : RY_METRIC_COL, 5 + v * 2);
        p.cuts[0].reduce = RY_REDUCE_MERGE;
        block_random(&block, 70 + 4 * v + prefix, prefix, 1 + v % 4, head, v);
        if (v % 2) random_sizes(v);
        decide_with(&p, &block, &got);
        check_means();
        for (uint32_t j = prefix; j < block.n; j++)
            if (got.source[got.target[j]] != j) check_nearest(j, prefix, got.cut.n_out);
        const double gone = p.cuts[0].count, kept = block.n - prefix - gone;
        assert_true(got.needs.macs == gone * kept * head);
    }
}

/* One head of two numbers: keys are points on a circle, given in degrees. */
static void use_angles(uint32_t n, uint32_t prefix, const double *degrees)
{
    block_random(&block, n, prefix, 1, 2, 1);
    for (uint32_t j = 0; j < n; j++) {
        block.qkv[j][2] = 3.0f * (float)cos(degrees[j] * acos(-1.0) / 180.0);
        block.qkv[j][3] = 3.0f * (float)sin(degrees[j] * acos(-1.0) / 180.0);
    }
}

static void merge_worked_example(void **state)
{
    (void)state;
    ry_policy p = plain_policy(RY_RULE_NAIVE, RY_METRIC_CLS, 3);
    p.cuts[0].reduce = RY_REDUCE_MERGE;
    /* The class token has the same key as token 2, but receives nothing. */
    use_angles(6, 1, (double[]){80, 0, 80, 10, 60, 95});
    for (uint32_t j = 0; j < 6; j++) block.a[0][0][j] = (double[]){.1, .3, .05, .04, .2, .03}[j];
    p.cuts[0].count = 3; /* 1 and 4 stay: 2, 3, 5 go to 4, 1, 4 */
    block.sized = 1;
    for (uint32_t j = 0; j < 6; j++) block.sizes[j] = (float[]){1, 2, 3, 2, 1, 4}[j];
    decide_with(&p, &block, &got);
    assert_memory_equal(got.source, ((uint32_t[]){0, 1, 4}), 12);
    assert_memory_equal(got.target, ((uint32_t[]){0, 1, 2, 1, 2, 2}), 24);
    assert_memory_equal(got.weight, ((float[]){1, .5f, .375f, .5f, .125f, .5f}), 24);

    use_angles(6, 1,
               (double[]){0, 40, 20, 0, 0, 0}); /* 2 is as near to 1 as to 3: the lower index */
    for (uint32_t j = 0; j < 6; j++) block.a[0][0][j] = (double[]){.1, .3, .01, .3, .3, .3}[j];
    memcpy(&block.qkv[1][2], ((float[]){1, 1}), 8);
    memcpy(&block.qkv[2][2], ((float[]){1, 0}), 8);
    memcpy(&block.qkv[3][2], ((float[]){1, -1}), 8);
    memcpy(&block.qkv[4][2], ((float[]){1, 1}), 8);
    memcpy(&block.qkv[5][2], ((float[]){0, 0}), 8); /* zero key: cosine 0 with every token */
    p.cuts[0].count = 1;
    decide_with(&p, &block, &got);
    assert_int_equal(got.target[2], 1);
}

/* ToMe of six tokens after the class token, r = 2. Even indices 2, 4, 6; odd indices 1, 3, 5. */
static void tome_worked_example(void **state)
{
    (void)state;
    ry_policy p = {.rule = RY_RULE_TOME, .budget = RY_BUDGET_DROP, .n_cuts = 1};
    p.cuts[0].count = 2;
    use_angles(7, 1, (double[]){0, 0, 5, 90, 60, 180, 179});
    decide_with(&p, &block, &got); /* 6 to 5 (1 degree), 2 to 1 (5), not 4 to 3 (30) */
    assert_memory_equal(got.source, ((uint32_t[]){0, 4, 1, 3, 5}), 20);
    assert_memory_equal(got.target, ((uint32_t[]){0, 2, 2, 3, 1, 4, 4}), 28);
    assert_memory_equal(got.weight, ((float[]){1, .5f, .5f, 1, 1, .5f, .5f}), 28);
    assert_true(got.needs.what == 0 && got.needs.macs == 3 * 3 * 2);

    /* The distillation token at index 1 has the key of token 2, but is never merged into. */
    use_angles(8, 2, (double[]){0, 5, 5, 90, 60, 180, 179, 20});
    decide_with(&p, &block, &got); /* even 2, 4, 6; odd 3, 5, 7: 6 to 5, 2 to 7 (15 degrees) */
    assert_memory_equal(got.source, ((uint32_t[]){0, 1, 4, 3, 5, 7}), 24);
    assert_memory_equal(got.target, ((uint32_t[]){0, 1, 5, 3, 2, 4, 4, 5}), 32);
}

static void tome_random(void **state)
{
    (void)state;
    for (uint32_t v = 0; v < 40; v++) {
        const uint32_t prefix = v % 3, n = 60 + 3 * v + prefix, r = 1 + (v * 7) % 30;
        ry_policy p = {.rule = RY_RULE_TOME, .budget = RY_BUDGET_DROP, .n_cuts = 1};
        p.cuts[0].count = r;
        block_random(&block, n, prefix, 1 + v % 4, 3 + v % 17, 100 + v);
        if (v % 2) random_sizes(v);
        decide_with(&p, &block, &got);
        assert_int_equal(got.cut.n_out, n - r);
        check_means();
        double last = 2.0, first_left = -2.0; /* lowest merged score, highest kept */
        const uint32_t even = (n + 1) / 2 - (prefix + 1) / 2, first_odd = prefix + even - r;
        for (uint32_t j = prefix; j < n; j++) {
            const int goes = got.source[got.target[j]] != j;
            if (goes) check_nearest(j, first_odd, got.cut.n_out);
            assert_false(goes && j % 2);
            if (j % 2) continue;
            double best = -2.0;
            for (uint32_t i = prefix; i < n; i++)
                if (i % 2 && cosine(&block, i, j) > best) best = cosine(&block, i, j);
            assert_true(fabs((double)got.score[j] - best) < 1e-6);
            if (goes && best < last) last = best;
            if (!goes && best > first_left) first_left = best;
        }
        assert_true(first_left <= last + 1e-6);
        for (uint32_t row = prefix + 1; row < got.cut.n_out; row++) /* even ones, then odd ones */
            if (row != first_odd) assert_true(got.source[row] > got.source[row - 1]);
        assert_true(first_odd == prefix || got.source[first_odd - 1] % 2 == 0);
        assert_int_equal(got.source[first_odd] % 2, 1);
    }
}

/* The largest r: every even token is merged. A token with a NaN key may be merged into any row. */
static void tome_edges(void **state)
{
    (void)state;
    ry_policy p = {.rule = RY_RULE_TOME, .budget = RY_BUDGET_DROP, .n_cuts = 1};
    for (uint32_t prefix = 0; prefix <= 2; prefix++)
        for (uint32_t patches = 2; patches < 12; patches++)
            for (int nan = 0; nan < 2; nan++) {
                p.cuts[0].count = patches / 2;
                block_random(&block, prefix + patches, prefix, 2, 4, patches);
                for (uint32_t j = 0; j < block.n && nan; j++) block.qkv[j][8] = NAN;
                decide_with(&p, &block, &got);
                assert_int_equal(got.cut.n_out, prefix + patches - patches / 2);
                check_means();
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_nearest),       cmocka_unit_test(merge_worked_example),
        cmocka_unit_test(tome_worked_example), cmocka_unit_test(tome_random),
        cmocka_unit_test(tome_edges),
    };
    int failed = 0;
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
        fixture_level = (renyi_cpu)level;
        failed += cmocka_run_group_tests_name(renyi_cpu_name(fixture_level), tests, NULL, NULL);
    }
    return failed;
}
