/* test_likeness.c - mosaic with likeness, where the number of tokens depends on the image: logits
 * and counts of the float64 reference (tools/ref/train_tiny.py), the bounds of a cut, its costs,
 * and a single threshold at its limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/train_golden.h"

enum { IMAGES = 4, CLASSES = 5, PIXELS = 3 * 20 * 20, PATCHES = 25, BLOCKS = 3 };

static float images[IMAGES * PIXELS];

static renyi_model *open_golden(void)
{
    renyi_model *m;
    assert_ok(renyi_model_open(&m, golden_model("class"), NULL, err));
    return m;
}

/* Runs all images, `batch` at a time; returns mean MACs of an image. tokens: [IMAGES] or NULL */
static double run(const renyi_model *m, const char *policy, uint32_t batch, float *logits,
                  uint32_t *tokens)
{
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch = batch,
                                       .n_threads = 2,
                                       .policy = policy,
                                       .trace = tokens != NULL};
    renyi_session *s;
    double macs = 0.0;
    assert_ok(renyi_session_new(&s, m, &opt, err));
    for (uint32_t i = 0; i < IMAGES; i += batch) {
        assert_ok(
            renyi_run_tensor(s, images + i * PIXELS, batch, logits + (size_t)i * CLASSES, err));
        macs += renyi_session_last_macs(s) * batch / IMAGES;
        for (uint32_t k = 0; tokens && k < batch; k++) {
            renyi_cut cut;
            assert_ok(renyi_session_cut(s, k, renyi_session_cut_count(s) - 1, &cut, err));
            tokens[i + k] = cut.n_out;
        }
    }
    renyi_session_free(s);
    return macs;
}

static void test_reference(void **state)
{
    (void)state;
    ry_tensors *set;
    float logits[IMAGES * CLASSES], alone[IMAGES * CLASSES];
    uint32_t tokens[IMAGES];
    assert_ok(
        ry_safetensors_open(&set, golden_path("counts/case_mosaic_likeness"), NULL, NULL, err));
    const char *policy = ry_tensors_meta(set, "policy");
    float *want = golden_floats(set, "logits");
    const int32_t *left = ry_tensors_find(set, "tokens")->data;
    renyi_model *m = open_golden();
    run(m, policy, IMAGES, logits, tokens);
    for (uint32_t i = 0; i < IMAGES; i++) assert_int_equal(tokens[i], left[i]);
    for (size_t i = 0; i < IMAGES * CLASSES; i++)
        assert_true(fabs((double)logits[i] - (double)want[i]) < 2e-5);
    assert_int_not_equal(left[0], left[1]);

    /* In a batch and alone, with a trace and without: the same bits and the same mean of MACs. */
    const double macs = run(m, policy, IMAGES, logits, NULL);
    assert_true(fabs(run(m, policy, 1, alone, NULL) / macs - 1.0) < 1e-12);
    assert_memory_equal(alone, logits, sizeof logits);
    free(want);
    ry_tensors_free(set);
    renyi_model_free(m);
}

/* likeness=0.0001 and a lowest count of 1: what has a positive cosine goes. likeness=1: nothing
 * goes, and logits are the dense model's. */
static void test_limits(void **state)
{
    (void)state;
    renyi_model *m = open_golden();
    float dense[IMAGES * CLASSES], logits[IMAGES * CLASSES];
    uint32_t tokens[IMAGES];
    renyi_cost cost;
    run(m, "none", IMAGES, dense, NULL);
    const double most = run(m, "mosaic keep=0.1 layers=1 likeness=1", IMAGES, logits, tokens);
    for (uint32_t i = 0; i < IMAGES; i++) assert_int_equal(tokens[i], PATCHES + 1);
    for (size_t i = 0; i < IMAGES * CLASSES; i++)
        assert_true(fabs((double)logits[i] - (double)dense[i]) < 1e-5);
    assert_ok(
        renyi_policy_cost(m, NULL, "mosaic keep=0.1 layers=1 likeness=1", &cost, NULL, 0, err));
    assert_int_equal(cost.total.tokens_out, PATCHES + 1); /* the plan holds the most */
    const double macs =
        run(m, "mosaic keep=0.1 layers=0,1 likeness=0.0001", IMAGES, logits, tokens);
    for (uint32_t i = 0; i < IMAGES; i++) assert_in_range(tokens[i], 1 + 1, PATCHES - 5);
    assert_true(macs < 0.9 * most);
    /* keep is the least: of 25 patches 20, of 20 16, if all that may go are alike */
    run(m, "mosaic keep=0.8 layers=0,1 likeness=0.0001", IMAGES, logits, tokens);
    for (uint32_t i = 0; i < IMAGES; i++) assert_int_equal(tokens[i], 1 + 16);
    renyi_model_free(m);
}

/* Training needs one number of tokens for all images. */
static void test_not_in_training(void **state)
{
    (void)state;
    ry_policy policy;
    renyi_error why = {0};
    const ry_net_options opt = {.micro_batch = IMAGES, .n_threads = 1};
    ry_net *net = golden_net("class", &opt);
    assert_ok(ry_policy_for(&policy, "mosaic layers=1 likeness=0.5", ry_net_config(net),
                            ry_net_patches(net), err));
    assert_int_equal(ry_net_prune(net, &policy, &why), RENYI_ERR_UNSUPPORTED);
    assert_non_null(strstr(why.message, "train mosaic without likeness"));
    ry_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reference),
                                       cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_not_in_training)};
    golden_noise(images, IMAGES * PIXELS, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
