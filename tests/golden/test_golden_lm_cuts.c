/* test_golden_lm_cuts.c - rules inside the language model of a small random LLaVA, from image to
 * answer, against an independent reference (tests/lm_cuts/llava.safetensors, written by
 * tools/ref/lm_cuts.py). Reads ../shared; reports SKIP without it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "renyi/llava.h"

#include <string.h>

#include "test.h"

#include "fixtures/golden_taps.h"

enum { TOKENS = 12, VOCAB = 32064 };

typedef struct golden {
    renyi_lvlm *model;
    ry_tensors *want, *taps; /* the reference's answers; those of ../shared with the prompt */
    json_t *policies;
    char image[512];
    const int32_t *prompt; /* [n_prompt], with the image token */
    size_t n_prompt, step; /* every step-th logit is known */
} golden;

static json_t *meta_json(const ry_tensors *set, const char *key)
{
    json_t *value;
    const char *text = ry_tensors_meta(set, key);
    renyi_error err = {0};
    assert_non_null(text);
    if (ry_json_parse(&value, text, strlen(text), key, NULL, &err)) fail_msg("%s", err.message);
    return value;
}

/* The first image of the reference's list. */
static int find_image(golden *g)
{
    char rel[256];
    json_t *names = meta_json(g->taps, "images");
    snprintf(rel, sizeof rel, "data/imagenet-val-500/%s",
             json_string_value(json_array_get(names, 0)));
    json_decref(names);
    const char *path = shared_path(rel);
    if (path) snprintf(g->image, sizeof g->image, "%s", path);
    return path != NULL;
}

static int open_golden(golden *g, renyi_cpu level)
{
    renyi_error err = {0};
    const renyi_lvlm_options opt = {.struct_size = sizeof opt, .cpu = level};
    const char *taps = shared_path("golden/llava_tiny.safetensors");
    const char *model = shared_path("models/llava_tiny_random");
    *g = (golden){0};
    if (!taps || !model) return 0;
    if (ry_safetensors_open(&g->taps, taps, NULL, NULL, &err)) fail_msg("%s", err.message);
    if (!find_image(g)) return 0;
    if (ry_safetensors_open(&g->want, RENYI_SOURCE_DIR "/tests/lm_cuts/llava.safetensors", NULL,
                            NULL, &err))
        fail_msg("%s", err.message);
    if (renyi_lvlm_open(&g->model, model, &opt, &err)) fail_msg("%s", err.message);
    g->policies = meta_json(g->want, "policies");
    g->step = (size_t)atoi(ry_tensors_meta(g->want, "step"));
    g->prompt = golden_tap(g->taps, "prompt");
    g->n_prompt = (size_t)ry_tensors_find(g->taps, "prompt")->shape[0];
    return 1;
}

static void close_golden(golden *g)
{
    renyi_lvlm_free(g->model);
    json_decref(g->policies);
    ry_tensors_free(g->want);
    ry_tensors_free(g->taps);
}

static const ry_tensor *want_of(const golden *g, const char *policy, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", policy, what);
    return ry_tensors_find(g->want, name);
}

static void check_cuts(const golden *g, const renyi_conversation *c, const renyi_answer *a,
                       const char *name)
{
    renyi_prompt_cost cost;
    double visual = 4.0 * a->n_visual;
    for (uint32_t i = 0; i < a->n_cuts; i++) {
        char what[16];
        snprintf(what, sizeof what, "kept%u", i);
        const ry_tensor *kept = want_of(g, name, what);
        assert_non_null(kept);
        assert_int_equal(a->cuts[i].n_kept, kept->shape[0]);
        assert_memory_equal(a->cuts[i].kept, kept->data, (size_t)kept->bytes);
        visual -= (double)(a->cuts[i].n_in - a->cuts[i].n_kept) * (4 - a->cuts[i].layer);
    }
    assert_int_equal(renyi_conversation_get_cost(c, &cost, NULL), RENYI_OK);
    assert_true(a->n_cuts > 0 && fabs(cost.visual_tokens - visual / 4) < 1e-9);
}

/* Returns the largest difference of a logit. */
static double check_policy(const golden *g, const char *name, const char *policy)
{
    static float logits[VOCAB];
    const renyi_conversation_options how = {.struct_size = sizeof how, .policy = policy};
    const renyi_answer_options o = {
        .struct_size = sizeof o, .max_new_tokens = TOKENS, .logits = logits};
    const ry_tensor *want = want_of(g, name, "logits"), *tokens = want_of(g, name, "tokens");
    renyi_conversation *c;
    renyi_answer a;
    renyi_error err = {0};
    double worst = 0.0;
    if (renyi_conversation_new(&c, g->model, &how, &err) ||
        renyi_conversation_show_file(c, g->image, &err) ||
        renyi_conversation_ask_ids(c, g->prompt, g->n_prompt, &o, &a, &err))
        fail_msg("%s: %s", policy, err.message);
    assert_non_null(want);
    for (size_t i = 0; i < want->shape[0]; i++)
        worst = golden_worse(
            worst, fabs((double)logits[i * g->step] - (double)((const float *)want->data)[i]));
    assert_int_equal(a.n_ids, TOKENS);
    assert_memory_equal(a.ids, tokens->data, TOKENS * sizeof *a.ids);
    check_cuts(g, c, &a, name);
    renyi_conversation_free(c);
    return worst;
}

static void test_answers(void **state)
{
    (void)state;
#ifdef RENYI_SANITIZED
    const int first = (int)renyi_cpu_detect();
#else
    const int first = RENYI_CPU_SCALAR;
#endif
    for (int level = first; level <= (int)renyi_cpu_detect(); level++) {
        golden g;
        const char *name;
        json_t *policy;
        double worst = 0.0;
        if (open_golden(&g, (renyi_cpu)level)) {
            json_object_foreach(g.policies, name, policy) worst =
                golden_worse(worst, check_policy(&g, name, json_string_value(policy)));
            printf("%s: %zu policies, choices and tokens equal, logits within %.2g\n",
                   renyi_cpu_name((renyi_cpu)level), json_object_size(g.policies), worst);
            assert_true(worst < 1e-3);
        }
        close_golden(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
