/* test_golden_text.c - the text tower against the reference's embeddings of its twelve texts, at
 * every CPU level, and the logits that they make with the reference's image embeddings.
 * SPDX-License-Identifier: Apache-2.0 */
#include "renyi/clip.h"

#include <string.h>

#include "test.h"

#include "fixtures/golden_taps.h"

enum { TEXTS = 12, IMAGES = 8, EMBED = 64 };

static void make_logits(float *out, const float *text, const ry_tensors *taps, double scale)
{
    float a[IMAGES * EMBED], b[TEXTS * EMBED];
    memcpy(a, golden_tap(taps, "image.embed"), sizeof a);
    memcpy(b, text, sizeof b);
    renyi_normalise_rows(a, IMAGES, EMBED);
    renyi_normalise_rows(b, TEXTS, EMBED);
    for (size_t i = 0; i < IMAGES; i++)
        for (size_t j = 0; j < TEXTS; j++) {
            double sum = 0.0;
            for (size_t k = 0; k < EMBED; k++)
                sum += (double)a[i * EMBED + k] * (double)b[j * EMBED + k];
            out[i * TEXTS + j] = (float)(scale * sum);
        }
}

static void check_level(const char *model, const ry_tensors *taps, renyi_cpu level,
                        renyi_dtype dtype)
{
    float out[TEXTS * EMBED], logits[IMAGES * TEXTS];
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level, .dtype = dtype};
    /* eight bits cost a tower of random weights and 64 channels up to 3 % */
    const double tolerance = dtype == RENYI_DTYPE_F32 ? 1e-5 : 0.05;
    renyi_text *t;
    renyi_text_session *s;
    renyi_text_info info;
    renyi_error err = {0};
    if (renyi_text_open(&t, model, &opt, &err)) fail_msg("%s", err.message);
    renyi_text_get_info(t, &info);
    assert_int_equal(info.embed_dim, EMBED);
    if (renyi_text_session_new(&s, t, NULL, &err)) fail_msg("%s", err.message);
    if (renyi_text_run(s, golden_tap(taps, "text.ids"), NULL, TEXTS, out, &err))
        fail_msg("%s", err.message);
    make_logits(logits, out, taps, info.logit_scale);
    const double e = golden_row_error(out, golden_tap(taps, "text.embed"), TEXTS, EMBED);
    const double l = golden_row_error(logits, golden_tap(taps, "logits"), IMAGES, TEXTS);
    printf("%s %s: embeddings within %.2g, logits within %.2g\n", renyi_cpu_name(level),
           renyi_dtype_name(dtype), e, l);
    assert_true(e < tolerance);
    assert_true(l < 2 * tolerance);
    renyi_text_session_free(s);
    renyi_text_free(t);
}

static void test_text(void **state)
{
    (void)state;
    renyi_error err = {0};
    ry_tensors *taps;
    const char *model = shared_path("models/clip_tiny_random");
    const char *file = shared_path("golden/clip_tiny.safetensors");
    if (!model || !file) return;
    if (ry_safetensors_open(&taps, file, NULL, NULL, &err)) fail_msg("%s", err.message);
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++)
        for (int dtype = RENYI_DTYPE_F32; dtype <= RENYI_DTYPE_INT8; dtype++)
            if (!renyi_dtype_check((renyi_dtype)dtype, (renyi_cpu)level, NULL))
                check_level(model, taps, (renyi_cpu)level, (renyi_dtype)dtype);
    ry_tensors_free(taps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
