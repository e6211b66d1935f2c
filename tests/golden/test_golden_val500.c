/* test_golden_val500.c - from the JPEG files to the answer: top-1 of 500 validation photos equals
 * the reference's, photo by photo, except where the reference itself was undecided.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/mapped_file.h"
#include "renyi/renyi.h"
#include "shared.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 8, CLASSES = 1000, MAX_UNDECIDED = 2 };
#ifdef RENYI_SANITIZED
enum { EVERY = 20 }; /* photos: the plain build sees them all */
#else
enum { EVERY = 1 };
#endif
#define UNDECIDED 1e-3 /* the two best logits of the reference are closer than this */

static void decode_file(renyi_image *out, const char *folder, const char *name)
{
    char path[4096];
    ry_mapped_file file;
    renyi_error err = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (ry_mapped_file_open(&file, path, 0, &err)) fail_msg("%s", err.message);
    if (renyi_image_decode(out, file.data, file.size, NULL, &err))
        fail_msg("%s: %s", path, err.message);
    ry_mapped_file_close(&file);
}

static size_t best_class(const float *logits)
{
    size_t best = 0;
    for (size_t i = 1; i < CLASSES; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Photos that got another answer than the reference gave; each must have been undecided. */
static int count_other_answers(renyi_session *s, json_t *names, json_t *want, const char *folder)
{
    static float logits[BATCH * CLASSES];
    json_t *prediction = json_object_get(want, "prediction"),
           *margin = json_object_get(want, "margin");
    int others = 0;
    for (size_t i = 0; i < json_array_size(names); i += (size_t)BATCH * EVERY) {
        renyi_image images[BATCH];
        renyi_error err = {0};
        size_t n = json_array_size(names) - i;
        if (n > BATCH) n = BATCH;
        for (size_t j = 0; j < n; j++)
            decode_file(&images[j], folder, json_string_value(json_array_get(names, i + j)));
        if (renyi_run(s, images, (uint32_t)n, logits, &err)) fail_msg("%s", err.message);
        for (size_t j = 0; j < n; j++) {
            renyi_image_free(&images[j], NULL);
            const size_t got = best_class(logits + j * CLASSES);
            if ((json_int_t)got == json_integer_value(json_array_get(prediction, i + j))) continue;
            const double gap = json_number_value(json_array_get(margin, i + j));
            printf("%s: class %zu, reference margin %g\n",
                   json_string_value(json_array_get(names, i + j)), got, gap);
            assert_true(gap < UNDECIDED);
            others++;
        }
    }
    return others;
}

static void check_model(const char *name)
{
    char rel[256];
    renyi_error err = {0};
    renyi_model *model;
    renyi_session *session;
    json_t *golden;
    snprintf(rel, sizeof rel, "models/%s", name);
    const char *path = shared_path(rel), *file = shared_path("golden/val500.json");
    const char *photos = shared_path("data/imagenet-val-500");
    if (!path || !file || !photos) return;
    const renyi_session_options opt = {.struct_size = sizeof opt, .max_batch = BATCH};
    if (ry_json_load_file(&golden, file, NULL, &err)) fail_msg("%s", err.message);
    if (renyi_model_open(&model, path, NULL, &err)) fail_msg("%s", err.message);
    if (renyi_session_new(&session, model, &opt, &err)) fail_msg("%s", err.message);
    json_t *want =
        json_object_get(json_object_get(json_object_get(golden, "models"), name), "none");
    const int others =
        count_other_answers(session, json_object_get(golden, "images"), want, photos);
    printf("%s: one in %d of %zu photos, %d other than the reference\n", name, EVERY,
           json_array_size(json_object_get(golden, "images")), others);
    assert_true(json_array_size(json_object_get(golden, "images")) == 500);
    assert_true(others <= MAX_UNDECIDED);
    renyi_session_free(session);
    renyi_model_free(model);
    json_decref(golden);
}

static void test_vit(void **state)
{
    (void)state;
    check_model("vit_tiny_patch16_224.augreg_in21k_ft_in1k");
}

static void test_deit(void **state)
{
    (void)state;
    check_model("deit_tiny_patch16_224.fb_in1k");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vit), cmocka_unit_test(test_deit)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
