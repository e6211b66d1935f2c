/* test_learner.c - the public training step: it learns, gives the same bits for any number of
 * threads and with recomputed activations, and names what is wrong.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "renyi/train.h"

#include "fixtures/test_heap.h"
#include "fixtures/train_golden.h"

enum { BATCH = 6, CLASSES = 5, PIXELS = 3 * 20 * 20, STEPS = 8 };

static const uint32_t LABELS[BATCH] = {0, 1, 2, 3, 4, 0};

static renyi_learner_options options_of(uint32_t threads, const char *policy)
{
    return (renyi_learner_options){.struct_size = sizeof(renyi_learner_options),
                                   .micro_batch = 4,
                                   .n_threads = threads,
                                   .policy = policy,
                                   .weight_decay = 0.05,
                                   .clip = 1.0,
                                   .smoothing = 0.1};
}

/* Some steps on one batch; the losses, and the logits afterwards. */
static void learn(const char *model, const renyi_learner_options *opt, double losses[STEPS],
                  float logits[BATCH * CLASSES])
{
    static float chw[BATCH * PIXELS];
    renyi_learner *l = NULL;
    golden_noise(chw, BATCH * PIXELS, 7);
    assert_ok(renyi_learner_new(&l, golden_model(model), opt, err));
    for (int i = 0; i < STEPS; i++)
        assert_ok(renyi_learner_step(l, chw, LABELS, BATCH, 2e-3, &losses[i], err));
    assert_ok(renyi_learner_forward(l, chw, BATCH, logits, err));
    renyi_learner_free(l);
}

static void test_learns(void **state)
{
    static const char *const models[] = {"class", "distilled", "mean"};
    static const char *const policies[] = {NULL, "mosaic keep=0.7 layers=0", NULL};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        double one[STEPS], two[STEPS];
        float a[BATCH * CLASSES], b[BATCH * CLASSES];
        renyi_learner_options opt = options_of(1, policies[i]);
        learn(models[i], &opt, one, a);
        assert_true(one[STEPS - 1] < 0.9 * one[0]);
        opt.n_threads = 2;
        opt.checkpoint_activations = 1;
        learn(models[i], &opt, two, b);
        assert_memory_equal(one, two, sizeof one);
        assert_memory_equal(a, b, sizeof a);
    }
}

static void test_info(void **state)
{
    const renyi_learner_options opt = options_of(1, "evit keep=0.5 layers=0");
    renyi_learner *l = NULL, *dense = NULL;
    renyi_learner_info info, full;
    (void)state;
    assert_ok(renyi_learner_new(&l, golden_model("class"), &opt, err));
    assert_ok(renyi_learner_new(&dense, golden_model("class"), NULL, err));
    renyi_learner_get_info(l, &info);
    renyi_learner_get_info(dense, &full);
    assert_int_equal(info.n_classes, CLASSES);
    assert_int_equal(info.n_tokens, 26);
    assert_int_equal(info.micro_batch, 4);
    assert_true(full.micro_batch >= 32);
    assert_true(info.macs_forward < full.macs_forward);
    assert_true(info.bytes_activations && info.bytes_parameters >= 6 * 4 * info.n_params);
    assert_non_null(strstr(info.policy, "evit keep=0.5 layers=0 metric=cls"));
    assert_string_equal(full.policy, "none");
    renyi_learner_free(l);
    renyi_learner_free(dense);
    renyi_learner_free(NULL);
}

static void assert_refused(const char *path, const renyi_learner_options *opt, const char *word)
{
    renyi_learner *l = NULL;
    renyi_error err = {0};
    assert_int_not_equal(renyi_learner_new(&l, path, opt, &err), RENYI_OK);
    assert_null(l);
    if (!strstr(err.message, word)) fail_msg("\"%s\" is not in: %s", word, err.message);
}

static void test_errors(void **state)
{
    renyi_learner_options opt = options_of(1, "evit keep=0.5 layers=3");
    static float chw[PIXELS];
    const uint32_t label = CLASSES;
    renyi_learner *l = NULL;
    renyi_error err = {0};
    (void)state;
    assert_refused(golden_model("class"), &opt, "layer 3");
    opt = options_of(1, "ats keep=0.5 layers=1");
    assert_refused(golden_model("class"), &opt, "ats");
    opt = options_of(1, NULL);
    assert_refused(golden_model("absent"), &opt, "absent");
    opt.smoothing = 1.0;
    assert_refused(golden_model("class"), &opt, "smoothing");
    opt.struct_size = 9999;
    assert_refused(golden_model("class"), &opt, "struct_size");
    opt = options_of(1, NULL);
    assert_ok(renyi_learner_new(&l, golden_model("class"), &opt, err));
    assert_int_equal(renyi_learner_step(l, chw, &label, 1, 1e-3, NULL, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "5 classes"));
    renyi_learner_free(l);
}

static void test_out_of_memory(void **state)
{
    renyi_status status = RENYI_ERR_NOMEM;
    (void)state;
    for (size_t fail_at = 1; status == RENYI_ERR_NOMEM; fail_at++) {
        test_heap heap = {.fail_at = fail_at};
        renyi_learner_options opt = options_of(2, "evit keep=0.5 layers=0");
        renyi_learner *l = NULL;
        renyi_error err = {0};
        opt.allocator = test_heap_of(&heap);
        status = renyi_learner_new(&l, golden_model("class"), &opt, &err);
        assert_true(status == RENYI_OK || status == RENYI_ERR_NOMEM);
        assert_int_equal(status == RENYI_OK, l != NULL);
        renyi_learner_free(l);
        assert_int_equal(heap.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_learns), cmocka_unit_test(test_info),
                                       cmocka_unit_test(test_errors),
                                       cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
