/* test_gguf_nomem.c - every allocation fails once while a GGUF is opened as a tokenizer, a language
 * model or the visual side of a LLaVA: the call reports it and leaks nothing. No value of a file
 * makes an allocation that its tensors do not need.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "renyi/llava.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static renyi_status open_int8(const char *path, const renyi_options *opt, renyi_error *err)
{
    renyi_options int8 = *opt;
    renyi_lm *lm;
    int8.dtype = RENYI_DTYPE_INT8; /* its rounding is measured too */
    const renyi_status st = renyi_lm_open(&lm, path, &int8, err);
    renyi_lm_free(lm);
    return st;
}

static renyi_status open_model(const renyi_options *opt, renyi_error *err)
{
    return open_int8(FILES "llama_256.gguf", opt, err);
}

static renyi_status open_blocks(const renyi_options *opt, renyi_error *err)
{
    return open_int8(FILES "llama_q4.gguf", opt, err);
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
    sweep(open_blocks);
    sweep(open_visual);
}

/* ---- sizes that only a value says --------------------------------------------------------------
 */

enum { LARGE = 1 << 26 };

static void *alloc_small(void *user, size_t size, size_t align)
{
    void *p = NULL;
    (void)user;
    return size > LARGE || posix_memalign(&p, align, size) ? NULL : p;
}

static void release(void *user, void *p, size_t size)
{
    (void)user;
    (void)size;
    free(p);
}

/* The mmproj with another number under a key of uint32. */
static void patch_value(const char *to, const char *key, uint32_t number)
{
    static char bytes[1 << 20];
    FILE *f = fopen(MMPROJ, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f), length = strlen(key);
    fclose(f);
    size_t at = 0;
    while (at + length < n && memcmp(bytes + at, key, length) != 0) at++;
    assert_true(at + length + 8 < n);
    memcpy(bytes + at + length + 4, &number, sizeof number); /* behind the kind */
    f = fopen(to, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void test_large_values(void **state)
{
    static const char *const keys[] = {
        "clip.vision.image_size",           "clip.vision.patch_size",
        "clip.vision.embedding_length",     "clip.vision.feed_forward_length",
        "clip.vision.attention.head_count", "clip.vision.block_count"};
    static const uint32_t numbers[] = {255, 1 << 16, INT32_MAX, UINT32_MAX};
    const renyi_options opt = {.struct_size = sizeof opt,
                               .allocator = {alloc_small, release, NULL}};
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "/tmp/renyi_large_%ld.gguf", (long)getpid());
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            renyi_visual *v = NULL;
            renyi_error err = {0};
            patch_value(path, keys[i], numbers[k]);
            const renyi_status st = renyi_visual_open(&v, path, NULL, &opt, &err);
            if (!st || st == RENYI_ERR_NOMEM || !strstr(err.message, path) ||
                !(strstr(err.message, "clip.vision.") || strstr(err.message, "v.blk.")))
                fail_msg("%s %u: %s", keys[i], numbers[k], st ? err.message : "opened");
        }
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tokenizers),
                                       cmocka_unit_test(test_models),
                                       cmocka_unit_test(test_large_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
