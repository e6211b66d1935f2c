/* test_gguf_nomem.c - every allocation fails once while a GGUF is opened as a tokenizer, a language
 * model or the visual side of a LLaVA: the call reports it and leaks nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "renyi/llava.h"

#include <string.h>

#include "test.h"

#include "fixtures/test_heap.h"

#define FILES RENYI_SOURCE_DIR "/tests/gguf/"
#define MMPROJ RENYI_SOURCE_DIR "/fuzz/seeds/fuzz_gguf_model/mmproj"

typedef renyi_status (*attempt)(const renyi_options *opt, renyi_error *err);

static renyi_status open_pieces(const renyi_options *opt, renyi_error *err)
{
    renyi_lm_tokenizer *t;
    const renyi_status st = renyi_lm_tokenizer_open(&t, FILES "llama_32.gguf", opt, err);
    renyi_lm_tokenizer_free(t);
    return st;
}

static renyi_status open_bytes(const renyi_options *opt, renyi_error *err)
{
    renyi_lm_tokenizer *t;
    const renyi_status st = renyi_lm_tokenizer_open(&t, FILES "llama_256.gguf", opt, err);
    renyi_lm_tokenizer_free(t);
    return st;
}

static renyi_status open_model(const renyi_options *opt, renyi_error *err)
{
    renyi_options int8 = *opt;
    renyi_lm *lm;
    int8.dtype = RENYI_DTYPE_INT8; /* its rounding is measured too */
    const renyi_status st = renyi_lm_open(&lm, FILES "llama_256.gguf", &int8, err);
    renyi_lm_free(lm);
    return st;
}

static renyi_status open_visual(const renyi_options *opt, renyi_error *err)
{
    renyi_visual *v;
    const renyi_status st = renyi_visual_open(&v, MMPROJ, NULL, opt, err);
    renyi_visual_free(v);
    return st;
}

static void sweep(attempt try)
{
    for (size_t n = 1;; n++) {
        test_heap heap = {.fail_at = n};
        const renyi_options opt = {
            .struct_size = sizeof opt, .cpu = RENYI_CPU_SCALAR, .allocator = test_heap_of(&heap)};
        renyi_error err = {0};
        const renyi_status st = try(&opt, &err);
        assert_int_equal(heap.live, 0);
        if (heap.calls < n) {
            if (st) fail_msg("%s", err.message);
            assert_true(n > 1);
            return;
        }
        assert_int_equal(st, RENYI_ERR_NOMEM);
        if (!strstr(err.message, "out of memory")) fail_msg("%s", err.message);
    }
}

static void test_tokenizers(void **state)
{
    (void)state;
    sweep(open_pieces);
    sweep(open_bytes);
}

static void test_models(void **state)
{
    (void)state;
    sweep(open_model);
    sweep(open_visual);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tokenizers),
                                       cmocka_unit_test(test_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
