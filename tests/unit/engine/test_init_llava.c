/* test_init_llava.c - a random LLaVA: loads from one file or shards, the same seed gives the same
 * bytes, and errors name what cannot be made.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "renyi/llava.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static renyi_error failure;

static renyi_lvlm_init_options small(uint64_t shard_bytes)
{
    return (renyi_lvlm_init_options){.struct_size = sizeof(renyi_lvlm_init_options),
                                     .seed = 5,
                                     .dim = 32,
                                     .n_layers = 2,
                                     .n_heads = 2,
                                     .mlp_dim = 96,
                                     .shard_bytes = shard_bytes};
}

static void init_llava(const char *folder, const renyi_lvlm_init_options *opt)
{
    if (renyi_lvlm_init(folder, "llava-1.5-7b", opt, &failure)) fail_msg("%s", failure.message);
}

static void remove_folder(const char *folder)
{
    char command[160];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* The logits after one token. */
static void answer(const char *folder, renyi_dtype dtype, float *logits, size_t capacity)
{
    const renyi_options opt = {.struct_size = sizeof opt, .dtype = dtype};
    const renyi_lm_input in = {NULL, 77};
    renyi_lm *lm;
    renyi_lm_info info;
    renyi_lm_session *s;
    if (renyi_lm_open(&lm, folder, &opt, &failure)) fail_msg("%s", failure.message);
    renyi_lm_get_info(lm, &info);
    assert_string_equal(info.layout, "llava-hf");
    assert_int_equal(info.dim, 32);
    assert_int_equal(info.n_layers, 2);
    assert_int_equal(info.mlp_dim, 96);
    assert_int_equal(info.image, 32000);
    assert_true(info.vocab <= capacity);
    const renyi_lm_session_options o = {.struct_size = sizeof o, .max_context = 8, .n_threads = 1};
    assert_int_equal(renyi_lm_session_new(&s, lm, &o, &failure), RENYI_OK);
    assert_int_equal(renyi_lm_feed(s, &in, 1, logits, &failure), RENYI_OK);
    for (size_t i = 0; i < info.vocab; i++) assert_true(isfinite(logits[i]));
    renyi_lm_session_free(s);
    renyi_lm_free(lm);
}

static void test_loads(void **state)
{
    (void)state;
    enum { VOCAB = 32064 };
    float *whole = malloc(2 * VOCAB * sizeof(float)), *parts = whole + VOCAB;
    const renyi_lvlm_init_options one = small(0), many = small(1 << 20);
    char a[] = "/tmp/renyi-llava-XXXXXX", b[] = "/tmp/renyi-llava-XXXXXX";
    assert_non_null(mkdtemp(a));
    assert_non_null(mkdtemp(b));
    init_llava(a, &one);
    init_llava(b, &many);
    for (int dtype = RENYI_DTYPE_F32; dtype <= RENYI_DTYPE_INT4; dtype++) {
        answer(a, (renyi_dtype)dtype, whole, VOCAB);
        answer(b, (renyi_dtype)dtype, parts, VOCAB);
        assert_memory_equal(whole, parts, VOCAB * sizeof(float));
    }
    renyi_visual *v;
    renyi_visual_info info;
    if (renyi_visual_open(&v, b, NULL, NULL, &failure)) fail_msg("%s", failure.message);
    renyi_visual_get_info(v, &info);
    assert_int_equal(info.lm_dim, 32);
    renyi_visual_free(v);
    remove_folder(a);
    remove_folder(b);
    free(whole);
}

static int stop(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    assert_true(done <= total);
    return 1;
}

static void test_refusals(void **state)
{
    (void)state;
    renyi_lvlm_init_options o = small(0);
    assert_int_equal(renyi_lvlm_init("/tmp/x", "llava-2", &o, &failure), RENYI_ERR_ARG);
    assert_non_null(strstr(failure.message, "llava-1.5-7b"));
    o.n_heads = 5;
    assert_int_equal(renyi_lvlm_init("/tmp/x", "llava-1.5-7b", &o, &failure), RENYI_ERR_ARG);
    assert_non_null(strstr(failure.message, "5 heads"));
    o = small(0);
    o.dim = 1 << 20;
    assert_int_equal(renyi_lvlm_init("/tmp/x", "llava-1.5-7b", &o, &failure), RENYI_ERR_LIMIT);
    o = small(0);
    assert_int_equal(renyi_lvlm_init("/nonexistent/x", "llava-1.5-7b", &o, &failure), RENYI_ERR_IO);
    assert_int_equal(renyi_lvlm_init(NULL, "llava-1.5-7b", &o, &failure), RENYI_ERR_ARG);
    char a[] = "/tmp/renyi-llava-XXXXXX";
    assert_non_null(mkdtemp(a));
    o.progress = stop;
    assert_int_equal(renyi_lvlm_init(a, "llava-1.5-7b", &o, &failure), RENYI_ERR_ABORTED);
    assert_int_equal(rmdir(a), 0); /* nothing is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loads),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
