/* test_golden_visual_rules.c - tests every rule for the visual tokens of a LLaVA against
 * tools/ref/visual_rules.py: kept patches, rows, and logits of the language model. A small model is
 * in tests/visual_rules; a larger one is read from ../shared, SKIP without it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "renyi/llava.h"

#include <string.h>

#include "test.h"

#include "fixtures/golden_taps.h"
#include "fixtures/llava_fixture.h"

#define FOLDER RENYI_SOURCE_DIR "/tests/visual_rules"

#ifdef RENYI_SANITIZED
enum { LARGE_IMAGES = 1 }; /* ten times slower */
#else
enum { LARGE_IMAGES = 2 };
#endif

typedef struct golden {
    renyi_lvlm *model;
    renyi_relevance *relevance; /* NULL = none */
    const char *question;
    ry_tensors *taps;
    json_t *policies;
    const uint8_t *pixels; /* [images, side, side, 3] */
    uint32_t side, images;
    const ry_tensor *ids; /* the logits that the file has; NULL = all */
    double rows, logits;  /* the largest errors */
} golden;

/* clip: for policies that choose by a question; NULL = none. */
static void open_golden(golden *g, const char *model, const char *clip, const char *taps)
{
    const renyi_lvlm_options opt = {.struct_size = sizeof opt, .text_tower = clip};
    renyi_error err = {0};
    *g = (golden){0};
    if (clip && renyi_relevance_open(&g->relevance, clip, NULL, NULL, &err))
        fail_msg("%s", err.message);
    if (renyi_lvlm_open(&g->model, model, &opt, &err)) fail_msg("%s", err.message);
    if (ry_safetensors_open(&g->taps, taps, NULL, NULL, &err)) fail_msg("%s", err.message);
    const char *text = ry_tensors_meta(g->taps, "policies");
    assert_non_null(text);
    if (ry_json_parse(&g->policies, text, strlen(text), "policies", NULL, &err))
        fail_msg("%s", err.message);
    g->question = ry_tensors_meta(g->taps, "question");
    g->ids = ry_tensors_find(g->taps, "ids");
    assert_true(json_array_size(g->policies) > 5);
}

static void close_golden(golden *g)
{
    json_decref(g->policies);
    ry_tensors_free(g->taps);
    renyi_lvlm_free(g->model);
    renyi_relevance_free(g->relevance);
}

static const ry_tensor *tap_of(const golden *g, uint32_t image, size_t policy, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "%u.%zu.%s", (unsigned)image, policy, what);
    return ry_tensors_find(g->taps, name);
}

static void check_logits(golden *g, const float *got, const ry_tensor *want, const char *policy)
{
    const float *w = want->data;
    const int32_t *ids = g->ids ? g->ids->data : NULL;
    for (size_t i = 0; i < want->shape[0]; i++) {
        const double e = fabs((double)got[ids ? ids[i] : (int32_t)i] - (double)w[i]);
        g->logits = golden_worse(g->logits, e);
        if (!(e < 1e-3)) fail_msg("%s: logit %zu differs by %g", policy, i, e);
    }
}

static void check_rows(golden *g, const renyi_visual_tokens *t, const ry_tensor *want,
                       const char *policy)
{
    if (!want) return;
    assert_int_equal(want->shape[1], t->lm_dim);
    const double e = golden_row_error(t->rows, want->data, t->n, t->lm_dim);
    g->rows = golden_worse(g->rows, e);
    if (!(e < 1e-4)) fail_msg("%s: rows differ by %g", policy, e);
}

static void check_visual(golden *g, uint32_t image, size_t k, const char *policy)
{
    const renyi_visual_session_options opt = {.struct_size = sizeof opt,
                                              .policy = policy,
                                              .n_threads = 1 + image,
                                              .relevance = g->relevance};
    const ry_tensor *kept = tap_of(g, image, k, "kept");
    renyi_visual_session *s = NULL;
    renyi_visual_tokens t;
    renyi_error err = {0};
    assert_non_null(kept);
    if (renyi_visual_session_new(&s, renyi_lvlm_visual(g->model), &opt, &err) ||
        (g->question && renyi_visual_session_question(s, g->question, &err)) ||
        renyi_visual_run_pixels(s, g->pixels + (size_t)image * g->side * g->side * 3, &t, &err))
        fail_msg("%s: %s", policy, err.message);
    assert_int_equal(t.n, kept->shape[0]);
    assert_int_equal(t.n, renyi_visual_session_tokens(s));
    for (uint32_t i = 0; i < t.n; i++)
        if ((int32_t)t.kept[i] != ((const int32_t *)kept->data)[i])
            fail_msg("image %u, %s: row %u is patch %d, the reference's is %d", (unsigned)image,
                     policy, (unsigned)i, (int)t.kept[i], (int)((const int32_t *)kept->data)[i]);
    check_rows(g, &t, tap_of(g, image, k, "rows"), policy);
    renyi_visual_session_free(s);
}

static void check_answer(golden *g, uint32_t image, size_t k, const char *policy)
{
    static float logits[40000];
    const renyi_conversation_options opt = {
        .struct_size = sizeof opt, .policy = policy, .cache_bits = 32};
    const renyi_answer_options how = {
        .struct_size = sizeof how, .max_new_tokens = 1, .logits = logits, .question = g->question};
    const ry_tensor *prompt = ry_tensors_find(g->taps, "prompt");
    const uint8_t *pixels = g->pixels + (size_t)image * g->side * g->side * 3;
    const renyi_image picture = {pixels, g->side, g->side, 0};
    renyi_conversation *c = NULL;
    renyi_answer a;
    renyi_error err = {0};
    if (renyi_conversation_new(&c, g->model, &opt, &err) ||
        renyi_conversation_show(c, &picture, &err) ||
        renyi_conversation_ask_ids(c, prompt->data, prompt->shape[0], &how, &a, &err))
        fail_msg("%s: %s", policy, err.message);
    check_logits(g, logits, tap_of(g, image, k, "logits"), policy);
    renyi_conversation_free(c);
}

static void check_all(golden *g, const char *name)
{
    const size_t n = json_array_size(g->policies);
    for (size_t k = 0; k < n; k++)
        for (uint32_t image = 0; image < g->images; image++) {
            const char *policy = json_string_value(json_array_get(g->policies, k));
            check_visual(g, image, k, policy);
            check_answer(g, image, k, policy);
        }
    printf("%s: %zu policies, %u images: the same patches, rows within %.1e, logits within %.1e\n",
           name, n, (unsigned)g->images, g->rows, g->logits);
}

static void test_small(void **state)
{
    (void)state;
    golden g;
    open_golden(&g, FOLDER, FOLDER "/clip", FOLDER "/expected.safetensors");
    const ry_tensor *pixels = ry_tensors_find(g.taps, "pixels");
    g.pixels = pixels->data;
    g.images = (uint32_t)pixels->shape[0];
    g.side = (uint32_t)pixels->shape[1];
    check_all(&g, "small");
    close_golden(&g);
}

static void test_large(void **state)
{
    (void)state;
    golden g;
    renyi_error err = {0};
    ry_tensors *images;
    const char *model = shared_path("models/llava_tiny_random");
    const char *taps = shared_path("golden/llava_tiny.safetensors");
    if (!model || !taps) return;
    open_golden(&g, model, NULL, RENYI_SOURCE_DIR "/tests/visual_rules/large.safetensors");
    if (ry_safetensors_open(&images, taps, NULL, NULL, &err)) fail_msg("%s", err.message);
    g.pixels = golden_tap(images, "images.pixels");
    g.side = 336;
    g.images = LARGE_IMAGES;
    check_all(&g, "llava_tiny_random");
    ry_tensors_free(images);
    close_golden(&g);
}

/* ---- questions ----------------------------------------------------------------------------- */

typedef struct asked {
    uint32_t kept[9];
    float logits[64];
} asked;

static void ask(asked *out, renyi_conversation *c, const char *question)
{
    const renyi_answer_options how = {
        .struct_size = sizeof how, .max_new_tokens = 2, .logits = out->logits};
    renyi_answer a;
    renyi_error err = {0};
    if (renyi_conversation_ask(c, question, &how, &a, &err)) fail_msg("%s", err.message);
    assert_int_equal(a.n_visual, 9);
    memcpy(out->kept, a.kept, sizeof out->kept);
}

/* A longer prompt with the question that chose reads only what is new; another question chooses
 * again. */
static void test_again(renyi_conversation *c)
{
    const int32_t ids[] = {1, RENYI_LVLM_IMAGE, 5, 6};
    renyi_answer_options how = {
        .struct_size = sizeof how, .max_new_tokens = 1, .question = "what is this?"};
    renyi_answer a;
    renyi_error err = {0};
    assert_ok(renyi_conversation_ask_ids(c, ids, 3, &how, &a, err));
    assert_int_equal(a.n_prompt, 1 + 9 + 1);
    assert_int_equal(a.n_reused, 1);
    assert_true(a.vision_ms > 0.0);
    assert_ok(renyi_conversation_ask_ids(c, ids, 4, &how, &a, err));
    assert_int_equal(a.n_reused, 1 + 9 + 1);
    assert_true(a.vision_ms == 0.0);
    how.question = "where is the second dog?";
    assert_ok(renyi_conversation_ask_ids(c, ids, 4, &how, &a, err));
    assert_int_equal(a.n_reused, 1);
    how.question = "";
    assert_int_equal(renyi_conversation_ask_ids(c, ids, 4, &how, &a, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "by the question"));
}

/* CDPruner chooses for every question, and nothing of the one before is left: not its rows in the
 * cache of keys and values either. */
static void test_questions(void **state)
{
    (void)state;
    static const char *const questions[] = {"what is this?", "where is the second dog?"};
    char folder[512];
    snprintf(folder, sizeof folder, "%s", fix_path("pieces"));
    mkdir(folder, 0700);
    toy_put_pieces(folder, 59);
    const renyi_lvlm_options opt = {
        .struct_size = sizeof opt, .text_tower = FOLDER "/clip", .tokenizer = folder};
    const renyi_conversation_options how = {
        .struct_size = sizeof how, .policy = "cdpruner tokens=9", .system = ""};
    const renyi_image photo = toy_photo(1);
    renyi_lvlm *m;
    renyi_conversation *c;
    renyi_error err = {0};
    asked fresh[2], again;
    if (renyi_lvlm_open(&m, FOLDER, &opt, &err)) fail_msg("%s", err.message);
    for (int i = 0; i < 2; i++) {
        assert_ok(renyi_conversation_new(&c, m, &how, err));
        assert_ok(renyi_conversation_show(c, &photo, err));
        ask(&fresh[i], c, questions[i]);
        renyi_conversation_free(c);
    }
    assert_memory_not_equal(fresh[0].kept, fresh[1].kept, sizeof fresh[0].kept);
    assert_ok(renyi_conversation_new(&c, m, &how, err));
    assert_ok(renyi_conversation_show(c, &photo, err));
    for (int i = 0; i < 4; i++) {
        renyi_conversation_restart(c);
        ask(&again, c, questions[i % 2]);
        assert_memory_equal(&again, &fresh[i % 2], sizeof again);
    }
    test_again(c);
    renyi_answer a;
    const int32_t ids[] = {1, RENYI_LVLM_IMAGE, 5};
    assert_int_equal(renyi_conversation_ask_ids(c, ids, 3, NULL, &a, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "by the question"));
    renyi_conversation_free(c);
    renyi_lvlm_free(m);
    toy_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small), cmocka_unit_test(test_large),
                                       cmocka_unit_test(test_questions)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
