/* test_golden_llava.c - tests LLaVA from image to answer against the reference: for every pruning
 * variant and image the logits after the prompt and twelve greedy tokens. Reads ../shared; reports
 * SKIP without it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "engine/llava/conversation.h"

#include <string.h>

#include "test.h"

#include "fixtures/golden_taps.h"

enum { IMAGES = 3, TOKENS = 12, VOCAB = 32064, PATCHES = 576, DIM = 32 };

static const struct {
    const char *name, *policy;
} variants[] = {
    {"full", "none"},
    {"prumerge-col-192", "prumerge tokens=192 metric=col n=4"},
    {"vispruner-correct0.2-192", "vispruner tokens=192 metric=correct c=0.2"},
    {"prumerge-cls-192", "prumerge tokens=192 metric=cls"},
    {"prumerge-cls-256", "prumerge tokens=256 metric=cls"},
    {"prumerge-col-256", "prumerge tokens=256 metric=col n=4"},
    {"vispruner-cls-192", "vispruner tokens=192 metric=cls"},
    {"vispruner-cls-256", "vispruner tokens=256 metric=cls"},
    {"vispruner-correct0.2-256", "vispruner tokens=256 metric=correct c=0.2"},
    {"vispruner-correct0.8-192", "vispruner tokens=192 metric=correct c=0.8"},
    {"vispruner-correct0.8-256", "vispruner tokens=256 metric=correct c=0.8"},
};
#ifdef RENYI_SANITIZED
enum { VARIANTS = 3, IMAGES_RUN = 1 };
#else
enum { VARIANTS = sizeof variants / sizeof *variants, IMAGES_RUN = IMAGES };
#endif

typedef struct golden {
    renyi_lvlm *model;
    ry_tensors *taps;
    char images[IMAGES][512]; /* paths */
    const int32_t *prompt;    /* [n_prompt], with the image token */
    size_t n_prompt;
} golden;

/* 0: a file of ../shared is missing. */
static int find_images(golden *g)
{
    renyi_error err = {0};
    json_t *names;
    const char *text = ry_tensors_meta(g->taps, "images");
    assert_non_null(text);
    if (ry_json_parse(&names, text, strlen(text), "images", NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(json_array_size(names), IMAGES);
    int all = 1;
    for (size_t i = 0; i < IMAGES; i++) {
        char rel[256];
        snprintf(rel, sizeof rel, "data/imagenet-val-500/%s",
                 json_string_value(json_array_get(names, i)));
        const char *path = shared_path(rel);
        if (path) snprintf(g->images[i], sizeof g->images[i], "%s", path);
        all &= path != NULL;
    }
    json_decref(names);
    return all;
}

static int open_golden(golden *g, renyi_cpu level)
{
    renyi_error err = {0};
    const char *taps = shared_path("golden/llava_tiny.safetensors");
    const renyi_lvlm_options opt = {.struct_size = sizeof opt, .cpu = level};
    *g = (golden){0};
    if (!taps) return 0;
    if (ry_safetensors_open(&g->taps, taps, NULL, NULL, &err)) fail_msg("%s", err.message);
    const char *model = find_images(g) ? shared_path("models/llava_tiny_random") : NULL;
    if (!model) return 0;
    if (renyi_lvlm_open(&g->model, model, &opt, &err)) fail_msg("%s", err.message);
    g->prompt = golden_tap(g->taps, "prompt");
    g->n_prompt = (size_t)ry_tensors_find(g->taps, "prompt")->shape[0];
    return 1;
}

static void close_golden(golden *g)
{
    renyi_lvlm_free(g->model);
    ry_tensors_free(g->taps);
}

static const void *tap_of(const golden *g, int image, const char *variant, const char *what)
{
    char name[96];
    snprintf(name, sizeof name, "%d.%s.%s", image, variant, what);
    return golden_tap(g->taps, name);
}

/* ---- a different choice -------------------------------------------------------------------- */

/* Gives the conversation the rows of the reference's patches. VisPruner merges nothing: each row is
 * one patch. */
static void replay(const golden *g, renyi_conversation *c, int image, const ry_tensor *kept)
{
    static float rows[PATCHES * DIM];
    renyi_visual_session *s;
    renyi_visual_tokens all;
    renyi_error err = {0};
    if (renyi_visual_session_new(&s, renyi_lvlm_visual(g->model), NULL, &err) ||
        renyi_visual_run_file(s, g->images[image], &all, &err))
        fail_msg("%s", err.message);
    assert_int_equal(all.lm_dim, DIM);
    for (size_t i = 0; i < kept->shape[0]; i++)
        memcpy(rows + i * DIM, all.rows + (size_t)((const int32_t *)kept->data)[i] * DIM,
               DIM * sizeof *rows);
    renyi_visual_session_free(s);
    c->image.n = (uint32_t)kept->shape[0];
    c->image.rows = rows;
    c->image.kept = kept->data;
}

/* VisPruner's rounds compare similarities that may be equal up to rounding (test_golden_visual.c
 * has the margins). If our choice differs for that reason, the language model gets the reference's
 * tokens, so that its answer can be compared. Returns 1 in that case. */
static int settle_choice(const golden *g, renyi_conversation *c, int image, const char *variant)
{
    char name[96];
    snprintf(name, sizeof name, "%d.%s.kept", image, variant);
    const ry_tensor *kept = ry_tensors_find(g->taps, name);
    if (!kept || !memcmp(c->image.kept, kept->data, (size_t)kept->bytes)) return 0;
    if (strncmp(variant, "vispruner", 9) != 0) fail_msg("%s: other tokens are kept", name);
    assert_int_equal(c->image.n, kept->shape[0]);
    replay(g, c, image, kept);
    return 1;
}

/* ---- answers ------------------------------------------------------------------------------- */

/* Returns the largest difference of a logit. */
static double check_image(const golden *g, renyi_conversation *c, int image, const char *variant,
                          int *n_replayed)
{
    static float logits[VOCAB];
    const renyi_answer_options o = {
        .struct_size = sizeof o, .max_new_tokens = TOKENS, .logits = logits};
    const float *want = tap_of(g, image, variant, "logits");
    renyi_answer a;
    renyi_error err = {0};
    double worst = 0.0;
    if (renyi_conversation_show_file(c, g->images[image], &err)) fail_msg("%s", err.message);
    *n_replayed += settle_choice(g, c, image, variant);
    if (renyi_conversation_ask_ids(c, g->prompt, g->n_prompt, &o, &a, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < VOCAB; i++)
        worst = golden_worse(worst, fabs((double)logits[i] - (double)want[i]));
    assert_int_equal(a.n_ids, TOKENS);
    assert_int_equal(a.end, RENYI_ANSWER_LENGTH);
    assert_memory_equal(a.ids, tap_of(g, image, variant, "generated"), TOKENS * sizeof *a.ids);
    assert_int_equal(a.n_prompt, g->n_prompt - 1 + a.n_visual);
    assert_string_equal(a.text, ""); /* the model has no tokenizer */
    return worst;
}

static void check_level(renyi_cpu level, int n_variants, int n_images)
{
    golden g;
    double worst = 0.0;
    int n_replayed = 0;
    if (open_golden(&g, level))
        for (int v = 0; v < n_variants; v++) {
            const renyi_conversation_options o = {.struct_size = sizeof o,
                                                  .policy = variants[v].policy};
            renyi_conversation *c;
            renyi_error err = {0};
            if (renyi_conversation_new(&c, g.model, &o, &err)) fail_msg("%s", err.message);
            for (int p = 0; p < n_images; p++)
                worst = golden_worse(worst, check_image(&g, c, p, variants[v].name, &n_replayed));
            renyi_conversation_free(c);
        }
    close_golden(&g);
    printf(
        "%s: %d variants x %d images, all tokens equal, logits within %.2g; %d choices replayed\n",
        renyi_cpu_name(level), n_variants, n_images, worst, n_replayed);
    assert_true(worst < 1e-3);
}

/* Every variant at the best level; the first ones at the others. */
static void test_answers(void **state)
{
    (void)state;
    const renyi_cpu best = renyi_cpu_detect();
    check_level(best, VARIANTS, IMAGES_RUN);
#ifndef RENYI_SANITIZED
    for (int level = RENYI_CPU_SCALAR; level < (int)best; level++)
        check_level((renyi_cpu)level, level == RENYI_CPU_SCALAR ? 1 : 3, 1);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
