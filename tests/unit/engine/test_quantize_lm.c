/* test_quantize_lm.c - language models in files of 8 and 4 bits: the same bits as from the original
 * packed when it is loaded; errors name the fault of a file.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixtures/llama_fixture.h"
#include "fixtures/test_heap.h"
#include "renyi/llava.h"
#include "renyi/quantize.h"

#define OUT "/tmp/renyi-quantize-lm.safetensors"

static renyi_error failure;

static void answer(const char *path, renyi_dtype dtype, renyi_cpu level, float *logits)
{
    const renyi_options opt = {.struct_size = sizeof opt, .dtype = dtype, .cpu = level};
    const renyi_lm_session_options so = {.struct_size = sizeof so, .n_threads = 2};
    renyi_lm_input rows[9];
    renyi_lm *lm;
    renyi_lm_session *s;
    for (int i = 0; i < 9; i++) rows[i] = (renyi_lm_input){NULL, (3 * i + 1) % LLAMA_VOCAB};
    if (renyi_lm_open(&lm, path, &opt, &failure)) fail_msg("%s", failure.message);
    assert_int_equal(renyi_lm_session_new(&s, lm, &so, &failure), RENYI_OK);
    assert_int_equal(renyi_lm_feed(s, rows, 9, logits, &failure), RENYI_OK);
    renyi_lm_session_free(s);
    renyi_lm_free(lm);
}

static renyi_lm_quantize_options options(renyi_dtype dtype)
{
    return (renyi_lm_quantize_options){.struct_size = sizeof(renyi_lm_quantize_options),
                                       .dtype = dtype};
}

static void test_same_answers(void **state)
{
    (void)state;
    fixture f;
    llama_make(&f);
    const char *path = fix_write(&f, "llama.safetensors");
    for (int k = 0; k < 2; k++) {
        const renyi_dtype dtype = k ? RENYI_DTYPE_INT4 : RENYI_DTYPE_INT8;
        const renyi_lm_quantize_options o = options(dtype);
        renyi_quantize_result r;
        if (renyi_lm_quantize(path, OUT, &o, &r, &failure)) fail_msg("%s", failure.message);
        assert_int_equal(r.n_quantized, 4 * LLAMA_LAYERS + 1);
        assert_true(r.bytes_out < r.bytes_in);
        for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
            float want[LLAMA_VOCAB], got[LLAMA_VOCAB];
            if (level == RENYI_CPU_SCALAR && !k)
                continue; /* int8 in plain C rounds without pairs */
            answer(path, dtype, (renyi_cpu)level, want);
            answer(OUT, RENYI_DTYPE_DEFAULT, (renyi_cpu)level, got);
            assert_memory_equal(want, got, sizeof want);
        }
    }
    unlink(OUT);
    unlink(path);
    fix_free(&f);
}

/* The language model of a LLaVA; all other tensors are copied. */
static void test_llava(void **state)
{
    (void)state;
    char folder[] = "/tmp/renyi-llava-XXXXXX", command[80];
    assert_non_null(mkdtemp(folder));
    const renyi_lvlm_init_options init = {.struct_size = sizeof init,
                                          .dim = 32,
                                          .n_layers = 2,
                                          .n_heads = 2,
                                          .mlp_dim = 80,
                                          .shard_bytes = 2000000};
    const renyi_lm_quantize_options o = options(RENYI_DTYPE_INT4);
    renyi_lvlm *m;
    renyi_visual *v;
    if (renyi_lvlm_init(folder, "llava-1.5-7b", &init, &failure)) fail_msg("%s", failure.message);
    if (renyi_lm_quantize(folder, OUT, &o, NULL, &failure)) fail_msg("%s", failure.message);
    if (renyi_visual_open(&v, OUT, NULL, NULL, &failure)) fail_msg("%s", failure.message);
    renyi_visual_free(v);
    if (renyi_lvlm_open(&m, OUT, NULL, &failure)) fail_msg("%s", failure.message);
    renyi_lm_info info;
    renyi_lm_get_info(renyi_lvlm_lm(m), &info);
    assert_int_equal(info.dtype, RENYI_DTYPE_INT4);
    assert_string_equal(info.layout, "renyi");
    renyi_lvlm_free(m);
    unlink(OUT);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
}

static void test_refusals(void **state)
{
    (void)state;
    fixture f;
    llama_make(&f);
    const char *path = fix_write(&f, "llama.safetensors");
    renyi_lm_quantize_options o = options(RENYI_DTYPE_BF16);
    assert_int_equal(renyi_lm_quantize(path, OUT, &o, NULL, &failure), RENYI_ERR_ARG);
    o = options(RENYI_DTYPE_INT4);
    assert_int_equal(renyi_lm_quantize(path, path, &o, NULL, &failure), RENYI_ERR_ARG);
    assert_non_null(strstr(failure.message, "the model itself"));
    assert_int_equal(renyi_lm_quantize("builtin", OUT, &o, NULL, &failure), RENYI_ERR_UNSUPPORTED);
    assert_int_equal(renyi_lm_quantize(path, OUT, &o, NULL, &failure), RENYI_OK);
    assert_int_equal(renyi_lm_quantize(OUT, OUT "2", &o, NULL, &failure), RENYI_ERR_ARG);
    assert_non_null(strstr(failure.message, "quantized already"));
    const renyi_options as = {.struct_size = sizeof as, .dtype = RENYI_DTYPE_F32};
    renyi_lm *lm;
    assert_int_equal(renyi_lm_open(&lm, OUT, &as, &failure), RENYI_ERR_UNSUPPORTED);
    assert_non_null(strstr(failure.message, "use the original"));
    unlink(OUT);
    unlink(path);
    fix_free(&f);
}

/* Every allocation fails once, when writing and when opening. */
static void test_memory(void **state)
{
    (void)state;
    fixture f;
    llama_make(&f);
    const char *path = fix_write(&f, "llama.safetensors");
    renyi_status st = RENYI_ERR_NOMEM;
    for (size_t fail_at = 1; st; fail_at += fail_at < 60 ? 1 : 7) {
        test_heap heap = {.fail_at = fail_at};
        renyi_lm_quantize_options o = options(RENYI_DTYPE_INT4);
        o.allocator = test_heap_of(&heap);
        st = renyi_lm_quantize(path, OUT, &o, NULL, &failure);
        assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
        assert_int_equal(heap.live, 0);
    }
    st = RENYI_ERR_NOMEM;
    for (size_t fail_at = 1; st; fail_at += fail_at < 60 ? 1 : 7) {
        test_heap heap = {.fail_at = fail_at};
        const renyi_options o = {.struct_size = sizeof o, .allocator = test_heap_of(&heap)};
        renyi_lm *lm;
        st = renyi_lm_open(&lm, OUT, &o, &failure);
        assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
        renyi_lm_free(lm);
        assert_int_equal(heap.live, 0);
    }
    unlink(OUT);
    unlink(path);
    fix_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_answers), cmocka_unit_test(test_llava),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
