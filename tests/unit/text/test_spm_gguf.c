/* test_spm_gguf.c - tokenizers of GGUF files: llama.cpp's ids (tools/ref/gguf_peers.py), texts of
 * ids, and values that are wrong.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/gguf_build.h"
#include "renyi/lm.h"

#include "base/json.h"
#include "text/spm.h"

#define FOLDER RENYI_SOURCE_DIR "/tests/gguf/"

/* ---- ids and texts ------------------------------------------------------------------------- */

static renyi_lm_tokenizer *open_tokenizer(const char *name)
{
    char path[512];
    renyi_lm_tokenizer *t;
    renyi_error err = {0};
    snprintf(path, sizeof path, FOLDER "%s.gguf", name);
    if (renyi_lm_tokenizer_open(&t, path, NULL, &err)) fail_msg("%s", err.message);
    return t;
}

/* The ids of one text, and its bytes from them. */
static void check_text(const renyi_lm_tokenizer *t, const json_t *entry, int is_exact)
{
    enum { MOST = 4096 };
    static int32_t ids[MOST];
    static char back[4 * MOST];
    const json_t *text = json_object_get(entry, "text"), *want = json_object_get(entry, "ids");
    const char *at = json_string_value(text);
    size_t n, length;
    renyi_error err = {0};
    if (renyi_lm_tokenizer_encode(t, at, json_string_length(text), 0, ids, MOST, &n, &err))
        fail_msg("%s", err.message);
    int is_equal = n == json_array_size(want);
    for (size_t i = 0; is_equal && i < n; i++)
        is_equal = ids[i] == (int32_t)json_integer_value(json_array_get(want, i));
    if (!is_equal) fail_msg("other ids than llama.cpp's: '%s'", at);
    if (renyi_lm_tokenizer_decode(t, ids, n, RENYI_LM_SPECIAL, back, sizeof back, &length, &err))
        fail_msg("%s", err.message);
    if (is_exact) assert_string_equal(back, at);
}

static size_t check_ids(const char *name, const char *kind, int is_exact)
{
    char path[512];
    renyi_lm_tokenizer_info info;
    renyi_error err = {0};
    json_t *all;
    snprintf(path, sizeof path, FOLDER "%s_ids.json", name);
    if (ry_json_load_file(&all, path, NULL, &err)) fail_msg("%s", err.message);
    renyi_lm_tokenizer *t = open_tokenizer(name);
    renyi_lm_tokenizer_get_info(t, &info);
    assert_string_equal(info.kind, kind);
    const size_t n = json_array_size(all);
    for (size_t i = 0; i < n; i++) check_text(t, json_array_get(all, i), is_exact);
    renyi_lm_tokenizer_free(t);
    json_decref(all);
    return n;
}

static void test_ids(void **state)
{
    (void)state;
    assert_true(check_ids("llama_32", "gguf llama", 0) > 150);
    assert_true(check_ids("llama_256", "gguf gpt2", 1) > 150); /* has every byte */
}

static void test_special_ids(void **state)
{
    (void)state;
    renyi_lm_tokenizer_info info;
    renyi_lm_tokenizer *t = open_tokenizer("llama_32");
    renyi_lm_tokenizer_get_info(t, &info);
    assert_int_equal(info.bos, 1);
    assert_int_equal(info.eos, 2);
    assert_int_equal(info.n_ids, 360);
    renyi_lm_tokenizer_free(t);
    t = open_tokenizer("llama_256");
    renyi_lm_tokenizer_get_info(t, &info);
    assert_int_equal(info.bos, -1); /* add_bos_token is false */
    assert_int_equal(info.eos, 2);
    renyi_lm_tokenizer_free(t);
}

/* ---- values that are wrong ----------------------------------------------------------------- */

static const char *const few[] = {"<s>", "a", "b", "ab"};

static void put_tokens(bytes *b, const char *const *tokens, size_t n)
{
    gguf_array(b, "tokenizer.ggml.tokens", RY_GGUF_TEXT, n);
    for (size_t i = 0; i < n; i++) gguf_text(b, tokens[i]);
}

static void put_types(bytes *b, uint32_t first)
{
    gguf_array(b, "tokenizer.ggml.token_type", RY_GGUF_I32, 4);
    put_uint(b, first, 4), put_uint(b, 1, 4), put_uint(b, 1, 4), put_uint(b, 1, 4);
}

static void put_merge(bytes *b, const char *merge)
{
    gguf_array(b, "tokenizer.ggml.merges", RY_GGUF_TEXT, 1);
    gguf_text(b, merge);
}

static void begin(bytes *b, const char *model, uint64_t n_values)
{
    gguf_begin(b, 3, 0, n_values + 1);
    gguf_string(b, "tokenizer.ggml.model", model);
}

static void refuse(const bytes *b, renyi_status code, const char *needle)
{
    renyi_error err = {0};
    ry_gguf g;
    ry_spm *s;
    if (ry_gguf_parse(&g, b->data, b->size, "bad.gguf", NULL, NULL, &err))
        fail_msg("%s", err.message);
    const renyi_status st = ry_spm_read_gguf(&s, &g, "bad.gguf", NULL, &err);
    ry_gguf_free(&g, NULL);
    assert_null(s);
    if (st != code) fail_msg("status %d instead of %d: %s", st, code, err.message);
    expect_message(&err, "bad.gguf: ");
    expect_message(&err, needle);
}

static void test_wrong_values(void **state)
{
    (void)state;
    static const char *const not_letters[] = {"<s>", "a", "\xe6\x97\xa5", "ab"};
    static const char *const twice[] = {"<s>", "a", "a", "ab"};
    static const char *const broken[] = {"<s>", "a", "\xff", "ab"};
    bytes b;
    begin(&b, "llama", 0);
    refuse(&b, RENYI_ERR_IO, "no tokenizer in this GGUF");
    begin(&b, "bert", 1), put_tokens(&b, few, 4);
    refuse(&b, RENYI_ERR_UNSUPPORTED, "is 'bert'; 'llama' and 'gpt2' are supported");
    begin(&b, "llama", 1), gguf_u32(&b, "tokenizer.ggml.tokens", 3);
    refuse(&b, RENYI_ERR_FORMAT, "tokenizer.ggml.tokens is not an array of texts");
    begin(&b, "llama", 1), put_tokens(&b, few, 4);
    refuse(&b, RENYI_ERR_FORMAT, "tokenizer.ggml.scores is missing");
    begin(&b, "llama", 2), put_tokens(&b, few, 4);
    gguf_array(&b, "tokenizer.ggml.scores", RY_GGUF_F32, 3), put_uint(&b, 0, 12);
    refuse(&b, RENYI_ERR_FORMAT, "tokenizer.ggml.scores is not an array of numbers, one for each");
    begin(&b, "gpt2", 1), put_tokens(&b, few, 4);
    refuse(&b, RENYI_ERR_FORMAT, "tokenizer.ggml.merges is not an array of texts");
    begin(&b, "gpt2", 3), put_tokens(&b, few, 4), put_types(&b, 3), put_merge(&b, "a b");
    refuse(&b, RENYI_ERR_UNSUPPORTED, "tokenizer.ggml.pre is ''; 'smollm' and 'gpt-2'");
    begin(&b, "gpt2", 3), put_tokens(&b, few, 4), put_types(&b, 7), put_merge(&b, "a b");
    refuse(&b, RENYI_ERR_FORMAT, "token 0: its type is 7; 1 to 6 expected");
    begin(&b, "gpt2", 3), put_tokens(&b, not_letters, 4), put_types(&b, 3), put_merge(&b, "a b");
    refuse(&b, RENYI_ERR_FORMAT, "token 2: U+65E5 stands for no byte");
    begin(&b, "gpt2", 3), put_tokens(&b, twice, 4), put_types(&b, 3), put_merge(&b, "a b");
    refuse(&b, RENYI_ERR_FORMAT, "token 2: 'a' occurs twice");
    begin(&b, "gpt2", 3), put_tokens(&b, broken, 4), put_types(&b, 3), put_merge(&b, "a b");
    refuse(&b, RENYI_ERR_FORMAT, "token 2: its text is not UTF-8");
    const char *const merges[] = {"ab", "a c", "b a"};
    const char *const why[] = {"two symbols and a space between them expected",
                               "'c' is neither in the vocabulary",
                               "'ba' is neither in the vocabulary"};
    for (int i = 0; i < 3; i++) {
        begin(&b, "gpt2", 4), put_tokens(&b, few, 4), put_types(&b, 3), put_merge(&b, merges[i]);
        gguf_string(&b, "tokenizer.ggml.pre", "gpt-2");
        refuse(&b, RENYI_ERR_FORMAT, why[i]);
    }
}

/* GPT-2's rule keeps digits together, SmolLM's does not. */
static void test_splits(void **state)
{
    (void)state;
    static const char *const tokens[] = {"1", "2", "12", "\xc4\xa0",
                                         "\xc4\xa0"
                                         "1"};
    for (int is_smol = 0; is_smol < 2; is_smol++) {
        bytes b;
        ry_gguf g;
        ry_spm *s;
        int32_t ids[8] = {0};
        ry_id_sink sink = {ids, 8, 0};
        renyi_error err = {0};
        begin(&b, "gpt2", 3), put_tokens(&b, tokens, 5), put_merge(&b, "1 2");
        gguf_string(&b, "tokenizer.ggml.pre", is_smol ? "smollm" : "gpt-2");
        assert_int_equal(ry_gguf_parse(&g, b.data, b.size, "m", NULL, NULL, &err), RENYI_OK);
        if (ry_spm_read_gguf(&s, &g, "m", NULL, &err)) fail_msg("%s", err.message);
        assert_int_equal(ry_spm_encode(s, "12x 12", 6, 0, 0, &sink, &err), RENYI_OK);
        static const int32_t gpt2[] = {2, 3, 2}, smol[] = {0, 1, 3, 0, 1}; /* no symbol for x */
        assert_int_equal(sink.n, is_smol ? 5 : 3);
        assert_memory_equal(ids, is_smol ? smol : gpt2, sink.n * sizeof *ids);
        ry_spm_free(s);
        ry_gguf_free(&g, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_special_ids),
        cmocka_unit_test(test_wrong_values),
        cmocka_unit_test(test_splits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
