/* test_golden_quantize.c - real models as calibrated 8-bit files against f32, on images that the
 * calibration has not seen. Takes some of the images; RENYI_TEST_FULL=1 takes all and requires more
 * equal answers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/shared_files.h"
#include "renyi/quantize.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

#ifdef RENYI_SANITIZED
enum {
    SHARE = 125,
    CALIBRATION = 4
}; /* enough to find memory faults; the plain build checks the answers */
#define ENOUGH_ANSWERS 0.25
#else
enum { SHARE = 12, CALIBRATION = 32 };
#define ENOUGH_ANSWERS 0.85
#endif

static uint32_t share(void) { return getenv("RENYI_TEST_FULL") ? 1 : SHARE; }

static renyi_model *open_model(const char *path, renyi_dtype dtype)
{
    const renyi_options o = {.struct_size = sizeof o, .dtype = dtype};
    renyi_error err = {0};
    renyi_model *m;
    if (renyi_model_open(&m, path, &o, &err)) fail_msg("%s", err.message);
    return m;
}

static renyi_dataset *open_images(const char *path, const renyi_model *m, renyi_dataset_options o)
{
    renyi_error err = {0};
    renyi_dataset *d;
    o.struct_size = sizeof o;
    if (renyi_dataset_open(&d, path, m, &o, &err)) fail_msg("%s", err.message);
    return d;
}

/* Quantizes the model at `from`, calibrated on images of another set. */
static void quantize_model(const char *from, const char *to, const char *images)
{
    renyi_model *m = open_model(from, RENYI_DTYPE_F32);
    renyi_dataset *data = open_images(
        images, m, (renyi_dataset_options){.unlabelled = 1, .shuffle = 1, .limit = CALIBRATION});
    renyi_calibration *c = NULL;
    renyi_quantize_result result;
    renyi_error err = {0};
    renyi_status st = renyi_calibration_new(&c, m, NULL, &err);
    if (!st) st = renyi_calibration_photos(c, data, NULL, &err);
    const renyi_quantize_options o = {.struct_size = sizeof o, .calibration = c};
    if (!st) st = renyi_model_quantize(from, to, &o, &result, &err);
    if (st) fail_msg("%s", err.message);
    assert_int_equal(result.n_quantized, 48);
    assert_in_range(result.n_ranges, 40, 48);
    printf("%s: %u of 48 products have a range\n", from, result.n_ranges);
    renyi_calibration_free(c);
    renyi_dataset_free(data);
    renyi_model_free(m);
}

static renyi_eval *evaluate(const renyi_model *m, const renyi_dataset *data)
{
    const renyi_eval_options o = {.struct_size = sizeof o};
    renyi_error err = {0};
    renyi_eval *e;
    if (renyi_eval_new(&e, m, data, &o, &err) || renyi_eval_run(e, &err))
        fail_msg("%s", err.message);
    return e;
}

static void compare(const char *name, renyi_model *const m[2], const renyi_dataset *data)
{
    renyi_eval *e[2] = {evaluate(m[0], data), evaluate(m[1], data)};
    renyi_eval_result r[2];
    uint64_t same = 0, only[2] = {0, 0};
    for (int side = 0; side < 2; side++) renyi_eval_get_result(e[side], 0, &r[side]);
    for (size_t i = 0; i < r[0].images; i++) {
        renyi_eval_sample a, b;
        assert_true(renyi_eval_get_sample(e[0], 0, i, &a));
        assert_true(renyi_eval_get_sample(e[1], 0, i, &b));
        same += a.prediction == b.prediction;
        only[0] += a.is_top1 && !b.is_top1;
        only[1] += b.is_top1 && !a.is_top1;
    }
    printf("%s: %.2f %% against %.2f %% in f32, %llu of %llu answers the same, p %.3f\n", name,
           r[1].top1, r[0].top1, (unsigned long long)same, (unsigned long long)r[0].images,
           renyi_stats_mcnemar(only[0], only[1]));
    assert_true((double)same >= (share() == 1 ? 0.94 : ENOUGH_ANSWERS) * (double)r[0].images);
    renyi_eval_free(e[0]), renyi_eval_free(e[1]);
}

static void check(const char *folder)
{
    char rel[256], from[4096], to[4096];
    snprintf(rel, sizeof rel, "models/%s", folder);
    const char *path = shared_path(rel), *images = shared_path("data/imagenet-val-500"),
               *others = shared_path("data/imagenette-176/val");
    if (!path || !images || !others) return;
    snprintf(from, sizeof from, "%s", path);
    snprintf(to, sizeof to, "%s/golden_%ld.safetensors", RENYI_BINARY_DIR, (long)getpid());
    quantize_model(from, to, others);
    renyi_model *m[2] = {open_model(from, RENYI_DTYPE_F32), open_model(to, RENYI_DTYPE_DEFAULT)};
    renyi_dataset *data = open_images(images, m[0], (renyi_dataset_options){.n_shards = share()});
    compare(folder, m, data);
    renyi_dataset_free(data);
    renyi_model_free(m[0]), renyi_model_free(m[1]);
    unlink(to);
}

static void calibrated_vit(void **state)
{
    (void)state;
    check("vit_tiny_patch16_224.augreg_in21k_ft_in1k");
}

static void calibrated_deit(void **state)
{
    (void)state;
    check("deit_tiny_patch16_224.fb_in1k");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(calibrated_vit),
                                       cmocka_unit_test(calibrated_deit)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
