/* test_golden_eval.c - compares the sample log of an evaluation with the predictions of the
 * reference: two models, ten policies, one run each. Uses a part of the images; RENYI_TEST_FULL=1
 * takes all.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/json.h"
#include "fixtures/shared_files.h"
#include "renyi/eval.h"

#include <string.h>
#include <unistd.h>

#include "test.h"

enum { MAX_POLICIES = 16, IMAGES = 500 };
#ifdef RENYI_SANITIZED
enum { SHARE = 250 }; /* two images, but every policy of both models */
#else
enum { SHARE = 5 };
#endif

/* The part of one model in val500.json. */
typedef struct golden {
    const char *texts[MAX_POLICIES];         /* as in the reference */
    const char *full[MAX_POLICIES];          /* as the library prints them */
    const json_t *predictions[MAX_POLICIES]; /* [500] */
    unsigned seen[MAX_POLICIES], other[MAX_POLICIES];
    uint32_t n;
} golden;

static void read_golden(golden *g, json_t *policies)
{
    *g = (golden){.n = 0};
    for (void *it = json_object_iter(policies); it; it = json_object_iter_next(policies, it)) {
        assert_true(g->n < MAX_POLICIES);
        g->texts[g->n] = json_object_iter_key(it);
        g->predictions[g->n++] = json_object_get(json_object_iter_value(it), "prediction");
    }
}

static void compare_line(golden *g, const json_t *images, const json_t *line)
{
    const char *policy = json_string_value(json_object_get(line, "policy"));
    const char *file = json_string_value(json_object_get(line, "file"));
    const json_int_t got = json_integer_value(json_object_get(line, "prediction"));
    uint32_t p = 0;
    size_t i = 0;
    assert_true(policy && file);
    while (p < g->n && strcmp(policy, g->full[p]) != 0) p++;
    while (i < IMAGES && strcmp(file, json_string_value(json_array_get(images, i))) != 0) i++;
    assert_true(p < g->n && i < IMAGES);
    g->seen[p]++;
    g->other[p] += got != json_integer_value(json_array_get(g->predictions[p], i));
}

static void compare_log(golden *g, const json_t *images, const char *log)
{
    static char text[4096];
    FILE *f = fopen(log, "r");
    assert_non_null(f);
    while (fgets(text, sizeof text, f)) {
        renyi_error err = {0};
        json_t *line;
        if (ry_json_parse(&line, text, strlen(text), log, NULL, &err)) fail_msg("%s", err.message);
        compare_line(g, images, line);
        json_decref(line);
    }
    fclose(f);
}

static renyi_eval *evaluate(golden *g, const renyi_model *model, const renyi_dataset *data,
                            const char *log)
{
    const renyi_eval_options o = {
        .struct_size = sizeof o, .policies = g->texts, .n_policies = g->n, .log = log};
    renyi_error err = {0};
    renyi_eval *e;
    if (renyi_eval_new(&e, model, data, &o, &err) || renyi_eval_run(e, &err))
        fail_msg("%s", err.message);
    for (uint32_t i = 0; i < g->n; i++) {
        renyi_eval_result r;
        renyi_eval_get_result(e, i, &r);
        assert_int_equal(r.failed, 0);
        g->full[i] = r.policy;
    }
    return e;
}

static void check_model(const char *name)
{
    const uint32_t share = getenv("RENYI_TEST_FULL") ? 1 : SHARE;
    const renyi_dataset_options choice = {.struct_size = sizeof choice, .n_shards = share};
    char rel[256], log[] = "/tmp/renyi_golden_eval_XXXXXX";
    renyi_error err = {0};
    renyi_dataset *data;
    renyi_model *model;
    json_t *file;
    golden g;
    snprintf(rel, sizeof rel, "models/%s", name);
    const char *path = shared_path(rel), *json = shared_path("golden/val500.json");
    const char *images = shared_path("data/imagenet-val-500");
    if (!path || !json || !images) return;
    if (ry_json_load_file(&file, json, NULL, &err) || renyi_model_open(&model, path, NULL, &err) ||
        renyi_dataset_open(&data, images, model, &choice, &err))
        fail_msg("%s", err.message);
    read_golden(&g, json_object_get(json_object_get(file, "models"), name));
    assert_true(g.n == 10);
    const int fd = mkstemp(log);
    assert_true(fd >= 0);
    renyi_eval *e = evaluate(&g, model, data, log);
    compare_log(&g, json_object_get(file, "images"), log);
    for (uint32_t i = 0; i < g.n; i++) {
        printf("%s: %u of %u others, %s\n", name, g.other[i], g.seen[i], g.texts[i]);
        assert_int_equal(g.seen[i], IMAGES / share);
        assert_true(g.other[i] <= (g.seen[i] * 6 + 999) / 1000); /* 99.4 % agree */
    }
    close(fd);
    remove(log);
    renyi_eval_free(e);
    renyi_dataset_free(data);
    renyi_model_free(model);
    json_decref(file);
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
