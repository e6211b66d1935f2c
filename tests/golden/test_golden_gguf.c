/* test_golden_gguf.c - GGUF files against the reference (tools/ref/gguf_files.py): the values of
 * every type, bit by bit, and the logits of two small Llamas at every CPU level.
 * SPDX-License-Identifier: Apache-2.0 */
#include "renyi/lm.h"

#include <string.h>

#include "test.h"

#include "base/file.h"
#include "fixtures/golden_taps.h"
#include "formats/checkpoint.h"

#define FOLDER RENYI_SOURCE_DIR "/tests/gguf/"

static ry_tensors *open_golden(const char *path)
{
    ry_tensors *set;
    renyi_error err = {0};
    if (ry_safetensors_open(&set, path, NULL, NULL, &err)) fail_msg("%s", err.message);
    return set;
}

/* ---- values -------------------------------------------------------------------------------- */

static void test_values(void **state)
{
    (void)state;
    static const char *const types[] = {"f32",  "f16",  "bf16", "q8_0", "q4_0", "q4_1",
                                        "q5_0", "q5_1", "q4_k", "q5_k", "q6_k"};
    renyi_error err = {0};
    ry_checkpoint ckpt;
    ry_tensors *golden = open_golden(FOLDER "types.safetensors");
    if (ry_checkpoint_open(&ckpt, FOLDER "types.gguf", NULL, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(ry_tensors_count(ckpt.tensors), sizeof types / sizeof *types);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        float got[3 * 512];
        const ry_tensor *t = ry_tensors_find(ckpt.tensors, types[i]);
        const ry_tensor *want = ry_tensors_find(golden, types[i]);
        assert_non_null(t);
        assert_non_null(want);
        assert_int_equal(t->n_dims, 2);
        assert_int_equal(t->shape[0], 3);
        assert_int_equal(t->shape[1], want->shape[1]);
        assert_int_equal(ry_tensor_elements(t), ry_tensor_elements(want));
        assert_int_equal(ry_tensor_to_f32(t, got, &err), RENYI_OK);
        assert_memory_equal(got, want->data, want->bytes);
    }
    ry_checkpoint_close(&ckpt, NULL);
    ry_tensors_free(golden);
}

/* ---- models -------------------------------------------------------------------------------- */

enum { IDS = 24, MOST = 512 };

/* The largest error of the logits after each id, one by one and in one pass, relative to the
 * largest logit. */
static double logits_error(const char *path, renyi_cpu level, renyi_dtype dtype, const int32_t *ids,
                           const float *want)
{
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level, .dtype = dtype};
    renyi_lm *lm;
    renyi_lm_session *s;
    renyi_lm_info info;
    renyi_lm_input in[IDS];
    renyi_error err = {0};
    float logits[MOST];
    double worst = 0.0, most = 0.0;
    if (renyi_lm_open(&lm, path, &opt, &err)) fail_msg("%s", err.message);
    const renyi_lm_session_options exact = {.struct_size = sizeof exact, .cache_bits = 32};
    if (renyi_lm_session_new(&s, lm, &exact, &err)) fail_msg("%s", err.message);
    renyi_lm_get_info(lm, &info);
    assert_string_equal(info.layout, "gguf");
    assert_true(info.vocab <= MOST);
    for (uint32_t i = 0; i < 2 * IDS; i++) {
        const uint32_t at = i % IDS, n = i < IDS ? 1 : IDS;
        if (i < IDS) in[at] = (renyi_lm_input){NULL, ids[at]};
        if (i == IDS) assert_int_equal(renyi_lm_rewind(s, 0, &err), RENYI_OK);
        if (i > IDS) break;
        if (renyi_lm_feed(s, n == 1 ? &in[at] : in, n, logits, &err)) fail_msg("%s", err.message);
        const float *row = want + (size_t)(n == 1 ? at : IDS - 1) * info.vocab;
        for (uint32_t k = 0; k < info.vocab; k++) {
            worst = golden_worse(worst, fabs((double)logits[k] - (double)row[k]));
            most = fmax(most, fabs((double)row[k]));
        }
    }
    renyi_lm_session_free(s);
    renyi_lm_free(lm);
    return worst / most;
}

/* The logits in int8 are at most this far from `low` of the golden file. */
static void check_model(const ry_tensors *golden, const char *name, const char *low, double most)
{
    char path[512], key[64];
    snprintf(path, sizeof path, FOLDER "%s.gguf", name);
    snprintf(key, sizeof key, "%s.ids", name);
    const int32_t *ids = golden_tap(golden, key);
    snprintf(key, sizeof key, "%s.logits", name);
    const float *want = golden_tap(golden, key);
    snprintf(key, sizeof key, "%s.%s", name, low);
    const float *want_low = golden_tap(golden, key);
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
        const double f32 = logits_error(path, (renyi_cpu)level, RENYI_DTYPE_F32, ids, want);
        const double int8 = logits_error(path, (renyi_cpu)level, RENYI_DTYPE_INT8, ids, want_low);
        printf("%s, %s: error of the logits %.2g, with int8 %.2g\n", name,
               renyi_cpu_name((renyi_cpu)level), f32, int8);
        assert_true(f32 < 1e-5);
        assert_true(int8 < most);
    }
}

static void test_logits(void **state)
{
    (void)state;
    ry_tensors *golden = open_golden(FOLDER "llama.safetensors");
    /* random blocks: scales differ much inside a row */
    check_model(golden, "llama_32", "logits", 0.25);
    check_model(golden, "llama_256", "logits", 0.25);
    /* Blocks as they are: only activations are rounded, and in the reference too. One of them may
     * lie between two numbers and be rounded the other way, as in llama_q8; llama_q4 has none. */
    check_model(golden, "llama_q4", "groups", 0.03);
    check_model(golden, "llama_q8", "groups", 0.03);
    ry_tensors_free(golden);
}

/* What the weights lose, without and with opening the model. */
static void test_rounding(void **state)
{
    (void)state;
    static const char *const names[] = {"llama_32", "llama_256", "llama_q4", "llama_q8"};
    static const renyi_dtype dtypes[] = {RENYI_DTYPE_BF16, RENYI_DTYPE_INT8};
    ry_tensors *golden = open_golden(FOLDER "llama.safetensors");
    for (int i = 0; i < 8; i++) {
        char path[512], key[64];
        renyi_lm_info info, opened;
        renyi_error err = {0};
        renyi_lm *lm;
        const renyi_options opt = {.struct_size = sizeof opt, .dtype = dtypes[i % 2]};
        snprintf(path, sizeof path, FOLDER "%s.gguf", names[i / 2]);
        snprintf(key, sizeof key, "%s.rounding", names[i / 2]);
        const double want = ((const double *)golden_tap(golden, key))[i % 2];
        if (renyi_lm_describe(path, &opt, &info, &err)) fail_msg("%s", err.message);
        if (renyi_lm_open(&lm, path, &opt, &err)) fail_msg("%s", err.message);
        renyi_lm_get_info(lm, &opened);
        renyi_lm_free(lm);
        printf("%s in %s: rms error %.4g, reference %.4g\n", names[i / 2],
               renyi_dtype_name(dtypes[i % 2]), info.weight_error, want);
        assert_true(fabs(info.weight_error - want) <= 1e-4 * want); /* 0 is 0 */
        assert_true(opened.weight_error == info.weight_error);
        const renyi_options f32 = {.struct_size = sizeof f32, .dtype = RENYI_DTYPE_F32};
        assert_int_equal(renyi_lm_describe(path, &f32, &info, &err), RENYI_OK);
        assert_true(info.weight_error == 0.0);
    }
    ry_tensors_free(golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_logits),
                                       cmocka_unit_test(test_rounding)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
