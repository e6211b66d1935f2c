/* test_golden_lm.c - the language model against the reference: greedy tokens and logits of a real
 * small Llama, and those of LLaVA's on the reference's visual tokens, at every CPU level.
 * SPDX-License-Identifier: Apache-2.0 */
#include "renyi/lm.h"

#include <string.h>

#include "test.h"

#include "fixtures/golden_taps.h"

enum { VOCAB = 512, GREEDY = 200, KNOWN = 64 }; /* of stories260K */

static renyi_lm *open_lm(const char *path, renyi_cpu level, renyi_lm_session **s)
{
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level};
    renyi_lm *lm;
    renyi_error err = {0};
    if (renyi_lm_open(&lm, path, &opt, &err)) fail_msg("%s", err.message);
    if (renyi_lm_session_new(s, lm, NULL, &err)) fail_msg("%s", err.message);
    return lm;
}

static void feed(renyi_lm_session *s, const renyi_lm_input *in, uint32_t n, float *logits)
{
    renyi_error err = {0};
    if (renyi_lm_feed(s, in, n, logits, &err)) fail_msg("%s", err.message);
}

static int32_t largest(const float *logits, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return (int32_t)best;
}

static double error_of(const float *got, const float *want, size_t n)
{
    double worst = 0.0;
    for (size_t i = 0; i < n; i++)
        worst = golden_worse(worst, fabs((double)got[i] - (double)want[i]));
    return worst;
}

/* Greedy tokens one by one; then half of them in one pass. */
static void check_story(const char *model, const ry_tensors *taps, renyi_cpu level)
{
    const int32_t *greedy = golden_tap(taps, "greedy");
    const float *want = golden_tap(taps, "logits64");
    renyi_lm_session *s;
    renyi_lm *lm = open_lm(model, level, &s);
    renyi_lm_input in[GREEDY];
    float logits[VOCAB];
    double worst = 0.0;
    for (uint32_t i = 0; i + 1 < GREEDY; i++) {
        in[i] = (renyi_lm_input){NULL, greedy[i]};
        feed(s, &in[i], 1, logits);
        if (i < KNOWN) worst = golden_worse(worst, error_of(logits, want + i * VOCAB, VOCAB));
        assert_int_equal(largest(logits, VOCAB), greedy[i + 1]);
    }
    assert_int_equal(renyi_lm_rewind(s, 0, NULL), RENYI_OK);
    feed(s, in, KNOWN, logits);
    worst = golden_worse(worst, error_of(logits, want + (KNOWN - 1) * VOCAB, VOCAB));
    printf("%s: %d greedy tokens, logits within %.2g\n", renyi_cpu_name(level), GREEDY, worst);
    assert_true(worst < 1e-4);
    renyi_lm_session_free(s);
    renyi_lm_free(lm);
}

static void test_stories(void **state)
{
    (void)state;
    renyi_error err = {0};
    ry_tensors *taps;
    const char *model = shared_path("models/stories260K");
    const char *file = shared_path("golden/stories260K.safetensors");
    if (!model || !file) return;
    if (ry_safetensors_open(&taps, file, NULL, NULL, &err)) fail_msg("%s", err.message);
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++)
        check_story(model, taps, (renyi_cpu)level);
    ry_tensors_free(taps);
}

/* ---- LLaVA --------------------------------------------------------------------------------- */

enum { TOWER = 64, DIM = 32, WORDS = 32064, PROMPT = 22, IMAGE = 32000, MOST = 576, ANSWER = 12 };

static void weights(const ry_tensors *set, const char *name, float *out)
{
    char full[96];
    snprintf(full, sizeof full, "model.multi_modal_projector.%s", name);
    const ry_tensor *t = ry_tensors_find(set, full);
    assert_non_null(t);
    assert_int_equal(ry_tensor_to_f32(t, out, NULL), RENYI_OK);
}

/* LLaVA's projector: rows [n, DIM] from the tower's [n, TOWER]. */
static void project(const ry_tensors *model, const float *from, size_t n, float *rows)
{
    float w1[DIM * TOWER], b1[DIM], w2[DIM * DIM], b2[DIM];
    weights(model, "linear_1.weight", w1), weights(model, "linear_1.bias", b1);
    weights(model, "linear_2.weight", w2), weights(model, "linear_2.bias", b2);
    for (size_t r = 0; r < n; r++) {
        double inner[DIM];
        for (size_t j = 0; j < DIM; j++) {
            double v = (double)b1[j];
            for (size_t k = 0; k < TOWER; k++)
                v += (double)w1[j * TOWER + k] * (double)from[r * TOWER + k];
            inner[j] = 0.5 * v * (1.0 + erf(v / sqrt(2.0)));
        }
        for (size_t j = 0; j < DIM; j++) {
            double v = (double)b2[j];
            for (size_t k = 0; k < DIM; k++) v += (double)w2[j * DIM + k] * inner[k];
            rows[r * DIM + j] = (float)v;
        }
    }
}

typedef struct llava {
    ry_tensors *model, *taps;
    renyi_lm_session *s;
} llava;

/* The prompt with the image's rows in place of its token, against the reference's answer. */
static void check_answer(const llava *l, const char *features, const char *variant)
{
    static float rows[MOST * DIM], logits[WORDS];
    static renyi_lm_input in[PROMPT + MOST];
    const ry_tensor *t = ry_tensors_find(l->taps, features);
    const int32_t *prompt = golden_tap(l->taps, "prompt");
    char name[64];
    uint32_t n = 0;
    assert_non_null(t);
    project(l->model, t->data, t->shape[0], rows);
    for (size_t i = 0; i < PROMPT; i++) {
        if (prompt[i] != IMAGE) in[n++] = (renyi_lm_input){NULL, prompt[i]};
        for (size_t k = 0; prompt[i] == IMAGE && k < t->shape[0]; k++)
            in[n++] = (renyi_lm_input){rows + k * DIM, 0};
    }
    assert_int_equal(renyi_lm_rewind(l->s, 0, NULL), RENYI_OK);
    feed(l->s, in, n, logits);
    snprintf(name, sizeof name, "0.%s.logits", variant);
    const double error = error_of(logits, golden_tap(l->taps, name), WORDS);
    printf("  %s: %u rows, logits within %.2g\n", variant, n, error);
    assert_true(error < 1e-4);
    snprintf(name, sizeof name, "0.%s.generated", variant);
    const int32_t *want = golden_tap(l->taps, name);
    for (size_t i = 0; i < ANSWER; i++) {
        const renyi_lm_input next = {NULL, largest(logits, WORDS)};
        assert_int_equal(next.token, want[i]);
        feed(l->s, &next, 1, logits);
    }
}

static void test_llava(void **state)
{
    (void)state;
    static const char *const variants[] = {"prumerge-cls-192", "vispruner-cls-192",
                                           "prumerge-col-192", "vispruner-correct0.2-192",
                                           "vispruner-correct0.8-192"};
#ifdef RENYI_SANITIZED
    const size_t count = 1;
#else
    const size_t count = sizeof variants / sizeof variants[0];
#endif
    renyi_error err = {0};
    llava l;
    const char *model = shared_path("models/llava_tiny_random");
    const char *weights_file = shared_path("models/llava_tiny_random/model.safetensors");
    const char *file = shared_path("golden/llava_tiny.safetensors");
    if (!model || !weights_file || !file) return;
    if (ry_safetensors_open(&l.taps, file, NULL, NULL, &err)) fail_msg("%s", err.message);
    if (ry_safetensors_open(&l.model, weights_file, NULL, NULL, &err)) fail_msg("%s", err.message);
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
        renyi_lm_info info;
        renyi_lm *lm = open_lm(model, (renyi_cpu)level, &l.s);
        renyi_lm_get_info(lm, &info);
        assert_int_equal(info.image, IMAGE);
        assert_string_equal(info.layout, "llava-hf-5");
        printf("%s:\n", renyi_cpu_name((renyi_cpu)level));
        check_answer(&l, "features.0", "full");
        for (size_t i = 0; i < count; i++) {
            char tokens[64];
            snprintf(tokens, sizeof tokens, "0.%s.tokens", variants[i]);
            check_answer(&l, tokens, variants[i]);
        }
        renyi_lm_session_free(l.s);
        renyi_lm_free(lm);
    }
    ry_tensors_free(l.taps);
    ry_tensors_free(l.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stories),
                                       cmocka_unit_test(test_llava)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
