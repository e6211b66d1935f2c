/* test_train.c - whole runs on a toy model: it learns; results do not depend on threads,
 * interruption or the size of micro-batches; frozen parameters stay; errors leave the last good
 * checkpoint.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixtures/test_heap.h"
#include "fixtures/train_fixture.h"
#include "train/run/trainer.h"

#include "formats/safetensors.h"

#include <math.h>

static void train_ok(const renyi_train_options *opt, toy_run *r)
{
    const renyi_status st = toy_train(opt, r);
    if (st) fail_msg("%s", r->err.message);
}

/* ---- learning ------------------------------------------------------------------------------ */

static void test_loss_falls(void **state)
{
    renyi_train_options opt;
    toy_run r = {0};
    (void)state;
    toy_options(&opt, &r, "falls");
    toy_set(&opt, "epochs", "8");
    toy_set(&opt, "mixup", "0");
    toy_set(&opt, "cutmix", "0");
    toy_set(&opt, "randaugment", "none");
    toy_set(&opt, "drop-path", "0");
    train_ok(&opt, &r);
    assert_int_equal(r.last, 32);
    assert_true(r.loss[31] < 0.75 * r.loss[0]);
    assert_true(r.result.is_complete && r.result.epochs == 8);
    assert_true(r.result.val.top1 >= 75.0 && r.result.best_top1 >= r.result.val.top1);
    assert_true(access(at("falls/best.safetensors"), R_OK) == 0);
    /* what was written is a model, with the folders as names of its classes */
    renyi_model *m = NULL;
    renyi_error err = {0};
    assert_int_equal(renyi_model_open(&m, at("falls/model-ema.safetensors"), NULL, &err), RENYI_OK);
    assert_string_equal(renyi_model_label(m, 2), "colour2");
    renyi_model_free(m);
}

static void test_distillation_and_pruning(void **state)
{
    renyi_train_options opt;
    toy_run a = {0}, r = {0};
    (void)state;
    toy_options(&opt, &a, "teacher");
    train_ok(&opt, &a);
    toy_options(&opt, &r, "student");
    toy_set(&opt, "epochs", "2");
    toy_set(&opt, "teacher", at("teacher/model.safetensors"));
    toy_set(&opt, "distill", "hard");
    toy_set(&opt, "features", "0.5");
    toy_set(&opt, "prune", "evit keep=0.5 layers=0,1 metric=cls fuse");
    toy_set(&opt, "shrink-epochs", "1");
    train_ok(&opt, &r);
    assert_true(isfinite(r.loss[7]) && r.result.is_complete);
    /* parameters used only in training are in the checkpoint, not in the model file */
    ry_tensors *model = NULL, *ckpt = NULL;
    renyi_error err = {0};
    assert_int_equal(ry_safetensors_open(&model, at("student/model.safetensors"), NULL, NULL, &err),
                     RENYI_OK);
    assert_int_equal(
        ry_safetensors_open(&ckpt, at("student/checkpoint.safetensors"), NULL, NULL, &err),
        RENYI_OK);
    assert_true(ry_tensors_count(ckpt) > 4 * ry_tensors_count(model));
    ry_tensors_free(model);
    ry_tensors_free(ckpt);
}

/* Tokens compared after every block, in each mode: their loss falls. */
static void test_layers(void **state)
{
    static const char *const ways[] = {"project", "direct", "forced"};
    renyi_train_options opt;
    toy_run a = {0};
    (void)state;
    toy_options(&opt, &a, "deep_teacher");
    train_ok(&opt, &a);
    for (int k = 0; k < 3; k++) {
        toy_run r = {0};
        toy_options(&opt, &r, ways[k]);
        toy_set(&opt, "seed", "9");
        toy_set(&opt, "drop-path", "0");
        toy_set(&opt, "teacher", at("deep_teacher/model.safetensors"));
        toy_set(&opt, "features", "50");
        toy_set(&opt, "features-layers", "0,1");
        toy_set(&opt, "mimic", ways[k]);
        train_ok(&opt, &r);
        assert_true(r.result.is_complete && r.loss[r.last - 1] < 0.95 * r.loss[0]);
    }
}

/* ---- the same bits ------------------------------------------------------------------------- */

static void compare(const toy_run *a, const toy_run *b, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        if (memcmp(&a->loss[i], &b->loss[i], sizeof a->loss[i]) != 0)
            fail_msg("update %d: %.17g and %.17g", (int)i + 1, a->loss[i], b->loss[i]);
}

static void test_resumed_is_uninterrupted(void **state)
{
    renyi_train_options opt;
    toy_run whole = {0}, part = {.stop_after = 5}, rest = {0};
    (void)state;
    toy_options(&opt, &whole, "whole");
    train_ok(&opt, &whole);

    toy_options(&opt, &part, "parts");
    assert_int_equal(toy_train(&opt, &part), RENYI_ERR_ABORTED);
    assert_int_equal(part.last, 5);
    renyi_train_defaults(&opt); /* all else is in the checkpoint */
    opt.out = at("parts");
    opt.resume = 1;
    opt.user = &rest;
    opt.on_step = toy_on_step;
    toy_set(&opt, "threads", "2");
    train_ok(&opt, &rest);
    assert_int_equal(rest.first, 6);
    compare(&whole, &part, 0, 5);
    compare(&whole, &rest, 5, 12);
    assert_true(same_files(at("whole/model.safetensors"), at("parts/model.safetensors")));
    assert_true(same_files(at("whole/model-ema.safetensors"), at("parts/model-ema.safetensors")));
    assert_true(same_files(at("whole/best.safetensors"), at("parts/best.safetensors")));

    /* a finished run has nothing left to do */
    toy_run none = {0};
    opt.user = &none;
    train_ok(&opt, &none);
    assert_int_equal(none.last, 0);
    assert_true(none.result.is_complete && none.result.steps == 12);
}

static void test_threads_do_not_matter(void **state)
{
    renyi_train_options opt;
    toy_run one = {0}, two = {0};
    (void)state;
    toy_options(&opt, &one, "one");
    toy_set(&opt, "epochs", "1");
    toy_set(&opt, "prune", "evit keep=0.6 layers=1 metric=col n=4");
    train_ok(&opt, &one);
    opt.user = &two;
    opt.out = at("two");
    toy_set(&opt, "threads", "2");
    toy_set(&opt, "workers", "2");
    train_ok(&opt, &two);
    compare(&one, &two, 0, 4);
    assert_true(same_files(at("one/model.safetensors"), at("two/model.safetensors")));
}

static void test_micro_batches_add_up(void **state)
{
    renyi_train_options opt;
    toy_run big = {0}, small = {0};
    (void)state;
    toy_options(&opt, &big, "big");
    toy_set(&opt, "epochs", "2");
    toy_set(&opt, "micro-batch", "8");
    train_ok(&opt, &big);
    opt.user = &small;
    opt.out = at("small");
    toy_set(&opt, "micro-batch", "4");
    train_ok(&opt, &small);
    for (int i = 0; i < 8; i++) assert_true(fabs(big.loss[i] - small.loss[i]) < 2e-4 * big.loss[i]);
}

/* ---- frozen -------------------------------------------------------------------------------- */

static int same_tensor(const ry_tensors *a, const ry_tensors *b, const char *name)
{
    const ry_tensor *x = ry_tensors_find(a, name), *y = ry_tensors_find(b, name);
    assert_true(x && y && x->bytes == y->bytes);
    return memcmp(x->data, y->data, x->bytes) == 0;
}

static void test_frozen_stays(void **state)
{
    renyi_train_options opt;
    toy_run r = {0};
    ry_tensors *before = NULL, *after = NULL;
    renyi_error err = {0};
    (void)state;
    toy_options(&opt, &r, "frozen");
    toy_set(&opt, "steps", "2");
    toy_set(&opt, "freeze", "pos_embed,*.norm2.bias");
    toy_set(&opt, "freeze-layers", "0");
    renyi_train *t = NULL;
    assert_int_equal(renyi_train_new(&t, &opt, &err), RENYI_OK);
    assert_int_equal(rename(at("frozen/model.safetensors"), at("before.safetensors")), 0);
    assert_int_equal(renyi_train_run(t, &err), RENYI_OK);
    renyi_train_free(t);
    assert_int_equal(ry_safetensors_open(&before, at("before.safetensors"), NULL, NULL, &err), 0);
    assert_int_equal(ry_safetensors_open(&after, at("frozen/model.safetensors"), NULL, NULL, &err),
                     0);
    assert_true(same_tensor(before, after, "pos_embed"));
    assert_true(same_tensor(before, after, "blocks.1.norm2.bias"));
    assert_true(same_tensor(before, after, "blocks.0.attn.qkv.weight"));
    assert_false(same_tensor(before, after, "blocks.1.attn.qkv.weight"));
    assert_false(same_tensor(before, after, "head.weight"));
    ry_tensors_free(before);
    ry_tensors_free(after);

    toy_options(&opt, &r, "frozen2");
    toy_set(&opt, "freeze", "blocks.7.*");
    assert_int_equal(toy_train(&opt, &r), RENYI_ERR_ARG);
    assert_non_null(strstr(r.err.message, "blocks.7.*"));
    assert_true(access(at("frozen2"), F_OK) != 0); /* nothing was begun */
}

/* ---- errors -------------------------------------------------------------------------------- */

static void test_nan_stops(void **state)
{
    renyi_train_options opt;
    toy_run r = {0};
    renyi_train *t = NULL;
    size_t n, m;
    (void)state;
    toy_options(&opt, &r, "nan");
    assert_int_equal(renyi_train_new(&t, &opt, &r.err), RENYI_OK);
    char *before = read_bytes(at("nan/checkpoint.safetensors"), &n);
    const ry_params *params = ry_net_params(t->net);
    for (uint32_t i = 0; i < params->n; i++)
        if (params->list[i].role == RY_HEAD_B) params->value[params->list[i].offset] = NAN;
    assert_int_equal(ry_net_update(t->net, &r.err), RENYI_OK);
    assert_true(renyi_train_run(t, &r.err) != RENYI_OK);
    assert_non_null(strstr(r.err.message, "loss is NaN in update 1"));
    assert_non_null(strstr(r.err.message, "learning rate"));
    renyi_train_free(t);
    char *after = read_bytes(at("nan/checkpoint.safetensors"), &m);
    assert_true(n == m && memcmp(before, after, n) == 0);
    free(before);
    free(after);
    opt.resume = 1;
    train_ok(&opt, &r); /* the last good checkpoint continues */
}

static void test_vanished_image(void **state)
{
    renyi_train_options opt;
    toy_run r = {0};
    renyi_train *t = NULL;
    (void)state;
    toy_options(&opt, &r, "vanished");
    assert_int_equal(renyi_train_new(&t, &opt, &r.err), RENYI_OK);
    assert_int_equal(rename(at("train/colour1/05.ppm"), at("away.ppm")), 0);
    assert_int_equal(renyi_train_run(t, &r.err), RENYI_ERR_IO);
    assert_non_null(strstr(r.err.message, "05.ppm"));
    renyi_train_free(t);
    assert_int_equal(rename(at("away.ppm"), at("train/colour1/05.ppm")), 0);
}

static void test_what_may_change(void **state)
{
    renyi_train_options opt;
    toy_run r = {.stop_after = 2};
    (void)state;
    toy_options(&opt, &r, "change");
    assert_int_equal(toy_train(&opt, &r), RENYI_ERR_ABORTED);
    assert_int_equal(toy_train(&opt, &r), RENYI_ERR_ARG); /* a new run in a used folder */
    assert_non_null(strstr(r.err.message, "--resume"));
    opt.resume = 1;
    toy_set(&opt, "lr", "1e-3");
    assert_int_equal(toy_train(&opt, &r), RENYI_ERR_ARG);
    assert_non_null(strstr(r.err.message, "lr is '0.002' in the checkpoint and '0.001' now"));
    toy_set(&opt, "lr", "2e-3"); /* the same value again is fine */
    toy_set(&opt, "data-dir", at("val"));
    assert_int_equal(toy_train(&opt, &r), RENYI_ERR_FORMAT);
    assert_non_null(strstr(r.err.message, "not those that the run began with"));
    toy_set(&opt, "data-dir", at("train"));
    toy_set(&opt, "epochs", "1");
    r.stop_after = 0;
    train_ok(&opt, &r);
    assert_int_equal(r.last, 4);
}

/* An allocation fails, later and later, until a run succeeds: an error, and nothing leaks. */
static void test_no_memory(void **state)
{
    renyi_train_options opt;
    toy_run r = {0};
    test_heap heap = {0};
    char remove[160];
    (void)state;
    toy_options(&opt, &r, "nomem");
    opt.val = NULL;
    opt.allocator = test_heap_of(&heap);
    for (size_t i = 1;; i += i < 60 ? 1 : 13) {
        renyi_train *t = NULL;
        heap = (test_heap){.fail_at = i};
        const renyi_status st = renyi_train_new(&t, &opt, &r.err);
        renyi_train_free(t);
        assert_int_equal(heap.live, 0);
        if (st == RENYI_OK && heap.calls < i) break;
        if (st && st != RENYI_ERR_NOMEM) fail_msg("allocation %zu: %s", i, r.err.message);
        if (st) assert_true(access(at("nomem"), F_OK) != 0);
        snprintf(remove, sizeof remove, "rm -rf '%s'", opt.out);
        assert_int_equal(system(remove), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss_falls),
        cmocka_unit_test(test_distillation_and_pruning),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_resumed_is_uninterrupted),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_micro_batches_add_up),
        cmocka_unit_test(test_frozen_stays),
        cmocka_unit_test(test_nan_stops),
        cmocka_unit_test(test_vanished_image),
        cmocka_unit_test(test_what_may_change),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, toys_open, toys_close);
}
