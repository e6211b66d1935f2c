/* test_train_settings.c - the table of settings: defaults, text and back, recipes, errors,
 * and the metadata of checkpoints.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/half.h"
#include "base/json.h"
#include "renyi/train.h"
#include "train/files/run_state.h"
#include "train/settings/settings_use.h"

#include <math.h>
#include <string.h>

#include "test.h"

static void test_defaults_read_back(void **state)
{
    renyi_train_options opt, again;
    renyi_error err = {0};
    (void)state;
    renyi_train_defaults(&opt);
    again = opt;
    for (size_t i = 0; i < renyi_train_setting_count(); i++) {
        char text[RENYI_SETTING_MAX], next[RENYI_SETTING_MAX];
        renyi_train_setting s;
        renyi_train_get_setting(i, &s);
        renyi_train_show(&opt, i, text, sizeof text);
        if (strcmp(s.name, "recipe") == 0) continue;
        if (renyi_train_set(&again, s.name, text, &err)) fail_msg("%s", err.message);
        renyi_train_show(&again, i, next, sizeof next);
        assert_string_equal(text, next);
    }
    assert_true(opt.epochs == 30 && opt.batch == 64 && opt.betas[1] == 0.999);
    assert_true(renyi_train_setting_count() <= 128); /* bits of `given` */
}

/* Files of older runs have these names. */
static void test_old_names(void **state)
{
    static const char *const names[][2] = {{"depth", "blocks"}, {"img-size", "image-size"}};
    ry_settings_owned s = {0};
    renyi_error err = {0};
    renyi_train_options opt;
    (void)state;
    renyi_train_defaults(&opt);
    assert_int_equal(renyi_train_set(&opt, "depth", "3", &err), RENYI_OK);
    assert_int_equal(opt.depth, 3);
    json_t *object = ry_settings_json(&opt);
    for (size_t i = 0; i < 2; i++) {
        json_t *value = json_object_get(object, names[i][1]);
        assert_non_null(value);
        assert_int_equal(json_object_set(object, names[i][0], value), 0);
        assert_int_equal(json_object_del(object, names[i][1]), 0);
    }
    if (ry_settings_copy(&s, &opt, NULL, &err)) fail_msg("%s", err.message);
    s.opt.depth = 0;
    if (ry_settings_from_json(&s, object, "old.json", NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(s.opt.depth, 3);
    ry_settings_free(&s, NULL);
    json_decref(object);
}

static void test_faults_are_named(void **state)
{
    static const struct {
        const char *name, *text, *says;
    } faults[] = {{"lr", "fast", "lr: 'fast' is not a number"},
                  {"lr", "-1", "from 0 to 1000"},
                  {"lr", "1e999", "lr"},
                  {"betas", "0.9", "two numbers"},
                  {"betas", "0.9,0.9,0.9", "two numbers"},
                  {"epochs", "0", "from 1"},
                  {"epochs", "3.5", "whole number"},
                  {"distill", "mild", "soft|hard"},
                  {"exif", "1", "on, off"},
                  {"colour", "red", "no setting 'colour'"},
                  {"recipe", "cake", "paper-evit, paper-evit-ours, small, finetune"}};
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        renyi_train_options opt;
        renyi_error err = {0};
        renyi_train_defaults(&opt);
        assert_int_equal(renyi_train_set(&opt, faults[i].name, faults[i].text, &err),
                         RENYI_ERR_ARG);
        if (!strstr(err.message, faults[i].says)) fail_msg("%s", err.message);
    }
}

/* The numbers of the paper's fine-tuning (docs/TRAINING.md). */
static void test_paper_recipe(void **state)
{
    renyi_train_options opt;
    renyi_error err = {0};
    (void)state;
    renyi_train_defaults(&opt);
    assert_int_equal(renyi_train_set(&opt, "epochs", "5", &err), RENYI_OK); /* given: it stays */
    assert_int_equal(renyi_train_set(&opt, "recipe", "paper-evit", &err), RENYI_OK);
    assert_true(opt.epochs == 5 && opt.batch == 2048 && opt.repeats == 3 && opt.drop_path == 0);
    assert_true(opt.weight_decay == 1e-6 && opt.ema == 0.99996 && opt.clip == 0);
    assert_string_equal(opt.prune, "paper:evit-036");
    opt.epochs = 30;
    const ry_lr_schedule lr = ry_settings_lr(&opt);
    const ry_moment first = {0, 5, 625}, second = {1, 5, 625}, third = {2, 0, 625};
    assert_true(fabs(ry_lr_at(&lr, first) - 8e-5) < 1e-15);
    assert_true(fabs(ry_lr_at(&lr, second) - 8e-5) < 1e-15);
    assert_true(fabs(ry_lr_at(&lr, third) -
                     (2e-6 + 0.5 * (8e-5 - 2e-6) * (1 + cos(3.14159265358979323846 / 30)))) <
                1e-15);
    for (size_t i = 0; i < renyi_recipe_count(); i++) { /* each can be applied */
        renyi_recipe r;
        renyi_recipe_get(i, &r);
        assert_int_equal(renyi_train_recipe(&opt, r.name, &err), RENYI_OK);
    }
}

/* The recipes of Table 13's two columns differ in the policy, and both policies are presets. */
static void test_paper_recipes_differ_in_policy(void **state)
{
    renyi_train_options cls, ours;
    char a[RENYI_POLICY_MAX], b[RENYI_POLICY_MAX];
    (void)state;
    renyi_train_defaults(&cls);
    renyi_train_defaults(&ours);
    assert_int_equal(renyi_train_recipe(&cls, "paper-evit", NULL), RENYI_OK);
    assert_int_equal(renyi_train_recipe(&ours, "paper-evit-ours", NULL), RENYI_OK);
    for (size_t i = 0; i < renyi_train_setting_count(); i++) {
        renyi_train_setting s;
        renyi_train_get_setting(i, &s);
        renyi_train_show(&cls, i, a, sizeof a);
        renyi_train_show(&ours, i, b, sizeof b);
        const int may_differ = strcmp(s.name, "prune") == 0 || strcmp(s.name, "recipe") == 0;
        if (!may_differ) assert_string_equal(a, b);
    }
    assert_int_equal(renyi_policy_check(cls.prune, NULL, a, sizeof a, NULL), RENYI_OK);
    assert_int_equal(renyi_policy_check(ours.prune, NULL, b, sizeof b, NULL), RENYI_OK);
    assert_non_null(strstr(a, "evit keep=0.7 layers=0,3,6 metric=cls reduce=fuse"));
    assert_non_null(strstr(b, "evit keep=0.7 layers=0,3,6 metric=correct n=2 c=0.8"));
}

static void test_randaugment_words(void **state)
{
    renyi_train_options opt;
    renyi_error err = {0};
    ry_augment a;
    (void)state;
    renyi_train_defaults(&opt);
    opt.randaugment = "rand-m7-mstd0.3-n3-p0.8-inc1";
    assert_int_equal(ry_settings_augment(&a, &opt, &err), RENYI_OK);
    assert_true(a.rand_ops == 3 && a.rand_magnitude == 7 && a.rand_std == 0.3 &&
                a.rand_prob == 0.8);
    opt.randaugment = "none";
    assert_int_equal(ry_settings_augment(&a, &opt, &err), RENYI_OK);
    assert_int_equal(a.rand_ops, 0);
    static const char *const wrong[] = {"m11", "m9-", "", "n0", "n2.5", "inc0", "w1", "m9--n2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        opt.randaugment = wrong[i];
        assert_int_equal(ry_settings_augment(&a, &opt, &err), RENYI_ERR_ARG);
    }
}

static void test_state_round_trip(void **state)
{
    renyi_train_options opt;
    ry_settings_owned s = {0};
    ry_run_state a, b;
    renyi_error err = {0};
    char *text = NULL;
    (void)state;
    renyi_train_defaults(&opt);
    opt.lr = 0.1 + 0.2; /* needs 17 digits */
    opt.data = "photos of me";
    ry_run_state_begin(&a, 0xfedcba9876543210u);
    a.loss_sum = 1.0 / 3;
    a.step = 12345;
    assert_int_equal(ry_json_text(&text, ry_run_state_json(&a, &opt), NULL, &err), RENYI_OK);
    opt.lr = 1;
    opt.data = NULL;
    assert_int_equal(ry_settings_copy(&s, &opt, NULL, &err), RENYI_OK);
    assert_int_equal(ry_run_state_parse(&b, &s, text, strlen(text), "test", NULL, &err), RENYI_OK);
    assert_true(b.step == a.step && b.loss_sum == a.loss_sum && b.fingerprint == a.fingerprint);
    assert_true(isnan(b.best_top1) && s.opt.lr == 0.1 + 0.2);
    assert_string_equal(s.opt.data, "photos of me");
    char *at = strstr(text, "\"step\":12345");
    assert_non_null(at);
    memcpy(at, "\"step\":\"234\"", 12);
    assert_int_equal(ry_run_state_parse(&b, &s, text, strlen(text), "test", NULL, &err),
                     RENYI_ERR_FORMAT);
    assert_string_equal(err.message, "test: \"step\": a whole number expected");
    ry_settings_free(&s, NULL);
    ry_free(NULL, text);
}

static void test_half(void **state)
{
    (void)state;
    assert_int_equal(ry_half_of(1.0f), 0x3c00);
    assert_int_equal(ry_half_of(-2.0f), 0xc000);
    assert_int_equal(ry_half_of(65504.0f), 0x7bff);
    assert_int_equal(ry_half_of(65519.0f), 0x7bff);
    assert_int_equal(ry_half_of(0x1p-24f), 1);
    assert_int_equal(ry_half_of(0x1p-25f), 0);               /* a tie, to even */
    assert_int_equal(ry_half_of(0x1.8p-24f), 2);             /* likewise */
    assert_int_equal(ry_half_of(0x1.ffep-15f), 0x400);       /* rounds up to the first normal */
    assert_int_equal(ry_half_of(1.0f + 0x1p-11f), 0x3c00);   /* a tie, to even */
    assert_int_equal(ry_half_of(1.0f + 0x1.8p-10f), 0x3c02); /* likewise */
    assert_int_equal(ry_half_of(2.0f - 0x1p-12f), 0x4000);   /* the carry goes up */
    assert_int_equal(ry_half_of(-0.0f), 0x8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_read_back),
        cmocka_unit_test(test_old_names),
        cmocka_unit_test(test_faults_are_named),
        cmocka_unit_test(test_paper_recipe),
        cmocka_unit_test(test_paper_recipes_differ_in_policy),
        cmocka_unit_test(test_randaugment_words),
        cmocka_unit_test(test_state_round_trip),
        cmocka_unit_test(test_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
