/* test_golden_val500.c - from the JPEG files to the answer: top-1 of 500 validation photos, photo
 * by photo, dense and under every policy that the reference ran.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/json.h"
#include "fixtures/shared_files.h"
#include "renyi/renyi.h"

#include <pthread.h>
#include <string.h>

#include "test.h"

enum { CLASSES = 1000, PHOTOS = 500, POLICIES = 10, MODELS = 2 };
#ifdef RENYI_SANITIZED
enum { BATCH = 2, EVERY = 250 }; /* batches: one of them; the plain build sees them all */
#else
enum { BATCH = 8, EVERY = 1 };
#endif
enum { OTHERS = 3 };   /* answers of 500 that may be other than the reference's: 99.4 % agree */
#define UNDECIDED 1e-3 /* dense: only where its two best logits are closer than this */

typedef struct count {
    size_t photos, others, right, right_there; /* right: the class that the photo shows */
    double margin;                             /* the reference's largest among `others` */
} count;

typedef struct model {
    const char *name;
    renyi_model *m;
    renyi_preprocess preprocess;
    uint8_t *pixels; /* [PHOTOS, size, size, 3] fitted photos */
    size_t each;     /* bytes of one */
    count counts[POLICIES];
    renyi_error err; /* of the thread that runs it */
} model;

static model models[MODELS] = {{.name = "vit_tiny_patch16_224.augreg_in21k_ft_in1k"},
                               {.name = "deit_tiny_patch16_224.fb_in1k"}};
static json_t *golden; /* NULL: something is absent */

static int is_looked_at(size_t photo) { return photo / BATCH % EVERY == 0; }

/* ---- photos: each is decoded once and fitted for both models -------------------------------- */

static void fit_photo(const char *path, size_t photo)
{
    ry_mapped_file file;
    renyi_image image;
    renyi_error err = {0};
    if (ry_mapped_file_open(&file, path, 0, &err)) fail_msg("%s", err.message);
    if (renyi_image_decode(&image, file.data, file.size, NULL, &err))
        fail_msg("%s: %s", path, err.message);
    ry_mapped_file_close(&file);
    for (size_t i = 0; i < MODELS; i++)
        if (renyi_image_fit(models[i].pixels + photo * models[i].each, &image,
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
    m->pixels = malloc(PHOTOS * m->each);
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
    assert_int_equal(json_array_size(names), PHOTOS);
    for (size_t i = 0; i < PHOTOS; i++) {
        if (!is_looked_at(i)) continue;
        snprintf(path, sizeof path, "%s/%s", folder, json_string_value(json_array_get(names, i)));
        fit_photo(path, i);
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

static void count_photo(count *c, json_t *want, size_t photo, size_t got)
{
    const json_int_t label =
        json_integer_value(json_array_get(json_object_get(golden, "labels"), photo));
    const json_int_t there =
        json_integer_value(json_array_get(json_object_get(want, "prediction"), photo));
    c->photos++;
    c->right += (json_int_t)got == label;
    c->right_there += there == label;
    if ((json_int_t)got == there) return;
    const double gap = json_number_value(json_array_get(json_object_get(want, "margin"), photo));
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
    for (size_t i = 0; i < PHOTOS && !st; i += BATCH) {
        if (!is_looked_at(i)) continue;
        const size_t n = PHOTOS - i < BATCH ? PHOTOS - i : BATCH;
        st = renyi_run_pixels(s, m->pixels + i * m->each, (uint32_t)n, logits, &m->err);
        for (size_t j = 0; j < n && !st; j++)
            count_photo(c, want, i + j, best_class(logits + j * CLASSES));
    }
    renyi_session_free(s);
    return st;
}

static json_t *policies_of(const model *m)
{
    return json_object_get(json_object_get(golden, "models"), m->name);
}

/* All policies of one model; a thread without assertions. */
static void *run_model(void *arg)
{
    model *m = arg;
    const char *policy;
    json_t *want;
    size_t i = 0;
    json_object_foreach(policies_of(m), policy, want)
    {
        if (i == POLICIES || run_policy(m, policy, want, &m->counts[i++])) break;
    }
    return NULL;
}

static void check_policy(const char *policy, const count *c)
{
    printf("%-57s %zu of %zu photos as the reference, %zu right (there %zu)", policy,
           c->photos - c->others, c->photos, c->right, c->right_there);
    if (c->others) printf("; margin of the others up to %.2g", c->margin);
    printf("\n");
    assert_int_equal(c->photos, EVERY == 1 ? PHOTOS : BATCH);
    assert_true(c->others <= OTHERS);
    if (strcmp(policy, "none") == 0) assert_true(c->margin < UNDECIDED);
}

/* Models side by side, each with one thread: nobody waits for anybody. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers)};
    const int failed = cmocka_run_group_tests(tests, setup, teardown);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
