/* test_siglip_tokenizer.c - the tokenizers of SigLIP (T5's unigram model) and SigLIP 2 (Gemma's
 * BPE): ids of odd strings equal to those of transformers (tests/tokenizers, written by
 * tools/ref/siglip_tokenizers.py); padding, cleaning, configs beside the file, errors.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* mkdtemp */
#include "base/json.h"
#include "base/utf8.h"
#include "fixtures/test_folder.h"
#include "fixtures/test_heap.h"
#include "renyi/clip.h"
#include "renyi/lm.h"

#include <unistd.h>

#define FIXTURES RENYI_SOURCE_DIR "/tests/tokenizers/"

/* A unigram model in JSON, as T5's: "ab" is better than "a" and "b". */
#define UNIGRAM(normalizer, post)                                                          \
    "{\"normalizer\": " normalizer ", \"pre_tokenizer\": {\"type\": \"Metaspace\", "       \
    "\"replacement\": \"\\u2581\", \"prepend_scheme\": \"always\", \"split\": true}, "     \
    "\"post_processor\": " post ", \"added_tokens\": [{\"id\": 1, \"content\": \"</s>\", " \
    "\"special\": true}], \"model\": {\"type\": \"Unigram\", \"unk_id\": 2, \"vocab\": "   \
    "[[\"<pad>\", 0], [\"</s>\", 0], [\"<unk>\", 0], [\"\\u2581\", -2], [\"a\", -3], "     \
    "[\"b\", -3], [\"ab\", -4], [\"\\u2581a\", -2.5], [\"\\u2581b\\u2581a\", -1], [\"c\", -5]]}}"
#define ENDS \
    "{\"single\": [{\"Sequence\": {\"id\": \"A\"}}, {\"SpecialToken\": {\"id\": \"</s>\"}}]}"
#define OPEN_CLIP(clean) \
    "{\"model_cfg\": {\"text_cfg\": {\"tokenizer_kwargs\": {\"clean\": \"" clean "\"}}}}"

static renyi_tokenizer *open_path(const char *path)
{
    renyi_tokenizer *t = NULL;
    renyi_error err = {0};
    if (renyi_tokenizer_open(&t, path, NULL, &err)) fail_msg("%s", err.message);
    return t;
}

static void check_ids(const renyi_tokenizer *t, const char *text, const int32_t *want, size_t n)
{
    enum { CONTEXT = 512 };
    int32_t ids[CONTEXT];
    uint32_t count = 0;
    renyi_error err = {0};
    if (renyi_tokenizer_encode(t, text, strlen(text), CONTEXT, 0, ids, &count, &err))
        fail_msg("%s: %s", text, err.message);
    if (count != n || memcmp(ids, want, n * sizeof *ids) != 0) fail_msg("other ids: %s", text);
}

/* ---- odd strings ---------------------------------------------------------------------------- */

static void check_file(const char *tokenizer, const char *expected)
{
    renyi_tokenizer *t = open_path(tokenizer);
    renyi_error err = {0};
    json_t *list = NULL;
    assert_int_equal(ry_json_load_file(&list, expected, NULL, &err), RENYI_OK);
    assert_true(json_array_size(list) > 200);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i), *ids = json_array_get(row, 1);
        int32_t want[512];
        const size_t n = json_array_size(ids);
        for (size_t k = 0; k < n; k++)
            want[k] = (int32_t)json_integer_value(json_array_get(ids, k));
        check_ids(t, json_string_value(json_array_get(row, 0)), want, n);
    }
    json_decref(list);
    renyi_tokenizer_free(t);
}

static void test_odd_strings(void **state)
{
    (void)state;
    check_file(FIXTURES "siglip_spiece.model", FIXTURES "siglip_ids.json");
    check_file(FIXTURES "siglip2_tokenizer.json", FIXTURES "siglip2_ids.json");
}

/* ---- ids around a text ----------------------------------------------------------------------- */

static void test_padding(void **state)
{
    int32_t ids[8];
    uint32_t n = 0;
    renyi_error err = {0};
    renyi_tokenizer_info info;
    renyi_tokenizer *t = open_path(FIXTURES "siglip_spiece.model");
    (void)state;
    renyi_tokenizer_get_info(t, &info);
    assert_string_equal(info.kind, "unigram");
    assert_string_equal(info.clean, "siglip");
    assert_true(info.sot == -1 && info.eot == 1 && info.pad == 1);
    assert_int_equal(renyi_tokenizer_encode(t, "", 0, 8, 0, ids, &n, &err), RENYI_OK);
    assert_int_equal(n, 1);
    for (size_t i = 0; i < 8; i++) assert_int_equal(ids[i], 1);
    const char *text = "a photo of the golden retriever of the photo";
    assert_int_equal(renyi_tokenizer_encode(t, text, strlen(text), 8, 0, ids, &n, &err),
                     RENYI_ERR_LIMIT);
    assert_int_equal(renyi_tokenizer_encode(t, text, strlen(text), 8, 1, ids, &n, &err), RENYI_OK);
    assert_true(n == 8 && ids[7] == 1 && ids[6] != 1);
    renyi_tokenizer_free(t);
    t = open_path(FIXTURES "siglip2_tokenizer.json");
    renyi_tokenizer_get_info(t, &info);
    assert_string_equal(info.kind, "bpe");
    assert_string_equal(info.clean, "lower");
    assert_true(info.sot == -1 && info.eot == 1 && info.pad == 0);
    renyi_tokenizer_free(t);
}

static void test_decode(void **state)
{
    static const char text[] = "a photo of the cat";
    int32_t ids[64];
    char back[64];
    size_t length = 0;
    renyi_error err = {0};
    renyi_tokenizer *t = open_path(FIXTURES "siglip_spiece.model");
    (void)state;
    assert_int_equal(renyi_tokenizer_encode(t, text, strlen(text), 64, 0, ids, NULL, &err), 0);
    assert_int_equal(renyi_tokenizer_decode(t, ids, 64, back, sizeof back, &length, &err), 0);
    assert_string_equal(back, text);
    assert_int_equal(length, strlen(text));
    assert_int_equal(renyi_tokenizer_decode(t, ids, 64, back, 8, &length, &err), 0);
    assert_string_equal(back, "a photo");
    ids[0] = 1 << 20;
    assert_int_equal(renyi_tokenizer_decode(t, ids, 64, back, 8, NULL, &err), RENYI_ERR_ARG);
    renyi_tokenizer_free(t);
}

/* ---- JSON and configs beside it ----------------------------------------------------------------
 */

static void test_json(void **state)
{
    static const int32_t plain[] = {7, 5, 3, 2, 1}; /* _a b _ ? */
    static const int32_t inner[] = {3, 5, 7, 1};    /* the piece with a space inside is not used */
    renyi_tokenizer_info info;
    (void)state;
    put("t5/tokenizer.json", UNIGRAM("null", ENDS));
    put("t5/tokenizer_config.json",
        "{\"pad_token\": {\"content\": \"<pad>\"}, \"model_max_length\": "
        "1000000000000000019884624838656}");
    renyi_tokenizer *t = open_path(at("t5"));
    renyi_tokenizer_get_info(t, &info);
    assert_int_equal(info.pad, 0);
    check_ids(t, "AB. xyz", plain, 5); /* lower case, no punctuation; unknown ones become one */
    check_ids(t, "b   a", inner, 4);
    renyi_tokenizer_free(t);
    put("bos/tokenizer.json", UNIGRAM("{\"type\": \"Lowercase\"}", "null"));
    put("bos/tokenizer_config.json", "{\"add_eos_token\": false}");
    renyi_error err = {0};
    assert_int_equal(renyi_tokenizer_open(&t, at("bos"), NULL, &err), RENYI_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "no id ends a text"));
}

/* OpenCLIP replaces "_" and HTML references; transformers does not. */
static void test_open_clip(void **state)
{
    static const int32_t ids[] = {7, 7, 1};
    renyi_tokenizer *t = NULL;
    renyi_error err = {0};
    renyi_tokenizer_info info;
    (void)state;
    put("oc/tokenizer.json", UNIGRAM("null", ENDS));
    put("oc/open_clip_config.json", OPEN_CLIP("canonicalize"));
    t = open_path(at("oc"));
    renyi_tokenizer_get_info(t, &info);
    assert_string_equal(info.clean, "canonicalize");
    check_ids(t, "&#65;_a!", ids, 3);
    renyi_tokenizer_free(t);
    put("other/tokenizer.json", UNIGRAM("null", ENDS));
    put("other/open_clip_config.json", OPEN_CLIP("whitespace"));
    assert_int_equal(renyi_tokenizer_open(&t, at("other"), NULL, &err), RENYI_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "only canonicalize is supported"));
}

static void test_refused(void **state)
{
    static const struct {
        const char *normalizer, *words;
    } cases[] = {{"{\"type\": \"NFKD\"}", "\"normalizer\" has a step that is not known"},
                 {"{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"???\"}", "not base64"},
                 {"{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AAAAAAA=\"}",
                  "precompiled_charsmap) has 5 bytes, its trie 0"},
                 {"{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"BAAAAAAAAABh\"}",
                  "does not end with a text"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        renyi_tokenizer *t = NULL;
        renyi_error err = {0};
        snprintf(text, sizeof text, UNIGRAM("%s", ENDS), cases[i].normalizer);
        put("bad/tokenizer.json", text);
        assert_int_not_equal(renyi_tokenizer_open(&t, at("bad"), NULL, &err), RENYI_OK);
        if (!strstr(err.message, cases[i].words)) fail_msg("%s", err.message);
    }
    renyi_lm_tokenizer *lm = NULL; /* a language model has another kind */
    renyi_error err = {0};
    assert_int_equal(renyi_lm_tokenizer_open(&lm, FIXTURES "siglip_spiece.model", NULL, &err),
                     RENYI_ERR_UNSUPPORTED);
}

static void test_memory(void **state)
{
    static const char *const files[] = {FIXTURES "siglip_spiece.model",
                                        FIXTURES "siglip2_tokenizer.json"};
    static const char text[] = "A Photo of \xef\xbd\x81 \xe6\x97\xa5, the CAT</s> dog";
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        renyi_status st = RENYI_ERR_NOMEM;
        for (size_t k = 1; st == RENYI_ERR_NOMEM; k++) {
            test_heap heap = {.fail_at = k};
            const renyi_options opt = {.struct_size = sizeof opt, .allocator = test_heap_of(&heap)};
            renyi_tokenizer *t = NULL;
            renyi_error err = {0};
            int32_t ids[64];
            st = renyi_tokenizer_open(&t, files[i], &opt, &err);
            if (!st) st = renyi_tokenizer_encode(t, text, strlen(text), 64, 0, ids, NULL, &err);
            renyi_tokenizer_free(t);
            assert_int_equal(heap.live, 0);
        }
        assert_int_equal(st, RENYI_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_odd_strings), cmocka_unit_test(test_padding),
        cmocka_unit_test(test_decode),      cmocka_unit_test(test_json),
        cmocka_unit_test(test_open_clip),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
