/* test_golden_val500.c - tests the path from JPEG files to top-1 on 500 validation images, image by
 * image, dense and with every policy that the reference ran; and what half-adaptive computes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/json.h"
#include "fixtures/shared_files.h"
#include "renyi/renyi.h"

#include <pthread.h>
#include <string.h>

#include "test.h"

enum { CLASSES = 1000, IMAGES = 500, POLICIES = 10, MODELS = 2 };
#ifdef RENYI_SANITIZED
enum { BATCH = 2, EVERY = 250 }; /* one batch of all; the plain build runs every one */
#else
enum { BATCH = 8, EVERY = 1 };
#endif
enum { OTHERS = 3 };   /* of 500 answers that may differ from the reference's: 99.4 % agree */
#define UNDECIDED 1e-3 /* dense: only where its two best logits are closer than this */

typedef struct count {
    size_t images, others, right, reference_right; /* right: equal to the label */
    double margin;                                 /* the reference's largest among `others` */
    double macs;                                   /* of all images */
} count;

typedef struct model {
    const char *name;
    renyi_model *m;
    renyi_preprocess preprocess;
    uint8_t *pixels; /* [IMAGES, size, size, 3] fitted images */
    size_t each;     /* bytes of one */
    count counts[POLICIES];
    count adaptive;  /* half-adaptive against the reference's dense answers */
    renyi_error err; /* of the thread that runs it */
} model;

static model models[MODELS] = {{.name = "vit_tiny_patch16_224.augreg_in21k_ft_in1k"},
                               {.name = "deit_tiny_patch16_224.fb_in1k"}};
static json_t *golden; /* NULL: a shared file is missing */

static int is_run(size_t image) { return image / BATCH % EVERY == 0; }

/* ---- images: each is decoded once and fitted for both models -------------------------------- */

static void fit_image(const char *path, size_t index)
{
    ry_mapped_file file;
    renyi_image image;
    renyi_error err = {0};
    if (ry_mapped_file_open(&file, path, 0, &err)) fail_msg("%s", err.message);
    if (renyi_image_decode(&image, file.data, file.size, NULL, &err))
        fail_msg("%s: %s", path, err.message);
    ry_mapped_file_close(&file);
    for (size_t i = 0; i < MODELS; i++)
        if (renyi_image_fit(models[i].pixels + index * models[i].each, &image,
                            &models[i].preprocess, NULL, &err))
            fail_msg("%s: %s", path, err.message);
    renyi_image_free(&image, NULL);
}

static void open_model(model *m, const char *path)
{
    renyi_error err = {0};
    renyi_model_info info;
    if (renyi_model_open(&m->m, path, NULL, &err)) fail_msg("%s", err.message);
    renyi_model_get_info(m->m, &info);
    assert_int_equal(info.n_classes, CLASSES);
    m->preprocess = info.preprocess;
    m->each = (size_t)info.image_size * info.image_size * 3;
    m->pixels = malloc(IMAGES * m->each);
    assert_non_null(m->pixels);
}

static int setup(void **state)
{
    (void)state;
    renyi_error err = {0};
    char path[4096];
    const char *file = shared_path("golden/val500.json");
    const char *folder = shared_path("data/imagenet-val-500");
    if (!file || !folder) return 0;
    for (size_t i = 0; i < MODELS; i++) {
        snprintf(path, sizeof path, "models/%s", models[i].name);
        const char *at = shared_path(path);
        if (!at) return 0;
        open_model(&models[i], at);
    }
    if (ry_json_load_file(&golden, file, NULL, &err)) fail_msg("%s", err.message);
    json_t *names = json_object_get(golden, "images");
    assert_int_equal(json_array_size(names), IMAGES);
    for (size_t i = 0; i < IMAGES; i++) {
        if (!is_run(i)) continue;
        snprintf(path, sizeof path, "%s/%s", folder, json_string_value(json_array_get(names, i)));
        fit_image(path, i);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    json_decref(golden);
    for (size_t i = 0; i < MODELS; i++) {
        renyi_model_free(models[i].m);
        free(models[i].pixels);
    }
    return 0;
}

/* ---- answers -------------------------------------------------------------------------------- */

static size_t best_class(const float *logits)
{
    size_t best = 0;
    for (size_t i = 1; i < CLASSES; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static void count_image(count *c, json_t *want, size_t image, size_t got)
{
    const json_int_t label =
        json_integer_value(json_array_get(json_object_get(golden, "labels"), image));
    const json_int_t reference =
        json_integer_value(json_array_get(json_object_get(want, "prediction"), image));
    c->images++;
    c->right += (json_int_t)got == label;
    c->reference_right += reference == label;
    if ((json_int_t)got == reference) return;
    const double gap = json_number_value(json_array_get(json_object_get(want, "margin"), image));
    c->others++;
    if (gap > c->margin) c->margin = gap;
}

static renyi_status run_policy(model *m, const char *policy, json_t *want, count *c)
{
    float logits[BATCH * CLASSES];
    renyi_session *s;
    const renyi_session_options opt = {
        .struct_size = sizeof opt, .max_batch = BATCH, .n_threads = 1, .policy = policy};
    renyi_status st = renyi_session_new(&s, m->m, &opt, &m->err);
    for (size_t i = 0; i < IMAGES && !st; i += BATCH) {
        if (!is_run(i)) continue;
        const size_t n = IMAGES - i < BATCH ? IMAGES - i : BATCH;
        st = renyi_run_pixels(s, m->pixels + i * m->each, (uint32_t)n, logits, &m->err);
        c->macs += renyi_session_last_macs(s) * (double)n;
        for (size_t j = 0; j < n && !st; j++)
            count_image(c, want, i + j, best_class(logits + j * CLASSES));
    }
    renyi_session_free(s);
    return st;
}

static json_t *policies_of(const model *m)
{
    return json_object_get(json_object_get(golden, "models"), m->name);
}

/* All policies of one model, in its own thread: no assertions here. */
static void *run_model(void *arg)
{
    model *m = arg;
    const char *policy;
    json_t *want;
    size_t i = 0;
    json_object_foreach(policies_of(m), policy, want)
    {
        if (i == POLICIES || run_policy(m, policy, want, &m->counts[i++])) return NULL;
    }
    (void)run_policy(m, "half-adaptive", json_object_get(policies_of(m), "none"), &m->adaptive);
    return NULL;
}

static void check_policy(const char *policy, const count *c)
{
    printf("%-57s %zu of %zu images like the reference, %zu right (reference %zu)", policy,
           c->images - c->others, c->images, c->right, c->reference_right);
    if (c->others) printf("; margin of the others up to %.2g", c->margin);
    printf("\n");
    assert_int_equal(c->images, EVERY == 1 ? IMAGES : BATCH);
    assert_true(c->others <= OTHERS);
    if (strcmp(policy, "none") == 0) assert_true(c->margin < UNDECIDED);
}

/* The models run in parallel, each on one thread. */
static void test_answers(void **state)
{
    (void)state;
    pthread_t threads[MODELS];
    if (!golden) return;
    for (size_t i = 0; i < MODELS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_model, &models[i]), 0);
    for (size_t i = 0; i < MODELS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < MODELS; i++) {
        const char *policy;
        json_t *want;
        size_t k = 0;
        if (models[i].err.code) fail_msg("%s: %s", models[i].name, models[i].err.message);
        assert_int_equal(json_object_size(policies_of(&models[i])), POLICIES);
        printf("== %s\n", models[i].name);
        json_object_foreach(policies_of(&models[i]), policy, want)
            check_policy(policy, &models[i].counts[k++]);
    }
}

/* Mean executed MACs and answers of the preset half-adaptive. */
static void test_half_adaptive(void **state)
{
    (void)state;
    for (size_t i = 0; golden && i < MODELS; i++) {
        const count *c = &models[i].adaptive;
        renyi_cost dense;
        renyi_error err = {0};
        if (renyi_policy_cost(models[i].m, NULL, "none", &dense, NULL, 0, &err))
            fail_msg("%s", err.message);
        const double share = c->macs / (double)c->images / dense.total.macs_executed;
        printf("half-adaptive, %s: %.4f of the MACs, dense's answer for %zu of %zu images\n",
               models[i].name, share, c->images - c->others, c->images);
        if (EVERY > 1) continue; /* too few images for a mean */
        assert_true(share <= 0.50);
        assert_true(c->others * 20 <= c->images * 3); /* 85 %; half: 87.6 and 89.8 */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers),
                                       cmocka_unit_test(test_half_adaptive)};
    const int failed = cmocka_run_group_tests(tests, setup, teardown);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
