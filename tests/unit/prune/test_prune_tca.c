/* test_prune_tca.c - tests Token Condensation on blocks of known attention, against doubles: which
 * tokens stay, which are merged into which centre, which are fused; and rows that are all equal.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/prune_fixture.h"

#include "prune/rules/tca_centres.h"

enum { TOKENS = 101, HEADS = 2, HEAD = 10, DIM = HEADS * HEAD, PATCHES = TOKENS - 1 };

static plain_block block;
static float x[TOKENS][DIM];

static ry_policy tca(ry_metric metric, ry_start start, uint64_t seed)
{
    return (ry_policy){.rule = RY_RULE_TCA,
                       .metric = metric,
                       .n = 4.0,
                       .class_row = 1,
                       .diagonal = 1,
                       .start = start,
                       .seed = seed,
                       .budget = RY_BUDGET_SHARE,
                       .n_cuts = 1,
                       .cuts = {{.layer = 0, .drop = 0.1, .reduce = RY_REDUCE_MERGE}}};
}

static void decide(const ry_policy *policy, uint64_t key, decision *d)
{
    ry_pruner *p = pruner_for(policy, &block, 1);
    const ry_token_hook hook = ry_pruner_hook(p);
    ry_pruner_name_images(p, &key, 1);
    hook.needs(hook.self, 0, block.n, &d->needs);
    block_show(&block, &d->needs);
    ry_block_view view = block_view(&block, 0, 0);
    view.x = x[0];
    run_phases(&hook, &view, d);
    ry_pruner_free(p, NULL);
}

static void make_block(uint32_t seed)
{
    ry_rng r = ry_rng_new(seed);
    block_random(&block, TOKENS, 1, HEADS, HEAD, seed);
    for (uint32_t j = 0; j < TOKENS; j++)
        for (uint32_t c = 0; c < DIM; c++) x[j][c] = (float)ry_rng_normal(&r);
}

/* ---- in plain doubles ----------------------------------------------------------------------- */

static double distance_of(uint32_t a, uint32_t b)
{
    double sum = 0.0;
    for (uint32_t c = 0; c < DIM; c++) sum += pow((double)x[a][c] - (double)x[b][c], 2.0);
    return sqrt(sum);
}

/* Tokens from the best score to the worst. */
static void rank(uint32_t *order, const float *score)
{
    for (uint32_t i = 0; i < PATCHES; i++) {
        uint32_t at = i;
        for (; at && score[order[at - 1]] < score[i + 1]; at--) order[at] = order[at - 1];
        order[at] = i + 1;
    }
}

static double nearest(uint32_t token, const uint32_t *centre, uint32_t n, uint32_t *which)
{
    double best = INFINITY;
    for (uint32_t k = 0; k < n; k++) {
        const double distance = distance_of(token, centre[k]);
        if (distance >= best) continue;
        best = distance;
        *which = k;
    }
    return best;
}

static void find_centres(uint32_t *centre, const uint32_t *list, uint32_t n)
{
    for (uint32_t k = 1, idle; k < RY_TCA_CENTRES; k++) {
        double most = -1.0;
        for (uint32_t i = 0; i < n; i++)
            if (nearest(list[i], centre, k, &idle) > most)
                most = nearest(list[i], centre, k, &idle), centre[k] = list[i];
    }
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Of 100 patches at drop=0.1: 90 are left, m = 11, 68 stay, 22 are merged, 10 fused. */
static void check_condensation(const ry_policy *policy, decision *d)
{
    enum { STAY = 68, JOIN = 22 };
    uint32_t order[PATCHES], centre[RY_TCA_CENTRES], which;
    double sum[RY_TCA_CENTRES] = {0}, all = 1e-6;

    decide(policy, 1, d);
    assert_int_equal(d->needs.what & RY_NEED_TOKENS, RY_NEED_TOKENS);
    assert_int_equal(d->cut.n_out, 1 + STAY + RY_TCA_CENTRES + 1);
    check_decision(&block, d);
    rank(order, d->score);
    for (uint32_t i = 0; i < STAY; i++) {
        assert_int_equal(d->source[1 + i], order[i]);
        assert_true(d->weight[order[i]] == 1.0f);
    }
    centre[0] = policy->start == RY_START_BEST ? order[STAY] : d->source[1 + STAY];
    find_centres(centre, order + STAY, JOIN);
    for (uint32_t k = 0; k < RY_TCA_CENTRES; k++)
        assert_int_equal(d->source[1 + STAY + k], centre[k]);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = STAY; i < STAY + JOIN; i++) {
            const double distance = nearest(order[i], centre, RY_TCA_CENTRES, &which);
            const double w = distance > 0.0 ? 1.0 / distance : 1.0;
            if (!pass) sum[which] += w;
            if (!pass) continue;
            assert_int_equal(d->target[order[i]], 1 + STAY + which);
            assert_true(fabs((double)d->weight[order[i]] - w / sum[which]) < 1e-5);
        }
    for (uint32_t j = 0; j < TOKENS; j++) all += (double)d->score[j];
    for (uint32_t i = STAY + JOIN; i < PATCHES; i++) {
        const double share =
            (double)d->score[order[i]] / (policy->metric == RY_METRIC_CLS ? 1 : all);
        assert_int_equal(d->target[order[i]], d->cut.n_out - 1);
        assert_true(fabs((double)d->weight[order[i]] - share) < 1e-6);
    }
}

static void test_condensation(void **state)
{
    (void)state;
    static decision d;
    for (uint32_t seed = 1; seed < 20; seed++) {
        make_block(seed);
        for (int k = 0; k < 4; k++) {
            const ry_policy p = tca(k % 2 ? RY_METRIC_COL : RY_METRIC_CLS,
                                    k / 2 ? RY_START_RANDOM : RY_START_BEST, seed);
            check_condensation(&p, &d);
        }
    }
}

/* The draw depends on seed and image, and reaches every candidate. */
static void test_draws(void **state)
{
    (void)state;
    static decision d, again;
    uint8_t seen[TOKENS] = {0};
    uint32_t places = 0;
    make_block(3);
    for (uint64_t key = 0; key < 400; key++) {
        const ry_policy p = tca(RY_METRIC_CLS, RY_START_RANDOM, 1);
        decide(&p, key, &d);
        decide(&p, key, &again);
        assert_memory_equal(d.target, again.target, sizeof d.target);
        places += !seen[d.source[69]]++;
    }
    assert_int_equal(places, 22);
}

/* A centre equal to the first gets no tokens and becomes a zero row. */
static void test_equal_rows(void **state)
{
    (void)state;
    static decision d;
    const ry_policy p = tca(RY_METRIC_COL, RY_START_BEST, 0);
    make_block(5);
    for (uint32_t j = 0; j < TOKENS; j++) memcpy(x[j], x[0], sizeof x[0]);
    decide(&p, 1, &d);
    assert_true(d.source[69] != RY_NO_TOKEN);
    for (uint32_t k = 1; k < RY_TCA_CENTRES; k++) {
        assert_int_equal(d.source[69 + k], RY_NO_TOKEN);
        for (uint32_t j = 0; j < TOKENS; j++) assert_true(d.target[j] != 69 + k);
    }
    for (uint32_t j = 0; j < TOKENS; j++)
        if (d.target[j] == 69) assert_true(fabsf(d.weight[j] - 1.0f / 22.0f) < 1e-7f);
}

/* A worked example: points on a line. */
static void test_centres(void **state)
{
    (void)state;
    static const float line[] = {0.0f, 1.0f, 10.0f, 4.0f, 0.5f, 10.0f};
    static const uint32_t list[] = {0, 1, 2, 3, 4, 5};
    const ry_centre_rows rows = {line, 1, list, 6};
    uint32_t centre[3];
    uint8_t near[6];
    float w[6];
    ry_centres_find(&rows, 1, 3, centre, near, w);
    assert_int_equal(centre[0], 1);
    assert_int_equal(centre[1], 2); /* 9 away, and so is the last one: the lower index */
    assert_int_equal(centre[2], 3); /* 3 away from 1 */
    static const uint8_t want[] = {0, 0, 1, 2, 0, 1};
    assert_memory_equal(near, want, sizeof want);
    ry_centres_weigh(w, w, near, 6, 3);
    static const float shares[] = {0.25f, 0.25f, 0.5f, 1.0f, 0.5f, 0.5f}; /* 1, 1 (itself), 2 */
    for (int i = 0; i < 6; i++) assert_true(fabsf(w[i] - shares[i]) < 1e-6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_condensation), cmocka_unit_test(test_draws),
        cmocka_unit_test(test_equal_rows), cmocka_unit_test(test_centres)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
