/* test_golden_tokenizer.c - published tokenizers against their references: CLIP's ids, Llama's ids
 * as SentencePiece 0.2 gives them, LLaVA's prompt, and a text that a small Llama wrote.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "fixtures/shared_files.h"
#include "formats/safetensors.h"
#include "renyi/clip.h"
#include "renyi/llava.h"

#include <string.h>

#include "test.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void test_clip_ids(void **state)
{
    const char *path = shared_path("golden/clip_tiny.safetensors");
    const char *merges = shared_path("data/tokenizers/bpe_simple_vocab_16e6.txt.gz");
    renyi_tokenizer *t;
    renyi_tokenizer_info info;
    ry_tensors *golden;
    json_t *texts;
    renyi_error err = {0};
    (void)state;
    if (!path || !merges) skip();
    if (renyi_tokenizer_open(&t, merges, NULL, &err)) fail_msg("%s", err.message);
    renyi_tokenizer_get_info(t, &info);
    assert_int_equal(info.n_ids, 49408);
    assert_int_equal(info.n_merges, 48894);
    assert_int_equal(info.sot, 49406);
    assert_int_equal(info.eot, 49407);
    if (ry_safetensors_open(&golden, path, NULL, NULL, &err)) fail_msg("%s", err.message);
    const char *list = ry_tensors_meta(golden, "texts");
    const ry_tensor *want = ry_tensors_find(golden, "text.ids");
    assert_non_null(want);
    if (ry_json_parse(&texts, list, strlen(list), "texts", NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(want->shape[0], json_array_size(texts));
    assert_int_equal(want->shape[1], RENYI_CLIP_CONTEXT);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        int32_t ids[RENYI_CLIP_CONTEXT];
        const json_t *text = json_array_get(texts, i);
        if (renyi_tokenizer_encode(t, json_string_value(text), json_string_length(text),
                                   RENYI_CLIP_CONTEXT, 1, ids, NULL, &err))
            fail_msg("%s", err.message);
        assert_memory_equal(ids, (const char *)want->data + i * sizeof ids, sizeof ids);
    }
    json_decref(texts);
    ry_tensors_free(golden);
    renyi_tokenizer_free(t);
}

static renyi_lm_tokenizer *open_shared(const char *name)
{
    const char *path = shared_path(name);
    renyi_lm_tokenizer *t;
    renyi_error err = {0};
    if (!path) skip();
    if (renyi_lm_tokenizer_open(&t, path, NULL, &err)) fail_msg("%s", err.message);
    return t;
}

static void test_llama_ids(void **state)
{
    static const struct {
        const char *text;
        int32_t ids[16]; /* ends with a 0 */
    } cases[] = {
        {"Hello world", {15043, 3186}},
        {"", {0}},
        {" ", {259}},
        {"  two  blanks ", {259, 1023, 29871, 1999, 1331, 29871}},
        {"What is on the plate?", {1724, 338, 373, 278, 15284, 29973}},
        {"\n", {29871, 13}},
        {"caf\xc3\xa9 na\xc3\xafve", {274, 28059, 1055, 30085, 345}},
        {"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xf0\x9f\x98\x80!",
         {29871, 30325, 30346, 30968, 29871, 243, 162, 155, 131, 29991}},
        {"12345 3.14",
         {29871, 29896, 29906, 29941, 29946, 29945, 29871, 29941, 29889, 29896, 29946}},
        {"a\tb\r\nc", {263, 12, 29890, 30004, 13, 29883}},
        {"</s><image>", {1533, 29879, 5299, 3027, 29958}},
        {"\xe2\x96\x81x", {29871, 921}},
        {"def f(x):\n    return x", {822, 285, 29898, 29916, 1125, 13, 1678, 736, 921}},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", {263, 27137, 27137, 27137, 27137, 27137, 27137, 27137}},
        {"tokenization", {5993, 2133}}};
    renyi_lm_tokenizer *t = open_shared("data/tokenizers/llama.tokenizer.model");
    renyi_lm_tokenizer_info info;
    (void)state;
    renyi_lm_tokenizer_get_info(t, &info);
    assert_int_equal(info.n_ids, 32000);
    assert_int_equal(info.bos, 1);
    assert_int_equal(info.eos, 2);
    assert_int_equal(info.unk, 0);
    assert_int_equal(info.image, -1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        int32_t ids[64];
        char back[64];
        size_t n, want = 0;
        renyi_error err = {0};
        while (cases[i].ids[want]) want++;
        if (renyi_lm_tokenizer_encode(t, cases[i].text, strlen(cases[i].text), RENYI_LM_PLAIN, ids,
                                      64, &n, &err))
            fail_msg("%s", err.message);
        assert_int_equal(n, want);
        assert_memory_equal(ids, cases[i].ids, n * sizeof *ids);
        assert_int_equal(renyi_lm_tokenizer_decode(t, ids, n, 0, back, 64, NULL, &err), RENYI_OK);
        if (strcmp(cases[i].text, "\xe2\x96\x81x") != 0) /* decodes to a blank */
            assert_string_equal(back, cases[i].text);
    }
    renyi_lm_tokenizer_free(t);
}

/* The two texts around the image as SentencePiece encodes them, each with a leading blank. */
static void test_prompt(void **state)
{
    static const int32_t want[] = {
        1,    319,   13563, 1546,  263,   12758, 1404,  322,   385,   23116, 21082, 20255, 29889,
        450,  20255, 4076,  8444,  29892, 13173, 29892, 322,   1248,  568,   6089,  304,   278,
        1404, 29915, 29879, 5155,  29889, 3148,  1001,  29901, 29871, -200,  29871, 13,    5618,
        338,  373,   278,   15284, 29973, 319,   1799,  9047,  13566, 29901};
    const renyi_lvlm_turn turn = {"What is on the plate?", NULL};
    renyi_lm_tokenizer *t = open_shared("data/tokenizers/llama.tokenizer.model");
    int32_t ids[64];
    size_t n;
    renyi_error err = {0};
    (void)state;
    if (renyi_lvlm_prompt(t, &turn, 1, NULL, ids, 64, &n, &err)) fail_msg("%s", err.message);
    assert_int_equal(n, COUNT(want));
    assert_memory_equal(ids, want, sizeof want);
    renyi_lm_tokenizer_free(t);
}

/* 200 ids that the model wrote: their text, which encodes to the same ids. */
static void test_story(void **state)
{
    static const char begin[] = "Once upon a time, there was a little girl named Lily. She loved";
    const char *path = shared_path("golden/stories260K.safetensors");
    if (!path) skip();
    renyi_lm_tokenizer *t = open_shared("models/stories260K");
    ry_tensors *golden;
    renyi_error err = {0};
    char text[1024];
    int32_t story[200], ids[256];
    size_t n, length;
    (void)state;
    if (ry_safetensors_open(&golden, path, NULL, NULL, &err)) fail_msg("%s", err.message);
    const ry_tensor *greedy = ry_tensors_find(golden, "greedy");
    assert_non_null(greedy);
    assert_int_equal(greedy->shape[0], 200);
    for (size_t i = 0; i < 200; i++) {
        const size_t size = greedy->bytes / 200;
        int64_t id = 0; /* 32 or 64 bits, little-endian */
        memcpy(&id, (const char *)greedy->data + i * size, size);
        story[i] = (int32_t)id;
    }
    assert_int_equal(renyi_lm_tokenizer_decode(t, story, 200, 0, text, 1024, &length, &err),
                     RENYI_OK);
    assert_memory_equal(text, begin, sizeof begin - 1);
    assert_non_null(strstr(text, "it was too high.\nLily's mom said, \""));
    assert_int_equal(renyi_lm_tokenizer_encode(t, text, length, RENYI_LM_BOS, ids, 256, &n, &err),
                     RENYI_OK);
    assert_int_equal(n, 200);
    assert_memory_equal(ids, story, sizeof story);
    ry_tensors_free(golden);
    renyi_lm_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_clip_ids),
                                       cmocka_unit_test(test_llama_ids),
                                       cmocka_unit_test(test_prompt), cmocka_unit_test(test_story)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
