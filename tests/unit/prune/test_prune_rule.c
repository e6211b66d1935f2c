/* test_prune_rule.c - tests what holds for every metric: the prefix stays, ties and NaN have an
 * order, a random draw depends on its image, a cut that changes nothing needs nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/prune_fixture.h"

static plain_block block;
static decision got, other;

static const ry_metric all_metrics[] = {RY_METRIC_CLS,    RY_METRIC_COL,   RY_METRIC_CORRECT,
                                        RY_METRIC_RANDOM, RY_METRIC_RENYI, RY_METRIC_SHANNON,
                                        RY_METRIC_COLV};
enum { N_METRICS = sizeof all_metrics / sizeof *all_metrics };

static int wants_class(ry_metric m) { return m == RY_METRIC_CLS || m == RY_METRIC_CORRECT; }

/* Every metric with every reduction and order, with no, one and two prefix tokens: decide_with
 * checks that the prefix is complete and that rows and tokens match. */
static void prefix_stays(void **state)
{
    (void)state;
    for (uint32_t prefix = 0; prefix <= 2; prefix++)
        for (uint32_t v = 0; v < N_METRICS * 3 * 2; v++) {
            ry_policy p = plain_policy(RY_RULE_EVIT, all_metrics[v % N_METRICS], 20);
            if (!prefix && wants_class(p.metric)) continue;
            p.cuts[0].reduce = (ry_reduce)(v / N_METRICS % 3);
            p.order = (ry_order)(v / N_METRICS / 3);
            p.weights = prefix ? RY_FUSE_CLS : RY_FUSE_SCORE;
            p.c = 0.5;
            block_random(&block, 48 + prefix, prefix, 2, 5, v);
            decide_with(&p, &block, &got);
            uint32_t dropped = 0;
            for (uint32_t j = 0; j < block.n; j++) dropped += got.target[j] == RY_NO_TOKEN;
            assert_int_equal(dropped, p.cuts[0].reduce == RY_REDUCE_DROP ? 20 : 0);
            for (uint32_t r = prefix + 1; r < prefix + 28 && p.order == RY_ORDER_POSITION; r++)
                assert_true(got.source[r] > got.source[r - 1]);
        }
}

static void ties_and_nan(void **state)
{
    (void)state;
    ry_policy p = plain_policy(RY_RULE_NAIVE, RY_METRIC_COL, 3);
    block_random(&block, 7, 1, 1, 4, 3);
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 7; j++) block.a[0][i][j] = 1.0 / 7;
    decide_with(&p, &block, &got);
    assert_memory_equal(got.source, ((uint32_t[]){0, 1, 2, 3}), 16);
    for (int i = 0; i < 7; i++) block.a[0][i][1] = block.a[0][i][2] = NAN;
    for (int m = 0; m < N_METRICS; m++) {
        p.metric = all_metrics[m], p.c = 0.5;
        decide_with(&p, &block, &got);
        if (p.metric == RY_METRIC_RANDOM || p.metric == RY_METRIC_COLV) continue;
        assert_memory_equal(got.source, ((uint32_t[]){0, 3, 4, 5}), 16);
    }
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 7; j++) block.a[0][i][j] = NAN;
    for (int m = 0; m < N_METRICS; m++)
        for (int reduce = 0; reduce < 3; reduce++) { /* only NaN: by position */
            p.metric = all_metrics[m], p.cuts[0].reduce = (ry_reduce)reduce;
            decide_with(&p, &block, &got);
            if (p.metric != RY_METRIC_RANDOM)
                assert_memory_equal(got.source, ((uint32_t[]){0, 1, 2, 3}), 16);
        }
}

/* The draw at a block for the image with this key, at any index of the batch. */
static void draw(ry_policy *p, uint32_t at, uint64_t key, uint32_t image, decision *d)
{
    p->cuts[0].layer = at;
    ry_pruner *pruner = pruner_for(p, &block, image + 1);
    const ry_token_hook hook = ry_pruner_hook(pruner);
    uint64_t keys[8] = {0};
    keys[image] = key;
    ry_pruner_name_images(pruner, keys, image + 1);
    hook.needs(hook.self, at, block.n, &d->needs);
    block_show(&block, &d->needs);
    const ry_block_view view = block_view(&block, at, image);
    run_phases(&hook, &view, d);
    ry_pruner_free(pruner, NULL);
}

static int same_draw(void) { return !memcmp(got.score, other.score, block.n * sizeof(float)); }

static void draws(void **state)
{
    (void)state;
    ry_policy p = plain_policy(RY_RULE_EVIT, RY_METRIC_RANDOM, 50);
    block_random(&block, 100, 1, 1, 4, 3);
    p.seed = 9;
    draw(&p, 3, 5, 0, &got);
    assert_int_equal(got.needs.what, 0);
    draw(&p, 3, 5, 7, &other);
    assert_true(same_draw());
    draw(&p, 3, 5, 2, &other);
    assert_true(same_draw());
    draw(&p, 3, 4, 0, &other);
    assert_false(same_draw());
    draw(&p, 2, 5, 0, &other);
    assert_false(same_draw());
    p.seed = 10;
    draw(&p, 3, 5, 0, &other);
    assert_false(same_draw());

    double sum = 0.0, n = 0.0; /* uniform: mean 1/2, over 60 draws of 99 */
    for (uint64_t i = 0; i < 60; i++) {
        draw(&p, 0, i, 0, &got);
        for (uint32_t j = 1; j < block.n; j++) {
            assert_true(got.score[j] >= 0.0f && got.score[j] < 1.0f);
            sum += (double)got.score[j], n++;
        }
    }
    assert_true(fabs(sum / n - 0.5) < 0.015);
}

/* A fused token is a weighted sum: by class attention, or by scores that sum to nearly one. */
static void fused_weights(void **state)
{
    (void)state;
    block_random(&block, 30, 1, 2, 4, 8);
    for (int m = 0; m < N_METRICS; m++) {
        ry_policy p = plain_policy(RY_RULE_EVIT, all_metrics[m], 12);
        p.cuts[0].reduce = RY_REDUCE_FUSE, p.c = 0.5;
        decide_with(&p, &block, &got);
        assert_true(got.needs.what & RY_NEED_CLASS_ROW && !got.needs.drops);
        assert_int_equal(got.source[got.cut.n_out - 1], RY_NO_TOKEN);
        for (uint32_t j = 1; j < 30; j++)
            if (got.target[j] == got.cut.n_out - 1)
                assert_true(got.weight[j] == block.class_row[j]);

        p.weights = RY_FUSE_SCORE;
        decide_with(&p, &block, &got);
        double sum = 1e-6, share[MAX_TOKENS];
        for (uint32_t j = 0; j < 30; j++) {
            const double s = (double)got.score[j];
            share[j] = p.metric == RY_METRIC_RENYI || p.metric == RY_METRIC_SHANNON ? exp(s) : s;
            sum += share[j];
        }
        if (p.metric == RY_METRIC_CLS) sum = 1.0;
        for (uint32_t j = 1; j < 30; j++)
            if (got.target[j] == got.cut.n_out - 1)
                assert_true(fabs((double)got.weight[j] * sum / share[j] - 1.0) < 1e-5);
    }
}

static void nothing_to_do(void **state)
{
    (void)state;
    block_random(&block, 30, 1, 2, 4, 8);
    for (int reduce = 0; reduce < 3; reduce++) {
        ry_policy p = plain_policy(RY_RULE_EVIT, RY_METRIC_COL, 0);
        p.cuts[0].reduce = (ry_reduce)reduce;
        p.budget = reduce ? RY_BUDGET_KEEP : RY_BUDGET_DROP, p.cuts[0].keep = 1.0;
        ry_pruner *pruner = pruner_for(&p, &block, 1);
        const ry_token_hook hook = ry_pruner_hook(pruner);
        for (uint32_t at = 0; at < 2; at++) { /* a cut without effect, a block without a cut */
            hook.needs(hook.self, at, 30, &got.needs);
            assert_int_equal(got.needs.n_after, 30);
            assert_true(!got.needs.what && got.needs.place == RY_CUT_NONE && !got.needs.sizes);
            assert_int_equal(hook.tiles(hook.self, at, 0), 0);
        }
        ry_pruner_free(pruner, NULL);
    }
    ry_policy single = plain_policy(RY_RULE_EVIT, RY_METRIC_COL, 1); /* one token fused: no gain */
    single.cuts[0].reduce = RY_REDUCE_FUSE;
    ry_pruner *fuse = pruner_for(&single, &block, 1);
    ry_pruner_hook(fuse).needs(fuse, 0, 30, &got.needs);
    assert_true(got.needs.n_after == 30 && got.needs.place == RY_CUT_NONE && !got.needs.what);
    ry_pruner_free(fuse, NULL);

    ry_policy none = {.rule = RY_RULE_NONE};
    ry_pruner *pruner = pruner_for(&none, &block, 2);
    const ry_token_hook hook = ry_pruner_hook(pruner);
    hook.needs(hook.self, 0, 30, &got.needs);
    assert_true(got.needs.n_after == 30 && got.needs.place == RY_CUT_NONE);
    ry_pruner_free(pruner, NULL);
    ry_pruner_free(NULL, NULL);
}

/* Counts as in the official scripts: EViT at 0.7 with a fused token, cut after cut. */
static void counts(void **state)
{
    (void)state;
    ry_policy p = {.rule = RY_RULE_EVIT, .metric = RY_METRIC_CLS, .budget = RY_BUDGET_KEEP};
    const uint32_t after[] = {140, 100, 72};
    p.n_cuts = 3;
    for (uint32_t i = 0; i < 3; i++)
        p.cuts[i] = (ry_policy_cut){.layer = 3 * i, .keep = 0.7, .reduce = RY_REDUCE_FUSE};
    p.place = RY_PLACE_END;
    block_random(&block, 197, 1, 1, 4, 8);
    ry_pruner *pruner = pruner_for(&p, &block, 0); /* only counting: no scratch */
    const ry_token_hook hook = ry_pruner_hook(pruner);
    for (uint32_t i = 0, n = 197; i < 3; n = after[i++]) {
        hook.needs(hook.self, 3 * i, n, &got.needs);
        assert_int_equal(got.needs.n_after, after[i]);
        assert_int_equal(got.needs.place, RY_CUT_END);
    }
    ry_pruner_free(pruner, NULL);
}

/* An allocator that returns `left` blocks and then fails. */
static void *alloc_some(void *user, size_t size, size_t align)
{
    int *left = user;
    return (*left)-- > 0 ? aligned_alloc(align, (size + align - 1) / align * align) : NULL;
}

static void release_block(void *user, void *ptr, size_t size)
{
    (void)user, (void)size;
    free(ptr);
}

static void short_of_memory(void **state)
{
    (void)state;
    ry_policy policy = plain_policy(RY_RULE_EVIT, RY_METRIC_COL, 9);
    policy.cuts[0].reduce = RY_REDUCE_MERGE;
    const ry_pruner_spec spec = {&policy, {12, 99, 1, 0}, 64, 4, 8, RENYI_CPU_SCALAR};
    for (int blocks = 0;; blocks++) {
        int left = blocks;
        const renyi_allocator al = {alloc_some, release_block, &left};
        ry_pruner *p = NULL;
        renyi_error err = {0};
        const renyi_status st = ry_pruner_new(&p, &spec, &al, &err);
        if (st != RENYI_OK) {
            assert_int_equal(st, RENYI_ERR_NOMEM);
            assert_null(p);
            continue;
        }
        assert_true(blocks > 1);
        ry_pruner_free(p, &al);
        break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefix_stays),    cmocka_unit_test(ties_and_nan),
        cmocka_unit_test(draws),           cmocka_unit_test(fused_weights),
        cmocka_unit_test(nothing_to_do),   cmocka_unit_test(counts),
        cmocka_unit_test(short_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
