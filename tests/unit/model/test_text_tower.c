/* test_text_tower.c - CLIP's text tower: same results in both layouts, bits independent of the
 * other texts and of threads, common beginnings computed once, errors.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixtures/clip_fixture.h"
#include "fixtures/test_heap.h"
#include "renyi/clip.h"

#include <math.h>

enum { TEXTS = 40 };

static int32_t ids[TEXTS][CLIP_CONTEXT];
static uint32_t lengths[TEXTS];

/* Texts of all lengths; some have a common beginning, two are equal, ids after the end are random.
 */
static void make_texts(void)
{
    ry_rng rng = ry_rng_new(11);
    for (size_t i = 0; i < TEXTS; i++) {
        lengths[i] = (uint32_t)(2 + i % (CLIP_CONTEXT - 1));
        for (size_t k = 0; k < CLIP_CONTEXT; k++)
            ids[i][k] = (int32_t)(ry_rng_next(&rng) % CLIP_SOT);
        ids[i][0] = CLIP_SOT;
        for (size_t k = 1; k < 5 && k + 1 < lengths[i] && i % 3; k++) ids[i][k] = (int32_t)k;
        ids[i][lengths[i] - 1] = CLIP_EOT;
    }
    memcpy(ids[31], ids[9], sizeof ids[9]);
    lengths[31] = lengths[9];
}

static renyi_text *open_text(const fixture *f, const renyi_options *opt)
{
    renyi_text *t = NULL;
    const char *path = fix_write(f, "clip.safetensors");
    assert_ok(renyi_text_open(&t, path, opt, err));
    unlink(path);
    return t;
}

static renyi_text *open_default(void)
{
    fixture f;
    clip_make(&f);
    renyi_text *t = open_text(&f, NULL);
    fix_free(&f);
    return t;
}

static renyi_text_session *open_session(const renyi_text *t, uint32_t max_tokens, uint32_t threads)
{
    const renyi_text_session_options opt = {
        .struct_size = sizeof opt, .max_tokens = max_tokens, .n_threads = threads};
    renyi_text_session *s = NULL;
    assert_ok(renyi_text_session_new(&s, t, &opt, err));
    return s;
}

static void embed_texts(const renyi_text *t, uint32_t max_tokens, uint32_t threads,
                        float out[TEXTS][CLIP_EMBED])
{
    renyi_text_session *s = open_session(t, max_tokens, threads);
    assert_ok(renyi_text_run(s, ids[0], lengths, TEXTS, out[0], err));
    renyi_text_session_free(s);
}

static double difference(float (*a)[CLIP_EMBED], float (*b)[CLIP_EMBED])
{
    double worst = 0.0, top = 0.0;
    for (size_t i = 0; i < TEXTS; i++)
        for (size_t k = 0; k < CLIP_EMBED; k++) {
            worst = fmax(worst, fabs((double)a[i][k] - (double)b[i][k]));
            top = fmax(top, fabs((double)a[i][k]));
        }
    return worst / top;
}

static void test_info(void **state)
{
    (void)state;
    renyi_text_info info;
    renyi_text *t = open_default();
    renyi_text_get_info(t, &info);
    assert_string_equal(info.layout, "huggingface");
    assert_string_equal(info.activation, "quick_gelu");
    assert_int_equal(info.vocab, CLIP_VOCAB);
    assert_int_equal(info.context, CLIP_CONTEXT);
    assert_int_equal(info.dim, CLIP_DIM);
    assert_int_equal(info.n_heads, CLIP_HEADS);
    assert_int_equal(info.n_blocks, CLIP_BLOCKS);
    assert_int_equal(info.mlp_dim, CLIP_MLP);
    assert_int_equal(info.embed_dim, CLIP_EMBED);
    assert_true(fabs(info.logit_scale - exp(2.5)) < 1e-6);
    assert_true(info.norm_eps == 1e-5);
    renyi_text_free(t);
}

static void test_layouts(void **state)
{
    (void)state;
    static float hf[TEXTS][CLIP_EMBED], openai[TEXTS][CLIP_EMBED];
    fixture f;
    renyi_text_info a, b;
    clip_make(&f);
    renyi_text *t = open_text(&f, NULL);
    embed_texts(t, 0, 2, hf);
    renyi_text_get_info(t, &a);
    renyi_text_free(t);
    clip_to_openai(&f);
    t = open_text(&f, NULL);
    embed_texts(t, 0, 2, openai);
    renyi_text_get_info(t, &b);
    renyi_text_free(t);
    fix_free(&f);
    assert_string_equal(b.layout, "openai");
    assert_int_equal(a.n_params, b.n_params);
    assert_true(a.logit_scale == b.logit_scale);
    assert_memory_equal(hf, openai, sizeof hf);
}

/* Small and large passes, one and three threads, and every text alone. */
static void check_company(renyi_cpu level, renyi_dtype dtype)
{
    static const uint32_t plans[][2] = {{CLIP_CONTEXT, 2}, {64, 1}, {1024, 3}};
    static float want[TEXTS][CLIP_EMBED], got[TEXTS][CLIP_EMBED];
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level, .dtype = dtype};
    fixture f;
    clip_make(&f);
    renyi_text *t = open_text(&f, &opt);
    fix_free(&f);
    renyi_text_session *s = open_session(t, 0, 1);
    for (size_t i = 0; i < TEXTS; i++)
        assert_ok(renyi_text_run(s, ids[i], i % 2 ? &lengths[i] : NULL, 1, want[i], err));
    renyi_text_session_free(s);
    for (size_t p = 0; p < sizeof plans / sizeof plans[0]; p++) {
        memset(got, 0, sizeof got);
        embed_texts(t, plans[p][0], plans[p][1], got);
        assert_memory_equal(want, got, sizeof want);
    }
    renyi_text_free(t);
}

static void test_company(void **state)
{
    (void)state;
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++)
        for (int dtype = RENYI_DTYPE_F32; dtype <= RENYI_DTYPE_INT8; dtype++)
            if (!renyi_dtype_check((renyi_dtype)dtype, (renyi_cpu)level, NULL))
                check_company((renyi_cpu)level, (renyi_dtype)dtype);
}

static void test_levels(void **state)
{
    (void)state;
    static float scalar[TEXTS][CLIP_EMBED], other[TEXTS][CLIP_EMBED];
    fixture f;
    clip_make(&f);
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++)
        for (int dtype = RENYI_DTYPE_F32; dtype <= RENYI_DTYPE_INT8; dtype++) {
            const renyi_options opt = {
                .struct_size = sizeof opt, .cpu = (renyi_cpu)level, .dtype = (renyi_dtype)dtype};
            if (renyi_dtype_check(opt.dtype, opt.cpu, NULL)) continue;
            renyi_text *t = open_text(&f, &opt);
            embed_texts(t, 0, 2, other);
            renyi_text_free(t);
            if (level == RENYI_CPU_SCALAR && dtype == RENYI_DTYPE_F32)
                memcpy(scalar, other, sizeof scalar);
            const double e = difference(scalar, other);
            assert_true(e < (dtype == RENYI_DTYPE_F32 ? 1e-5 : 0.05));
        }
    fix_free(&f);
}

/* Many names in one template: its beginning is computed once, and equal texts only once. */
static void test_shared(void **state)
{
    (void)state;
    enum { N = 300 };
    static int32_t many[N][CLIP_CONTEXT];
    static float out[N][CLIP_EMBED];
    for (size_t i = 0; i < N; i++) {
        const int32_t text[] = {CLIP_SOT, 1, 2, 3, (int32_t)(4 + i % 50), CLIP_EOT};
        memcpy(many[i], text, sizeof text);
    }
    renyi_text *t = open_default();
    renyi_text_session *s = open_session(t, 0, 2);
    assert_ok(renyi_text_run(s, many[0], NULL, N, out[0], err));
    assert_int_equal(renyi_text_last_tokens(s), 4 + 50 * 2);
    for (size_t i = 50; i < N; i++) assert_memory_equal(out[i], out[i % 50], sizeof out[0]);
    assert_memory_not_equal(out[0], out[1], sizeof out[0]);
    assert_ok(renyi_text_run(s, many[0], NULL, 0, out[0], err)); /* nothing to do */
    assert_int_equal(renyi_text_last_tokens(s), 0);
    assert_true(renyi_text_session_bytes(s) > 100000);
    renyi_text_session_free(s);
    renyi_text_free(t);
}

static int stop_at(void *user, uint64_t done, uint64_t total)
{
    uint64_t *left = user;
    assert_true(done <= total);
    return --*left == 0;
}

static void test_progress(void **state)
{
    (void)state;
    static float out[TEXTS][CLIP_EMBED];
    renyi_text *t = open_default();
    uint64_t left = 3;
    const renyi_text_session_options opt = {.struct_size = sizeof opt,
                                            .max_tokens = CLIP_CONTEXT,
                                            .progress = stop_at,
                                            .progress_user = &left};
    renyi_text_session *s;
    renyi_error e = {0};
    assert_ok(renyi_text_session_new(&s, t, &opt, err));
    assert_int_equal(renyi_text_run(s, ids[0], lengths, TEXTS, out[0], &e), RENYI_ERR_ABORTED);
    left = 1000; /* goes on as if nothing had happened */
    assert_ok(renyi_text_run(s, ids[0], lengths, TEXTS, out[0], err));
    renyi_text_session_free(s);
    renyi_text_free(t);
}

/* ---- errors -------------------------------------------------------------------------------- */

static void expect(const fixture *f, renyi_status code, const char *word)
{
    assert_refused(f, renyi_text, renyi_text_open(&it, path, NULL, err), code, word);
}

static void test_bad_files(void **state)
{
    (void)state;
    fixture f;
    fix_make(&f, "vit_tiny_patch16_32");
    expect(&f, RENYI_ERR_UNSUPPORTED, "no text tower");
    fix_free(&f);

    clip_make(&f);
    fix_remove(&f, "text_projection.weight");
    fix_find(&f, "text_model.final_layer_norm.bias")->shape[0] = CLIP_DIM / 2;
    fix_find(&f, "text_model.final_layer_norm.bias")->bytes /= 2;
    fix_add_zeros(&f, "text_model.extra", 3);
    expect(&f, RENYI_ERR_FORMAT, "missing text_projection.weight");
    expect(&f, RENYI_ERR_FORMAT, "text_model.final_layer_norm.bias [12] instead of [24]");
    expect(&f, RENYI_ERR_FORMAT, "unknown text_model.extra");
    fix_free(&f);

    clip_make(&f);
    float *tokens =
        (float *)(uintptr_t)fix_find(&f, "text_model.embeddings.token_embedding.weight")->data;
    tokens[30] = NAN;
    expect(&f, RENYI_ERR_FORMAT, "holds NaN");
    fix_free(&f);

    static const char *const configs[][2] = {
        {"{\"text_config\": {\"hidden_size\": 32}}", "hidden_size is 32"},
        {"{\"text_config\": {\"num_attention_heads\": 5}}",
         "5 heads do not divide the width 24; correct text_config.num_attention_heads in"},
        {"{\"text_config\": {\"num_attention_heads\": 3, \"hidden_act\": \"relu\"}}", "'relu'"},
        {"{\"text_config\": {\"num_attention_heads\": 3, \"layer_norm_eps\": 2}}",
         "layer_norm_eps"},
        {"{\"vision_config\": {}}",
         "0 heads (the default) do not divide the width 24; write text_config.num_att"}};
    clip_make(&f);
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        f.meta[1] = configs[i][0];
        expect(&f, configs[i][1][0] == '\'' ? RENYI_ERR_UNSUPPORTED : RENYI_ERR_FORMAT,
               configs[i][1]);
    }
    *(float *)(uintptr_t)fix_find(&f, "logit_scale")->data = 50.0f;
    f.meta[1] = CLIP_CONFIG;
    expect(&f, RENYI_ERR_FORMAT, "logit_scale' is 50");
    fix_free(&f);
}

static void test_bad_calls(void **state)
{
    (void)state;
    float out[CLIP_EMBED];
    int32_t text[CLIP_CONTEXT] = {CLIP_SOT, CLIP_VOCAB};
    const uint32_t none = 0, many = CLIP_CONTEXT + 1;
    renyi_error e = {0};
    renyi_text *t = open_default();
    renyi_text_session *s = open_session(t, 0, 1), *no = NULL;
    assert_int_equal(renyi_text_run(s, text, NULL, 1, out, &e), RENYI_ERR_ARG);
    assert_says(&e, "id 517 in text 0; the tower has 0 to 516");
    text[0] = -4, text[1] = 3;
    assert_int_equal(renyi_text_run(s, text, NULL, 1, out, &e), RENYI_ERR_ARG);
    assert_says(&e, "id -4");
    assert_int_equal(renyi_text_run(s, ids[0], &none, 1, out, &e), RENYI_ERR_ARG);
    assert_int_equal(renyi_text_run(s, ids[0], &many, 1, out, &e), RENYI_ERR_ARG);
    const renyi_text_session_options opt = {.struct_size = sizeof opt, .max_tokens = 3};
    assert_int_equal(renyi_text_session_new(&no, t, &opt, &e), RENYI_ERR_ARG);
    assert_says(&e, "max_tokens 3; 32");
    assert_null(no);
    renyi_text_session_free(s);
    renyi_text_free(t);
}

/* Every allocation fails once: an error, and nothing is left behind. */
static void test_memory(void **state)
{
    (void)state;
    fixture f;
    clip_make(&f);
    const char *path = fix_write(&f, "nomem.safetensors");
    for (size_t fail_at = 1, ok = 0; !ok; fail_at++) {
        test_heap heap = {.fail_at = fail_at};
        const renyi_options opt = {.struct_size = sizeof opt, .allocator = test_heap_of(&heap)};
        renyi_text *t = NULL;
        renyi_text_session *s = NULL;
        renyi_error e = {0};
        renyi_status st = renyi_text_open(&t, path, &opt, &e);
        if (!st) st = renyi_text_session_new(&s, t, NULL, &e);
        assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
        ok = st == RENYI_OK && heap.calls < fail_at;
        renyi_text_session_free(s);
        renyi_text_free(t);
        assert_int_equal(heap.live, 0);
    }
    unlink(path);
    fix_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),      cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_company),   cmocka_unit_test(test_levels),
        cmocka_unit_test(test_shared),    cmocka_unit_test(test_progress),
        cmocka_unit_test(test_bad_files), cmocka_unit_test(test_bad_calls),
        cmocka_unit_test(test_memory)};
    make_texts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
