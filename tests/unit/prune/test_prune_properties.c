/* test_prune_properties.c - tests what holds for pruned runs of every policy: removing nothing
 * gives the dense run, the limits of Algorithm 2, the same bits for any batch, thread count and
 * trace, every token accounted for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/prune_model.h"

enum { LOGITS = PM_IMAGES * FIX_CLASSES };
#ifdef RENYI_SANITIZED
enum { EVERY = 4, FIRST_PLAN = 3 }; /* fewer policies for the other models and plain C; two plans */
#else
enum { EVERY = 1, FIRST_PLAN = 0 };
#endif

static renyi_model *vit, *distilled, *pooled;

static int open_models(void **state)
{
    (void)state;
    vit = pm_open(PM_VIT, NULL, RENYI_CPU_AUTO);
    distilled = pm_open(PM_DISTILLED, NULL, RENYI_CPU_AUTO);
    pooled = pm_open(PM_POOLED, NULL, RENYI_CPU_AUTO);
    return 0;
}

static int free_models(void **state)
{
    (void)state;
    renyi_model_free(vit);
    renyi_model_free(distilled);
    renyi_model_free(pooled);
    return 0;
}

/* Each text must give the bits of the first. */
static void check_equal(const renyi_model *m, const char *const *texts)
{
    float one[LOGITS], other[LOGITS];
    assert_true(pm_run(m, texts[0], 2, 2, 0, one));
    for (size_t i = 1; texts[i]; i++) {
        if (!pm_run(m, texts[i], 2, 2, 0, other)) continue;
        pm_same(texts[i], one, other);
    }
}

static void check_different(const renyi_model *m, const char *a, const char *b)
{
    float one[LOGITS], other[LOGITS];
    assert_true(pm_run(m, a, 2, 2, 0, one) && pm_run(m, b, 2, 2, 0, other));
    for (size_t i = 0; i < PM_IMAGES; i++)
        if (!memcmp(one + i * FIX_CLASSES, other + i * FIX_CLASSES, FIX_CLASSES * sizeof *one))
            fail_msg("%s: as %s", a, b);
}

static void test_nothing_removed(void **state)
{
    (void)state;
    static const char *const dense[] = {"none",
                                        "naive p=0 layers=all metric=cls",
                                        "naive p=0 layers=all metric=col n=4",
                                        "naive p=0 layers=0-5 metric=correct at=end",
                                        "naive p=0 layers=all metric=random reduce=merge",
                                        "evit keep=1 layers=0,3,6 metric=cls fuse",
                                        "evit keep=1 layers=0,3,6 metric=col reduce=merge",
                                        "evit keep=1 layers=0,3,6 metric=correct reduce=drop",
                                        "evit tokens=121 layers=0,11 metric=renyi n=2 fuse",
                                        "mosaic keep=1 layers=0,3,6",
                                        "mosaic p=0 layers=all",
                                        "mosaic keep=1 layers=2-9 alpha=1 omega=0.75 beta=0.9",
                                        "mosaic keep=1 layers=2-9 memory=0.5",
                                        "mosaic keep=1 layers=2-9 temperature=1.5 col=0.2",
                                        "mosaic keep=1 layers=2-9 likeness=0.1",
                                        "tome r=0",
                                        NULL};
    check_equal(vit, dense);
    check_equal(distilled, dense);
    check_equal(pooled, dense);
}

static void test_limits_of_correcting(void **state)
{
    (void)state;
    static const char *const rest[] = {"naive p=8 layers=0-5", "naive p=8 layers=all at=end",
                                       "naive p=8 layers=0-5 order=position",
                                       "evit keep=0.7 layers=0,3,6 fuse",
                                       "evit keep=0.7 layers=3,6,9 reduce=merge"};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        for (int c = 0; c < 2; c++) {
            char correct[2][128], plain[128];
            for (int r = 0; r < 2; r++)
                snprintf(correct[r], sizeof correct[r], "%s metric=correct n=4 c=%d rounding=%s",
                         rest[i], c, r ? "paper" : "code");
            snprintf(plain, sizeof plain, "%s metric=%s", rest[i], c ? "col n=4" : "cls");
            const char *const texts[] = {plain, correct[0], correct[1], NULL};
            check_equal(vit, texts);
            check_equal(distilled, texts);
        }
}

/* Texts with the same meaning give the same bits, and options have an effect. An exception is
 * at=end: the MLP reads each token alone, so a cut that only drops may come after it. */
static void test_equal_texts(void **state)
{
    (void)state;
    static const char *const shannon[] = {"naive p=8 layers=0-5 metric=shannon",
                                          "naive p=8 layers=0-5 metric=renyi n=1", NULL};
    static const char *const early[] = {
        "naive p=8 layers=0-5 metric=col n=4", "naive p=8 layers=early metric=col n=4",
        "naive p=8,8,8,8,8,8 layers=0,1,2,3,4,5 metric=col n=4", NULL};
    static const char *const place[] = {"naive p=8 layers=0-5 metric=col n=4",
                                        "naive p=8 layers=0-5 metric=col n=4 at=end", NULL};
    static const char *const lists[] = {
        "evit keep=0.7 layers=0,3,6 metric=col n=2 fuse",
        "evit keep=0.7,0.7,0.7 layers=0,3,6 metric=col n=2 reduce=fuse,fuse,fuse", NULL};
    static const char *const others[][2] = {
        {"evit keep=0.7 layers=0,3,6 metric=cls fuse",
         "evit keep=0.7 layers=0,3,6 metric=cls fuse at=end"},
        {"naive p=8 layers=0-5 metric=col n=4", "naive p=8 layers=0-5 metric=col n=1"},
        {"naive p=8 layers=0-5 metric=col n=4", "naive p=8 layers=0-5 metric=renyi n=4"},
        {"naive p=8 layers=0-5 metric=col n=4", "naive p=8 layers=0-5 metric=col n=4 diagonal=no"},
        {"naive p=8 layers=0-5 metric=random", "naive p=8 layers=0-5 metric=random seed=1"},
        {"evit keep=0.7 layers=0,3,6 metric=col fuse",
         "evit keep=0.7 layers=0,3,6 metric=col fuse weights=score"},
        {"evit keep=0.7 layers=0,3,6 metric=col reduce=fuse,drop,merge",
         "evit keep=0.7 layers=0,3,6 metric=col reduce=drop,fuse,merge"}};
    check_equal(vit, shannon);
    check_equal(vit, early);
    check_equal(vit, place);
    check_equal(distilled, place);
    check_equal(pooled, place);
    check_equal(vit, lists);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        check_different(vit, others[i][0], others[i][1]);
}

/* A cut in the last block changes no logit, so it is computed only for a trace. Then the block has
 * all its rows, and must still give the class token the same bits. */
static int check_same_bits(const renyi_model *m, const char *policy)
{
    static const uint32_t plans[][3] = {/* batch, threads, trace */
                                        {1, 2, 0},
                                        {2, 1, 1},
                                        {3, 3, 0},
                                        {5, 2, 1},
                                        {5, 3, 0}};
    float one[LOGITS], other[LOGITS];
    if (!pm_run(m, policy, 1, 1, 0, one)) return 0;
    for (size_t p = FIRST_PLAN; p < sizeof plans / sizeof *plans; p++) {
        char what[256];
        snprintf(what, sizeof what, "%s, batch %u, %u threads, trace %u", policy, plans[p][0],
                 plans[p][1], plans[p][2]);
        assert_true(pm_run(m, policy, plans[p][0], plans[p][1], plans[p][2], other));
        pm_same(what, one, other);
    }
    return 1;
}

static void test_same_bits(void **state)
{
    (void)state;
    int ran = 0;
    for (size_t i = 0; i < PM_POLICIES; i++) {
        assert_true(check_same_bits(vit, pm_policies[i]));
        if (i % EVERY == 0) assert_true(check_same_bits(distilled, pm_policies[i]));
        if (i % EVERY == EVERY / 2) ran += check_same_bits(pooled, pm_policies[i]);
    }
    assert_true(ran >= PM_POLICIES / EVERY / 2); /* the others need a class token */
}

static void test_same_bits_scalar(void **state)
{
    (void)state;
    renyi_model *m = pm_open(PM_VIT, NULL, RENYI_CPU_SCALAR);
    for (size_t i = 0; i < PM_POLICIES; i += 3 * EVERY) check_same_bits(m, pm_policies[i]);
    renyi_model_free(m);
}

/* ---- traces --------------------------------------------------------------------------------- */

/* Every row continues one token or is the fused one; the prefix stays in front; no token is in two
 * rows. Returns the sum of the sizes, in patches. */
static double check_cut(const renyi_cut *c)
{
    uint8_t seen[PM_PATCHES + 2] = {0}, place[PM_PATCHES] = {0};
    double size = 0.0;
    for (uint32_t r = 0; r < c->n_out; r++) {
        const uint32_t j = c->source[r];
        if (r >= c->n_prefix) size += (double)c->size[r];
        if (j == RENYI_NONE) {
            assert_int_equal(r, c->n_out - 1);
            continue;
        }
        assert_true(j < c->n_in && c->target[j] == r);
        assert_false(seen[j]++);
        if (r < c->n_prefix) assert_int_equal(j, r);
    }
    for (uint32_t j = 0; j < c->n_in; j++) {
        assert_true(c->target[j] == RENYI_NONE || c->target[j] < c->n_out);
        assert_true(c->rescued[j] == 0 || seen[j]);
        if (j < c->n_prefix) {
            assert_int_equal(c->position[j], RENYI_PREFIX);
            assert_true(isnan(c->score[j]));
        } else {
            assert_true(c->target[j] == RENYI_NONE || c->target[j] >= c->n_prefix);
            assert_in_range(c->position[j] + 2, 0, PM_PATCHES + 1);
            assert_true(c->position[j] != RENYI_PREFIX);
        }
        if (c->position[j] >= 0) assert_false(place[c->position[j]]++);
    }
    return size;
}

static int merges(const char *policy)
{
    return strstr(policy, "merge") || strstr(policy, "tome") || strstr(policy, "mosaic") ||
           strstr(policy, "tca");
}

static void check_traces(const renyi_model *m, const char *policy)
{
    float logits[LOGITS];
    renyi_cost cost;
    renyi_layer_cost layers[PM_BLOCKS];
    renyi_session *s = pm_session(m, policy, PM_IMAGES, 2, 1);
    if (!s) return;
    assert_ok(renyi_run_pixels(s, pm_pixels(), PM_IMAGES, logits, err));
    assert_ok(renyi_policy_cost(m, NULL, policy, &cost, layers, PM_BLOCKS, err));
    const int adapts = strncmp(policy, "ats", 3) == 0 || strstr(policy, "likeness=");
    for (uint32_t image = 0; image < PM_IMAGES; image++) {
        uint32_t tokens = layers[0].tokens_in;
        for (size_t i = 0; i < renyi_session_cut_count(s); i++) {
            renyi_cut c;
            assert_ok(renyi_session_cut(s, image, i, &c, err));
            assert_int_equal(c.n_in, tokens);
            tokens = c.n_out;
            const double size = check_cut(&c);
            if (!merges(policy)) assert_true(size == c.n_out - c.n_prefix);
            if (!adapts) assert_int_equal(c.n_out, layers[c.block].tokens_out);
        }
        if (!adapts) assert_int_equal(tokens, cost.total.tokens_out);
    }
    renyi_session_free(s);
}

static void test_traces(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_POLICIES; i++) {
        check_traces(vit, pm_policies[i]);
        check_traces(distilled, pm_policies[i]);
        check_traces(pooled, pm_policies[i]);
    }
}

/* Merging loses no patch: the sizes of all rows add up to the number of patches. */
static void test_merging_keeps_all(void **state)
{
    (void)state;
    static const char *const merging[] = {"tome r=5",
                                          "mosaic keep=0.6 layers=1,4,7,11",
                                          "mosaic keep=0.8 layers=2-9 alpha=1 omega=1 beta=0.5",
                                          "mosaic keep=0.8 layers=2-9 memory=0.5",
                                          "mosaic keep=0.6 layers=0-9 likeness=0.3 memory=0.5",
                                          "evit keep=0.6 layers=0,3,6 metric=cls reduce=merge",
                                          "naive p=9 layers=0-5 metric=col reduce=merge at=end"};
    for (size_t k = 0; k < sizeof merging / sizeof *merging; k++) {
        float logits[LOGITS];
        renyi_session *s = pm_session(vit, merging[k], PM_IMAGES, 2, 1);
        assert_ok(renyi_run_pixels(s, pm_pixels(), PM_IMAGES, logits, err));
        for (uint32_t image = 0; image < PM_IMAGES; image++)
            for (size_t i = 0; i < renyi_session_cut_count(s); i++) {
                renyi_cut c;
                assert_ok(renyi_session_cut(s, image, i, &c, err));
                assert_true(check_cut(&c) == PM_PATCHES);
            }
        renyi_session_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_removed),   cmocka_unit_test(test_limits_of_correcting),
        cmocka_unit_test(test_equal_texts),       cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_same_bits_scalar),  cmocka_unit_test(test_traces),
        cmocka_unit_test(test_merging_keeps_all),
    };
    return cmocka_run_group_tests(tests, open_models, free_models);
}
