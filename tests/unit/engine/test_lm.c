/* test_lm.c - the language model: against doubles at every CPU level; the same logits from all
 * layouts; a row's bits do not depend on other rows, passes or threads; rewinding; errors.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixtures/llama_fixture.h"
#include "fixtures/test_heap.h"
#include "renyi/lm.h"

enum { N = 150 }; /* rows of the test sequence */

static int32_t tokens[N];
static renyi_lm_input rows[N];

static void make_rows(void)
{
    ry_rng rng = ry_rng_new(9);
    for (size_t i = 0; i < N; i++) {
        tokens[i] = (int32_t)(ry_rng_next(&rng) % LLAMA_VOCAB);
        rows[i] = (renyi_lm_input){NULL, tokens[i]};
    }
}

static renyi_lm *open_lm(const fixture *f, const renyi_options *opt)
{
    renyi_lm *lm = NULL;
    const char *path = fix_write(f, "llama.safetensors");
    assert_ok(renyi_lm_open(&lm, path, opt, err));
    unlink(path);
    return lm;
}

static renyi_lm *open_default(const renyi_options *opt)
{
    fixture f;
    llama_make(&f);
    renyi_lm *lm = open_lm(&f, opt);
    fix_free(&f);
    return lm;
}

static renyi_lm_session *open_session(const renyi_lm *lm, uint32_t max_rows, uint32_t threads,
                                      uint32_t bits)
{
    const renyi_lm_session_options opt = {
        .struct_size = sizeof opt, .max_rows = max_rows, .n_threads = threads, .cache_bits = bits};
    renyi_lm_session *s = NULL;
    assert_ok(renyi_lm_session_new(&s, lm, &opt, err));
    return s;
}

/* Logits after the first n rows, fed at once. */
static void answer(const renyi_lm *lm, uint32_t n, float *logits)
{
    renyi_lm_session *s = open_session(lm, 0, 2, 0);
    assert_ok(renyi_lm_feed(s, rows, n, logits, err));
    renyi_lm_session_free(s);
}

static void test_info(void **state)
{
    (void)state;
    renyi_lm_info info;
    renyi_lm *lm = open_default(NULL);
    renyi_lm_get_info(lm, &info);
    assert_string_equal(info.layout, "llama");
    assert_int_equal(info.dim, LLAMA_DIM);
    assert_int_equal(info.n_layers, LLAMA_LAYERS);
    assert_int_equal(info.n_heads, LLAMA_HEADS);
    assert_int_equal(info.n_kv_heads, LLAMA_KV);
    assert_int_equal(info.head_dim, LLAMA_HEAD);
    assert_int_equal(info.mlp_dim, LLAMA_MLP);
    assert_int_equal(info.vocab, LLAMA_VOCAB);
    assert_int_equal(info.context, LLAMA_CONTEXT);
    assert_int_equal(info.bos, 1);
    assert_int_equal(info.eos, 2);
    assert_int_equal(info.image, -1);
    assert_int_equal(info.tied, 0);
    assert_true(info.rope_theta == 1000.0 && info.norm_eps == 1e-4);
    const uint64_t attention = 2 * LLAMA_Q + 2 * LLAMA_KV * LLAMA_HEAD;
    const uint64_t params = LLAMA_DIM * (2 * LLAMA_VOCAB + 1 +
                                         LLAMA_LAYERS * (2 + attention + 3 * (uint64_t)LLAMA_MLP));
    assert_int_equal(info.n_params, params);
    assert_in_range(info.bytes, 4 * params, 6 * params); /* panels are padded */
    renyi_lm_free(lm);
}

/* renyi_lm_describe, which reads no weights, agrees with the opened model. */
static void test_describe(void **state)
{
    (void)state;
    static const renyi_dtype all[] = {RENYI_DTYPE_DEFAULT, RENYI_DTYPE_F32, RENYI_DTYPE_BF16,
                                      RENYI_DTYPE_INT8, RENYI_DTYPE_INT4};
    fixture f;
    llama_make(&f);
    const char *path = fix_write(&f, "llama.safetensors");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const renyi_options opt = {.struct_size = sizeof opt, .dtype = all[i]};
        renyi_lm_info said, so;
        renyi_lm *lm;
        assert_ok(renyi_lm_describe(path, &opt, &said, err));
        assert_ok(renyi_lm_open(&lm, path, &opt, err));
        renyi_lm_get_info(lm, &so);
        assert_int_equal(said.n_params, so.n_params);
        assert_int_equal(said.dtype, so.dtype);
        assert_int_equal(said.n_kv_heads, so.n_kv_heads);
        assert_in_range(said.bytes, so.bytes - so.bytes / 8, so.bytes + so.bytes / 8);
        renyi_lm_free(lm);
    }
    unlink(path);
    fix_free(&f);
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

static double distance(const float *got, const double *want)
{
    double far = 0.0, length = 0.0;
    for (size_t i = 0; i < LLAMA_VOCAB; i++) {
        far += pow((double)got[i] - want[i], 2.0);
        length += want[i] * want[i];
    }
    return isfinite(far) ? sqrt(far / length) : INFINITY;
}

/* One token at a time, with some passes of many rows. */
static void check_level(const fixture *f, renyi_cpu level, renyi_dtype dtype, uint32_t bits,
                        double tolerance)
{
    static double want[N][LLAMA_VOCAB];
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level, .dtype = dtype};
    renyi_lm *lm = open_lm(f, &opt);
    renyi_lm_session *s = open_session(lm, 0, 2, bits);
    float got[LLAMA_VOCAB];
    double worst = 0.0;
    llama_reference(f, tokens, N, want);
    for (uint32_t i = 0, n; i < N; i += n) {
        n = i % 37 == 36 ? 20 : 1;
        if (n > N - i) n = N - i;
        assert_int_equal(renyi_lm_position(s), i);
        assert_ok(renyi_lm_feed(s, rows + i, n, got, err));
        worst = fmax(worst, distance(got, want[i + n - 1]));
    }
    if (worst > tolerance)
        fail_msg("%s %s %u: %g off", renyi_cpu_name(level), renyi_dtype_name(dtype), bits, worst);
    renyi_lm_session_free(s);
    renyi_lm_free(lm);
}

static void test_reference(void **state)
{
    (void)state;
    fixture f;
    llama_make(&f);
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
        check_level(&f, (renyi_cpu)level, RENYI_DTYPE_F32, 0, 1e-5);
        check_level(&f, (renyi_cpu)level, RENYI_DTYPE_F32, 16, 1e-2);
        for (int dtype = RENYI_DTYPE_BF16; dtype <= RENYI_DTYPE_INT8; dtype++)
            check_level(&f, (renyi_cpu)level, (renyi_dtype)dtype, 0, 0.3); /* of 24 channels */
    }
    fix_free(&f);
}

/* 4 bits are too few for 24 channels to be accurate, but all levels give the same error. */
static void test_int4(void **state)
{
    (void)state;
    float want[LLAMA_VOCAB], got[LLAMA_VOCAB];
    double exact[LLAMA_VOCAB];
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
        const renyi_options opt = {
            .struct_size = sizeof opt, .cpu = (renyi_cpu)level, .dtype = RENYI_DTYPE_INT4};
        renyi_lm_info info;
        renyi_lm *lm = open_default(&opt);
        renyi_lm_get_info(lm, &info);
        assert_int_equal(info.dtype, RENYI_DTYPE_INT4);
        answer(lm, 1, level == RENYI_CPU_SCALAR ? want : got);
        renyi_lm_free(lm);
        for (size_t i = 0; i < LLAMA_VOCAB; i++) exact[i] = (double)want[i];
        if (level > RENYI_CPU_SCALAR) assert_true(distance(got, exact) < 0.1);
    }
}

/* A row has the same bits alone and in any pass. */
static void test_company(void **state)
{
    (void)state;
    static const uint32_t plans[][2] = {{1, 1}, {100, 3}, {512, 2}};
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
        const renyi_options opt = {.struct_size = sizeof opt, .cpu = (renyi_cpu)level};
        renyi_lm *lm = open_default(&opt);
        float want[LLAMA_VOCAB], got[LLAMA_VOCAB];
        renyi_lm_session *s = open_session(lm, 0, 1, 0);
        for (uint32_t i = 0, n = 1; i < N; i += n)
            assert_ok(renyi_lm_feed(s, rows + i, n, want, err));
        renyi_lm_session_free(s);
        for (size_t p = 0; p < sizeof plans / sizeof plans[0]; p++) {
            s = open_session(lm, plans[p][0], plans[p][1], 0);
            assert_ok(renyi_lm_feed(s, rows, N, got, err));
            assert_memory_equal(want, got, sizeof want);
            renyi_lm_session_free(s);
        }
        renyi_lm_free(lm);
    }
}

/* ---- layouts ------------------------------------------------------------------------------- */

static void test_layouts(void **state)
{
    (void)state;
    static const char *const names[][4] = {
        {"model.", "", "model.mm_projector.0.weight", "llama"},
        {"language_model.model.", "language_model.", "vision_tower.vision_model.x", "llava-hf"},
        {"model.language_model.", "", "model.multi_modal_projector.x", "llava-hf-5"}};
    float want[LLAMA_VOCAB], got[LLAMA_VOCAB];
    renyi_lm *lm = open_default(NULL);
    answer(lm, 30, want);
    renyi_lm_free(lm);
    for (size_t i = 0; i < 3; i++) {
        fixture f;
        renyi_lm_info info;
        llama_make(&f);
        llama_rename(&f, names[i][0], names[i][1], names[i][2]);
        fix_add_zeros(&f, "model.layers.0.self_attn.rotary_emb.inv_freq", 4);
        lm = open_lm(&f, NULL);
        renyi_lm_get_info(lm, &info);
        assert_string_equal(info.layout, names[i][3]);
        assert_int_equal(info.image, 60);
        answer(lm, 30, got);
        assert_memory_equal(want, got, sizeof want);
        renyi_lm_free(lm);
        fix_free(&f);
    }
}

/* Tied weights: the token table is the output matrix. */
static void test_tied(void **state)
{
    (void)state;
    float want[LLAMA_VOCAB], got[LLAMA_VOCAB];
    fixture f;
    renyi_lm_info twice, once;
    llama_make(&f);
    memcpy((void *)(uintptr_t)fix_find(&f, "lm_head.weight")->data,
           fix_find(&f, "model.embed_tokens.weight")->data,
           LLAMA_VOCAB * LLAMA_DIM * sizeof(float));
    renyi_lm *lm = open_lm(&f, NULL);
    renyi_lm_get_info(lm, &twice);
    answer(lm, 9, want);
    renyi_lm_free(lm);
    fix_remove(&f, "lm_head.weight");
    f.meta[1] = "{\"tie_word_embeddings\": true, " LLAMA_NUMBERS "}";
    lm = open_lm(&f, NULL);
    renyi_lm_get_info(lm, &once);
    answer(lm, 9, got);
    renyi_lm_free(lm);
    fix_free(&f);
    assert_memory_equal(want, got, sizeof want);
    assert_int_equal(once.tied, 1);
    assert_int_equal(once.n_params, twice.n_params - LLAMA_VOCAB * LLAMA_DIM);
}

/* Keys that llava-hf's configs leave out have the defaults of transformers: 32 heads, no shared
 * keys. */
static void test_silent_config(void **state)
{
    (void)state;
    fixture f;
    renyi_lm_info info;
    ry_rng rng = ry_rng_new(1);
    llama_make(&f);
    for (unsigned i = 0; i < LLAMA_LAYERS; i++) {
        static const char *const parts[] = {"q", "k", "v", "o"};
        for (int k = 0; k < 4; k++) {
            char name[96];
            snprintf(name, sizeof name, "model.layers.%u.self_attn.%s_proj.weight", i, parts[k]);
            fix_remove(&f, name);
            llama_add(&f, &rng, name, k == 3 ? LLAMA_DIM : 64, k == 3 ? 64 : LLAMA_DIM);
        }
    }
    f.meta[1] = "{\"text_config\": {\"head_dim\": 2}}";
    renyi_lm *lm = open_lm(&f, NULL);
    renyi_lm_get_info(lm, &info);
    assert_int_equal(info.n_heads, 32);
    assert_int_equal(info.n_kv_heads, 32);
    assert_int_equal(info.context, 2048);
    assert_int_equal(info.bos, 1);
    assert_int_equal(info.eos, 2);
    assert_true(info.rope_theta == 10000.0 && info.norm_eps == 1e-6);
    renyi_lm_free(lm);
    fix_free(&f);
}

/* ---- sequences ----------------------------------------------------------------------------- */

/* The embedding of a token gives the same logits as its id. */
static void test_embeddings(void **state)
{
    (void)state;
    float want[LLAMA_VOCAB], got[LLAMA_VOCAB];
    renyi_lm_input mixed[40];
    fixture f;
    llama_make(&f);
    const float *table = fix_find(&f, "model.embed_tokens.weight")->data;
    renyi_lm *lm = open_lm(&f, NULL);
    for (size_t i = 0; i < 40; i++)
        mixed[i] = i % 3 ? (renyi_lm_input){table + tokens[i] * LLAMA_DIM, -200} : rows[i];
    renyi_lm_session *s = open_session(lm, 0, 2, 0);
    assert_ok(renyi_lm_feed(s, mixed, 40, got, err));
    answer(lm, 40, want);
    assert_memory_equal(want, got, sizeof want);
    renyi_lm_session_free(s);
    renyi_lm_free(lm);
    fix_free(&f);
}

static void test_rewind(void **state)
{
    (void)state;
    float want[LLAMA_VOCAB], got[LLAMA_VOCAB];
    renyi_error e = {0};
    renyi_lm *lm = open_default(NULL);
    renyi_lm_session *s = open_session(lm, 0, 2, 0);
    assert_ok(renyi_lm_feed(s, rows, 70, want, err));
    assert_ok(renyi_lm_rewind(s, 30, err));
    assert_int_equal(renyi_lm_position(s), 30);
    assert_ok(renyi_lm_feed(s, rows + 100, 50, NULL, err)); /* another continuation */
    assert_ok(renyi_lm_rewind(s, 30, err));
    assert_ok(renyi_lm_feed(s, rows + 30, 40, got, err));
    assert_memory_equal(want, got, sizeof want);
    assert_int_equal(renyi_lm_rewind(s, 71, &e), RENYI_ERR_ARG);
    assert_says(&e, "row 71 of a sequence of 70");
    renyi_lm_session_free(s);
    renyi_lm_free(lm);
}

static void test_overflow(void **state)
{
    (void)state;
    float logits[LLAMA_VOCAB];
    renyi_error e = {0};
    const renyi_lm_session_options opt = {.struct_size = sizeof opt, .max_context = 21};
    renyi_lm *lm = open_default(NULL);
    renyi_lm_session *s;
    assert_ok(renyi_lm_session_new(&s, lm, &opt, err));
    assert_int_equal(renyi_lm_max_context(s), 21);
    assert_int_equal(renyi_lm_feed(s, rows, 22, logits, &e), RENYI_ERR_LIMIT);
    assert_says(&e, "it has 0 rows, and 22 more do not fit into 21");
    assert_ok(renyi_lm_feed(s, rows, 21, logits, err));
    assert_int_equal(renyi_lm_feed(s, rows, 1, logits, &e), RENYI_ERR_LIMIT);
    assert_says(&e, "the context is full: it has 21 rows");
    assert_int_equal(renyi_lm_position(s), 21);
    renyi_lm_session_free(s);
    renyi_lm_free(lm);
}

static int stop_first(void *user, uint64_t done, uint64_t total)
{
    *(uint64_t *)user = done;
    assert_int_equal(total, N);
    return 1;
}

static void test_progress(void **state)
{
    (void)state;
    uint64_t done = 0;
    float want[LLAMA_VOCAB], got[LLAMA_VOCAB];
    renyi_error e = {0};
    renyi_lm *lm = open_default(NULL);
    renyi_lm_session_options opt = {
        .struct_size = sizeof opt, .max_rows = 64, .progress = stop_first, .progress_user = &done};
    renyi_lm_session *s;
    assert_ok(renyi_lm_session_new(&s, lm, &opt, err));
    assert_int_equal(renyi_lm_feed(s, rows, N, got, &e), RENYI_ERR_ABORTED);
    assert_int_equal(done, 64);
    assert_int_equal(renyi_lm_position(s), 64);
    renyi_lm_session_free(s);
    opt.progress = NULL;
    assert_ok(renyi_lm_session_new(&s, lm, &opt, err));
    assert_ok(renyi_lm_feed(s, rows, 64, NULL, err));
    assert_ok(renyi_lm_feed(s, rows + 64, N - 64, got, err));
    answer(lm, N, want);
    assert_memory_equal(want, got, sizeof want);
    renyi_lm_session_free(s);
    renyi_lm_free(lm);
}

/* ---- errors -------------------------------------------------------------------------------- */

static void expect(const fixture *f, renyi_status code, const char *word)
{
    assert_refused(f, renyi_lm, renyi_lm_open(&it, path, NULL, err), code, word);
}

static void test_bad_files(void **state)
{
    (void)state;
    fixture f;
    fix_make(&f, "vit_tiny_patch16_32");
    expect(&f, RENYI_ERR_UNSUPPORTED, "no Llama in it");
    fix_free(&f);

    llama_make(&f);
    fix_remove(&f, "model.layers.1.mlp.up_proj.weight");
    fix_add_zeros(&f, "model.layers.0.self_attn.q_proj.bias", 3);
    expect(&f, RENYI_ERR_FORMAT, "not as a Llama in llama names has them");
    expect(&f, RENYI_ERR_FORMAT, "missing model.layers.1.mlp.up_proj.weight");
    expect(&f, RENYI_ERR_FORMAT, "unknown model.layers.0.self_attn.q_proj.bias");
    fix_free(&f);

    llama_make(&f);
    fix_remove(&f, "lm_head.weight");
    expect(&f, RENYI_ERR_FORMAT, "lm_head.weight is missing");
    fix_free(&f);

    llama_make(&f);
    ((float *)(uintptr_t)fix_find(&f, "model.embed_tokens.weight")->data)[30] = NAN;
    expect(&f, RENYI_ERR_FORMAT, "holds NaN at element 30");
    expect(&f, RENYI_ERR_FORMAT, "the file is damaged, download or convert it again");
    fix_free(&f);
}

static void test_bad_configs(void **state)
{
    (void)state;
    static const struct {
        const char *config, *word;
        renyi_status code;
    } cases[] = {
        {"{\"hidden_size\": 32}", "hidden_size is 32", RENYI_ERR_FORMAT},
        {"{\"num_attention_heads\": 5}", "5 heads and 5 of keys", RENYI_ERR_FORMAT},
        {"{\"num_attention_heads\": 0}", "0 heads", RENYI_ERR_FORMAT},
        {"{\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 4}", "4 wide",
         RENYI_ERR_FORMAT},
        {"{\"model_type\": \"gemma\", " LLAMA_NUMBERS "}", "'gemma'", RENYI_ERR_UNSUPPORTED},
        {"{\"hidden_act\": \"gelu\", " LLAMA_NUMBERS "}", "'gelu'", RENYI_ERR_UNSUPPORTED},
        {"{\"rope_parameters\": {\"rope_type\": \"llama3\"}, " LLAMA_NUMBERS "}", "'llama3'",
         RENYI_ERR_UNSUPPORTED},
        {"{\"text_config\": {\"head_dim\": 8, \"num_attention_heads\": 4, "
         "\"num_key_value_heads\": 2, \"rms_norm_eps\": 2}}",
         "rms_norm_eps is 2", RENYI_ERR_FORMAT},
    };
    fixture f;
    llama_make(&f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        f.meta[1] = cases[i].config;
        expect(&f, cases[i].code, cases[i].word);
    }
    f.meta[0] = NULL;
    expect(&f, RENYI_ERR_FORMAT, "no config.json");
    fix_free(&f);
}

static void test_bad_calls(void **state)
{
    (void)state;
    float logits[LLAMA_VOCAB];
    renyi_error e = {0};
    renyi_lm *lm = open_default(NULL);
    renyi_lm_session *s = open_session(lm, 0, 1, 0), *no = NULL;
    const renyi_lm_input bad[2] = {rows[0], {NULL, LLAMA_VOCAB}}, image = {NULL, -200};
    assert_int_equal(renyi_lm_feed(s, bad, 2, logits, &e), RENYI_ERR_ARG);
    assert_says(&e, "token 61 in row 1; the model has 0 to 60");
    assert_int_equal(renyi_lm_feed(s, &image, 1, logits, &e), RENYI_ERR_ARG);
    assert_says(&e, "token -200");
    assert_int_equal(renyi_lm_feed(s, rows, 0, logits, &e), RENYI_ERR_ARG);
    assert_int_equal(renyi_lm_feed(s, NULL, 1, logits, &e), RENYI_ERR_ARG);
    assert_int_equal(renyi_lm_position(s), 0);
    const renyi_lm_session_options wrong[] = {
        {.struct_size = sizeof wrong[0], .max_context = LLAMA_CONTEXT + 1},
        {.struct_size = sizeof wrong[0], .max_rows = 1u << 20},
        {.struct_size = sizeof wrong[0], .cache_bits = 8},
        {.struct_size = sizeof wrong[0], .n_threads = 5000}};
    static const char *const words[] = {
        "max_context (--max-context) 161; the model allows at most 160", "max_rows 1048576",
        "16 or 32", "5000 threads"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_not_equal(renyi_lm_session_new(&no, lm, &wrong[i], &e), RENYI_OK);
        assert_says(&e, words[i]);
        assert_null(no);
    }
    renyi_lm_session_free(s);
    renyi_lm_free(lm);
}

/* Every allocation fails once: an error that leaks nothing. A feed allocates nothing. */
static void test_memory(void **state)
{
    (void)state;
    fixture f;
    float logits[LLAMA_VOCAB];
    llama_make(&f);
    const char *path = fix_write(&f, "nomem.safetensors");
    for (size_t fail_at = 1, ok = 0; !ok; fail_at++) {
        test_heap heap = {.fail_at = fail_at};
        const renyi_options opt = {.struct_size = sizeof opt, .allocator = test_heap_of(&heap)};
        renyi_lm *lm = NULL;
        renyi_lm_session *s = NULL;
        renyi_error e = {0};
        renyi_status st = renyi_lm_open(&lm, path, &opt, &e);
        if (!st) st = renyi_lm_session_new(&s, lm, NULL, &e);
        assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
        ok = st == RENYI_OK && heap.calls < fail_at;
        if (ok) {
            const size_t calls = heap.calls;
            assert_true(renyi_lm_session_bytes(s) > 100000);
            assert_ok(renyi_lm_feed(s, rows, 70, logits, err));
            assert_int_equal(heap.calls, calls);
        }
        renyi_lm_session_free(s);
        renyi_lm_free(lm);
        assert_int_equal(heap.live, 0);
    }
    unlink(path);
    fix_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),          cmocka_unit_test(test_reference),
        cmocka_unit_test(test_int4),          cmocka_unit_test(test_company),
        cmocka_unit_test(test_layouts),       cmocka_unit_test(test_tied),
        cmocka_unit_test(test_silent_config), cmocka_unit_test(test_embeddings),
        cmocka_unit_test(test_rewind),        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_progress),      cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_bad_configs),   cmocka_unit_test(test_bad_calls),
        cmocka_unit_test(test_memory),        cmocka_unit_test(test_describe),
    };
    make_rows();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
