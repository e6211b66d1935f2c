/* test_golden_dtype.c - real models in fewer bits against f32 on real images: the tokens that a cut
 * keeps, and the answers. Takes some of the images; RENYI_TEST_FULL=1 takes all 500 and also checks
 * the documented accuracy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/shared_files.h"
#include "renyi/eval.h"

#include <math.h>
#include <string.h>

#include "test.h"

/* 97 % of the tokens are documented; fewer for a sample of four images. */
#ifdef RENYI_SANITIZED
enum { SHARE = 125 };
#define ENOUGH_TOKENS 0.9
#define ENOUGH_ANSWERS 0.5
#else
enum { SHARE = 10 };
#define ENOUGH_TOKENS 0.97
#define ENOUGH_ANSWERS 0.9
#endif
enum { N_POLICIES = 2 };
static const char *const policies[N_POLICIES] = {"none", "evit keep=0.7 layers=3,6,9 metric=col"};

static uint32_t share(void) { return getenv("RENYI_TEST_FULL") ? 1 : SHARE; }

static renyi_model *open_model(const char *path, renyi_dtype dtype)
{
    const renyi_options o = {.struct_size = sizeof o, .dtype = dtype};
    renyi_error err = {0};
    renyi_model *m;
    if (renyi_model_open(&m, path, &o, &err)) fail_msg("%s", err.message);
    return m;
}

static renyi_dataset *open_images(const char *path, const renyi_model *m)
{
    const renyi_dataset_options o = {.struct_size = sizeof o, .n_shards = share()};
    renyi_error err = {0};
    renyi_dataset *d;
    if (renyi_dataset_open(&d, path, m, &o, &err)) fail_msg("%s", err.message);
    return d;
}

/* ---- tokens -------------------------------------------------------------------------------- */

typedef struct kept {
    uint64_t same, all;
} kept;

static int holds(const renyi_cut *c, int32_t patch)
{
    for (uint32_t r = 0; r < c->n_out; r++)
        if (c->source[r] != RENYI_NONE && c->position[c->source[r]] == patch) return 1;
    return 0;
}

/* Patches that both a and b keep, after each cut. */
static void compare_cuts(const renyi_session *a, const renyi_session *b, kept *k)
{
    renyi_error err = {0};
    for (size_t i = 0; i < renyi_session_cut_count(a); i++) {
        renyi_cut x, y;
        assert_int_equal(renyi_session_cut(a, 0, i, &x, &err), RENYI_OK);
        assert_int_equal(renyi_session_cut(b, 0, i, &y, &err), RENYI_OK);
        for (uint32_t r = 0; r < x.n_out; r++) {
            if (x.source[r] == RENYI_NONE || x.position[x.source[r]] < 0) continue;
            k[i].all++;
            k[i].same += (uint64_t)holds(&y, x.position[x.source[r]]);
        }
    }
}

static renyi_session *open_session(const renyi_model *m)
{
    const renyi_session_options o = {
        .struct_size = sizeof o, .policy = policies[1], .n_threads = 2, .trace = 1};
    renyi_error err = {0};
    renyi_session *s;
    if (renyi_session_new(&s, m, &o, &err)) fail_msg("%s", err.message);
    return s;
}

static void check_tokens(const char *name, renyi_model *const m[2], const renyi_dataset *data)
{
    renyi_session *s[2] = {open_session(m[0]), open_session(m[1])};
    renyi_dataset_info images;
    renyi_model_info info;
    renyi_error err = {0};
    kept k[3] = {{0, 0}, {0, 0}, {0, 0}}, sum = {0, 0};
    renyi_dataset_get_info(data, &images);
    renyi_model_get_info(m[0], &info);
    uint8_t *pixels = malloc((size_t)3 * info.image_size * info.image_size);
    float *logits = malloc(info.n_classes * sizeof *logits);
    for (size_t i = 0; i < images.n_images; i++) {
        renyi_dataset_image image;
        renyi_dataset_get_image(data, i, &image);
        if (renyi_image_load_pixels(pixels, image.path, &info.preprocess, NULL, &err))
            fail_msg("%s", err.message);
        for (int side = 0; side < 2; side++)
            assert_int_equal(renyi_run_pixels(s[side], pixels, 1, logits, &err), RENYI_OK);
        compare_cuts(s[0], s[1], k);
    }
    for (int i = 0; i < 3; i++) {
        printf("%s: cut %d: %.2f %% of %llu kept tokens are the same\n", name, i,
               100.0 * (double)k[i].same / (double)k[i].all, (unsigned long long)k[i].all);
        sum.same += k[i].same;
        sum.all += k[i].all;
    }
    assert_true((double)sum.same >= ENOUGH_TOKENS * (double)sum.all);
    free(pixels), free(logits);
    renyi_session_free(s[0]), renyi_session_free(s[1]);
}

/* ---- answers ------------------------------------------------------------------------------- */

static renyi_eval *evaluate(const renyi_model *m, const renyi_dataset *data)
{
    const renyi_eval_options o = {
        .struct_size = sizeof o, .policies = policies, .n_policies = N_POLICIES};
    renyi_error err = {0};
    renyi_eval *e;
    if (renyi_eval_new(&e, m, data, &o, &err) || renyi_eval_run(e, &err))
        fail_msg("%s", err.message);
    return e;
}

/* points: how much the accuracy on all 500 images may differ from f32 */
static void check_answers(const char *name, renyi_model *const m[2], const renyi_dataset *data,
                          double points)
{
    renyi_eval *e[2] = {evaluate(m[0], data), evaluate(m[1], data)};
    for (uint32_t p = 0; p < N_POLICIES; p++) {
        renyi_eval_result r[2];
        uint64_t same = 0, only[2] = {0, 0};
        for (int side = 0; side < 2; side++) renyi_eval_get_result(e[side], p, &r[side]);
        for (size_t i = 0; i < r[0].images; i++) {
            renyi_eval_sample a, b;
            assert_true(renyi_eval_get_sample(e[0], p, i, &a));
            assert_true(renyi_eval_get_sample(e[1], p, i, &b));
            same += a.prediction == b.prediction;
            only[0] += a.is_top1 && !b.is_top1;
            only[1] += b.is_top1 && !a.is_top1;
        }
        printf("%s: %.2f %% against %.2f %% in f32, %llu of %llu answers the same, p %.3f; %s\n",
               name, r[1].top1, r[0].top1, (unsigned long long)same,
               (unsigned long long)r[0].images, renyi_stats_mcnemar(only[0], only[1]), r[0].policy);
        assert_true((double)same >= ENOUGH_ANSWERS * (double)r[0].images);
        if (share() == 1) assert_true(fabs(r[1].top1 - r[0].top1) <= points);
    }
    renyi_eval_free(e[0]), renyi_eval_free(e[1]);
}

/* ---- the tests ----------------------------------------------------------------------------- */

static void check_dtype(const char *folder, renyi_dtype dtype, double points)
{
    char rel[256], name[300];
    renyi_error err = {0};
    snprintf(rel, sizeof rel, "models/%s", folder);
    snprintf(name, sizeof name, "%s %s", folder, renyi_dtype_name(dtype));
    const char *path = shared_path(rel), *images = shared_path("data/imagenet-val-500");
    if (!path || !images) return;
    if (renyi_dtype_check(dtype, 0, &err)) {
        printf("%s: not here: %s\n", name, err.message);
        return;
    }
    renyi_model *m[2] = {open_model(path, RENYI_DTYPE_F32), open_model(path, dtype)};
    renyi_dataset *data = open_images(images, m[0]);
    check_tokens(name, m, data);
    check_answers(name, m, data, points);
    renyi_dataset_free(data);
    renyi_model_free(m[0]), renyi_model_free(m[1]);
}

static void check_both(renyi_dtype dtype, double points)
{
    check_dtype("vit_tiny_patch16_224.augreg_in21k_ft_in1k", dtype, points);
    check_dtype("deit_tiny_patch16_224.fb_in1k", dtype, points);
}

static void test_int8(void **state)
{
    (void)state;
    check_both(RENYI_DTYPE_INT8, 1.0);
}

static void test_bf16(void **state)
{
    (void)state;
    check_both(RENYI_DTYPE_BF16, 0.4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_int8), cmocka_unit_test(test_bf16)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
