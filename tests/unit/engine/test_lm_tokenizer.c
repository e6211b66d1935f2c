/* test_lm_tokenizer.c - the public functions of Llama's tokenizer and LLaVA's prompt: files and
 * folders, buffer sizes, memory, streams, conversations.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* mkdtemp */
#include "base/rng.h"
#include "base/utf8.h"
#include "fixtures/spm_fixture.h"
#include "fixtures/test_folder.h"
#include "fixtures/test_heap.h"
#include "renyi/llava.h"

#define P(i) (FIRST_PIECE + (i))
#define TOKENIZER                                                                              \
    "{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": " \
    "\"" BLANK "\"}, \"model\": {\"unk_token\": \"<unk>\", \"vocab\": {\"<unk>\": 0, \"a\": "  \
    "1, \"b\": 2, \"ab\": 3}, \"merges\": [\"a b\"]}}"

static void put_pieces(const char *name)
{
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    fputs("[{\"piece\": \"<unk>\", \"score\": 0}, {\"piece\": \"\\n<s>\\n\", \"score\": 0}, "
          "{\"piece\": \"\\n</s>\\n\", \"score\": 0}",
          f);
    for (int b = 0; b < 256; b++) fprintf(f, ", {\"piece\": \"<0x%02X>\", \"score\": 0}", b);
    fputs(", {\"piece\": \" a\", \"score\": 0}, {\"piece\": \"a\", \"score\": -1}]", f);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
    static proto p;
    if (folder_make(state) || mkdir(at("none"), 0777) || mkdir(at("pieces"), 0777)) return -1;
    put_small(&p, 1);
    put_bytes("all/tokenizer.model", p.at, p.n);
    put("all/tokenizer.json", TOKENIZER);
    put_bytes("model/tokenizer.model", p.at, p.n);
    put_bytes("added/tokenizer.model", p.at, p.n);
    put("added/added_tokens.json", "{\"<image>\": 280, \"</s>\": 2}");
    put("added/tokenizer_config.json", "{\"legacy\": false}");
    put_bytes("bad/tokenizer.model", p.at, p.n);
    put("bad/added_tokens.json", "{\"<image>\": 5}");
    put("bad/words.txt", "hello");
    put_pieces("pieces/pieces.json");
    return 0;
}

static renyi_lm_tokenizer *open_tokenizer(const char *name)
{
    renyi_lm_tokenizer *t = NULL;
    renyi_error err = {0};
    if (renyi_lm_tokenizer_open(&t, at(name), NULL, &err)) fail_msg("%s", err.message);
    return t;
}

static void expect_ids(const renyi_lm_tokenizer *t, const char *text, uint32_t flags,
                       const int32_t *want, size_t n)
{
    int32_t ids[64];
    size_t got;
    renyi_error err = {0};
    if (renyi_lm_tokenizer_encode(t, text, strlen(text), flags, ids, 64, &got, &err))
        fail_msg("%s", err.message);
    assert_int_equal(got, n);
    assert_memory_equal(ids, want, n * sizeof *ids);
}
#define COUNT(list) (sizeof(list) / sizeof *(list))
#define EXPECT_IDS(t, text, flags, ...)                        \
    expect_ids(t, text, flags, (const int32_t[]){__VA_ARGS__}, \
               COUNT(((const int32_t[]){__VA_ARGS__})))

/* ---- files --------------------------------------------------------------------------------- */

static void test_places(void **state)
{
    static const struct {
        const char *path, *source, *kind;
        uint32_t n_ids;
        int32_t eos, image;
    } cases[] = {
        {"all", "all/tokenizer.json", "tokenizer.json", 4, -1, -1},
        {"all/model-00001-of-00002.safetensors", "all/tokenizer.json", "tokenizer.json", 4, -1, -1},
        {"all/model.safetensors.index.json", "all/tokenizer.json", "tokenizer.json", 4, -1, -1},
        {"all/tokenizer.model", "all/tokenizer.model", "sentencepiece", P(14), 2, -1},
        {"model", "model/tokenizer.model", "sentencepiece", P(14), 2, -1},
        {"added", "added/tokenizer.model", "sentencepiece", 281, 2, 280},
        {"pieces", "pieces/pieces.json", "pieces.json", P(2), 2, -1}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        renyi_lm_tokenizer *t = open_tokenizer(cases[i].path);
        renyi_lm_tokenizer_info info;
        renyi_lm_tokenizer_get_info(t, &info);
        assert_string_equal(info.source, at(cases[i].source));
        assert_string_equal(info.kind, cases[i].kind);
        assert_int_equal(info.n_ids, cases[i].n_ids);
        assert_int_equal(info.eos, cases[i].eos);
        assert_int_equal(info.image, cases[i].image);
        assert_int_equal(info.unk, 0);
        renyi_lm_tokenizer_free(t);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *path, *words;
        renyi_status status;
    } cases[] = {{"none",
                  "none: no tokenizer in this folder: looked for tokenizer.json, "
                  "tokenizer.model and pieces.json",
                  RENYI_ERR_IO},
                 {"none/tokenizer.model", "No such file", RENYI_ERR_IO},
                 {"bad", "'<0x02>' and '<image>' have the same id, 5", RENYI_ERR_FORMAT},
                 {"bad/words.txt", "Protocol Buffer", RENYI_ERR_FORMAT}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        renyi_lm_tokenizer *t = (renyi_lm_tokenizer *)&t;
        renyi_error err = {0};
        const renyi_status st = renyi_lm_tokenizer_open(&t, at(cases[i].path), NULL, &err);
        assert_null(t);
        if (st != cases[i].status || !strstr(err.message, cases[i].words))
            fail_msg("%d: %s", st, err.message);
    }
    const renyi_options small = {.struct_size = sizeof small, .limits = {.max_header_bytes = 40}};
    renyi_lm_tokenizer *t;
    renyi_error err = {0};
    assert_int_equal(renyi_lm_tokenizer_open(&t, at("model"), &small, &err), RENYI_ERR_LIMIT);
    assert_int_equal(renyi_lm_tokenizer_open(NULL, "x", NULL, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_lm_tokenizer_open(&t, NULL, NULL, &err), RENYI_ERR_ARG);
}

static void test_memory(void **state)
{
    static const char *const files[] = {"all", "added", "pieces", "none"};
    (void)state;
    for (size_t i = 0; i < COUNT(files); i++) {
        renyi_status st = RENYI_ERR_NOMEM;
        for (size_t k = 1; st == RENYI_ERR_NOMEM; k++) {
            test_heap heap = {.fail_at = k};
            const renyi_options opt = {.struct_size = sizeof opt, .allocator = test_heap_of(&heap)};
            const renyi_lvlm_turn turn = {"the cat?", NULL};
            renyi_lm_tokenizer *t;
            renyi_error err = {0};
            int32_t ids[512];
            st = renyi_lm_tokenizer_open(&t, at(files[i]), &opt, &err);
            if (!st) st = renyi_lm_tokenizer_encode(t, "the", 3, 0, ids, 512, NULL, &err);
            if (!st && i) st = renyi_lvlm_prompt(t, &turn, 1, NULL, ids, 512, NULL, &err);
            renyi_lm_tokenizer_free(t);
            assert_int_equal(heap.live, 0);
        }
        assert_int_equal(st, i < 3 ? RENYI_OK : RENYI_ERR_IO);
    }
}

/* ---- texts --------------------------------------------------------------------------------- */

static void test_encode(void **state)
{
    renyi_lm_tokenizer *t = open_tokenizer("model"), *first = open_tokenizer("added");
    renyi_lm_tokenizer *merges = open_tokenizer("all");
    renyi_error err = {0};
    int32_t ids[3] = {0};
    size_t n;
    (void)state;
    EXPECT_IDS(t, "the", RENYI_LM_BOS, 1, P(2));
    EXPECT_IDS(t, "the</s>the", 0, P(2), 2, P(2));
    EXPECT_IDS(first, "the</s>a<image>a", 0, P(2), 2, P(11), 280, P(11)); /* not "legacy" */
    EXPECT_IDS(merges, "ab abc", 0, 3, 0, 3, 0);
    assert_int_equal(renyi_lm_tokenizer_encode(t, "the the", 7, 1, NULL, 0, &n, &err), RENYI_OK);
    assert_int_equal(n, 3);
    assert_int_equal(renyi_lm_tokenizer_encode(t, "the the", 7, 1, ids, 2, &n, &err),
                     RENYI_ERR_LIMIT);
    assert_non_null(strstr(err.message, "needs 3 tokens, and at most 2 fit"));
    assert_int_equal(n, 3);
    assert_int_equal(ids[1], P(2));
    assert_int_equal(ids[2], 0);
    assert_int_equal(renyi_lm_tokenizer_encode(merges, "a", 1, RENYI_LM_BOS, ids, 3, &n, &err),
                     RENYI_ERR_UNSUPPORTED);
    assert_int_equal(renyi_lm_tokenizer_encode(t, "caf\xe9", 4, 0, ids, 3, &n, &err),
                     RENYI_ERR_FORMAT);
    assert_int_equal(err.offset, 3);
    assert_int_equal(renyi_lm_tokenizer_encode(t, NULL, 0, 0, NULL, 0, &n, &err), RENYI_OK);
    assert_int_equal(n, 0);
    assert_int_equal(renyi_lm_tokenizer_encode(t, NULL, 1, 0, NULL, 0, &n, &err), RENYI_ERR_ARG);
    char *huge = calloc(RENYI_LM_TEXT_MAX + 1, 1);
    assert_non_null(huge);
    assert_int_equal(
        renyi_lm_tokenizer_encode(t, huge, RENYI_LM_TEXT_MAX + 1, 0, NULL, 0, &n, &err),
        RENYI_ERR_LIMIT);
    free(huge);
    renyi_lm_tokenizer_free(t);
    renyi_lm_tokenizer_free(first);
    renyi_lm_tokenizer_free(merges);
}

static void test_decode(void **state)
{
    renyi_lm_tokenizer *t = open_tokenizer("model");
    const int32_t ids[] = {1, P(2), 3 + 0xc3, 3 + 0xa9, P(2), 2};
    renyi_error err = {0};
    char text[32];
    size_t length = 0;
    (void)state;
    assert_int_equal(renyi_lm_tokenizer_decode(t, ids, 6, 0, text, 32, &length, &err), RENYI_OK);
    assert_string_equal(text, "the\xc3\xa9 the");
    assert_int_equal(length, 9);
    for (size_t size = 0; size < 10; size++) { /* whole characters only */
        memset(text, 'x', sizeof text);
        assert_int_equal(
            renyi_lm_tokenizer_decode(t, ids, 6, 0, size ? text : NULL, size, &length, &err),
            RENYI_OK);
        assert_int_equal(length, 9);
        const size_t want = !size ? 0 : size == 5 ? 3 : size - 1;
        if (size) assert_int_equal(strlen(text), want);
        assert_memory_equal(text, "the\xc3\xa9 the", want);
        assert_int_equal(text[size], 'x');
    }
    assert_int_equal(
        renyi_lm_tokenizer_decode(t, (const int32_t[]){-200}, 1, 0, text, 32, &length, &err),
        RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "id -200 is not in the vocabulary"));
    renyi_lm_tokenizer_free(t);
}

/* For any text, streaming its ids gives the text again, and the same as decode. */
static void check_round_trip(const renyi_lm_tokenizer *t, const char *text, size_t size)
{
    int32_t ids[512];
    char back[512], all[2048], part[RENYI_LM_STREAM_ROOM];
    size_t n, length, used = 0;
    renyi_lm_stream stream = {0};
    renyi_error err = {0};
    assert_int_equal(renyi_lm_tokenizer_encode(t, text, size, RENYI_LM_PLAIN, ids, 512, &n, &err),
                     RENYI_OK);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(renyi_lm_stream_put(t, &stream, ids[i], part, &length, &err), RENYI_OK);
        assert_int_equal(ry_utf8_valid(part, length), length);
        memcpy(all + used, part, length + 1);
        used += length;
    }
    renyi_lm_stream_end(&stream, part, &length);
    assert_int_equal(length, 0);
    assert_int_equal(renyi_lm_tokenizer_decode(t, ids, n, 0, back, sizeof back, &length, &err),
                     RENYI_OK);
    assert_int_equal(length, size);
    assert_int_equal(used, size);
    if (size) assert_memory_equal(all, text, size);
    assert_memory_equal(back, text, size);
}

static void test_any_text(void **state)
{
    renyi_lm_tokenizer *t = open_tokenizer("model");
    ry_rng rng = ry_rng_new(3);
    (void)state;
    for (int i = 0; i < 5000; i++) {
        char text[128];
        size_t n = 0;
        for (size_t k = ry_rng_next(&rng) % 24; k; k--) {
            static const char some[] = "  taahebc</s><image>\n";
            uint32_t c = (unsigned char)some[ry_rng_next(&rng) % (sizeof some - 1)];
            if (ry_rng_next(&rng) % 4 == 0) c = (uint32_t)(ry_rng_next(&rng) % 0x110000);
            if ((c < 0xd800 || c > 0xdfff) && c != 0x2581) n += ry_utf8_put(text + n, c);
        }
        check_round_trip(t, text, n);
    }
    renyi_lm_tokenizer_free(t);
}

/* ---- conversations ------------------------------------------------------------------------- */

/* The same, assembled here from texts and special ids. */
static size_t put_ids(const renyi_lm_tokenizer *t, const char *text, int32_t *ids)
{
    size_t n;
    renyi_error err = {0};
    if (renyi_lm_tokenizer_encode(t, text, strlen(text), 0, ids, 1024, &n, &err))
        fail_msg("%s", err.message);
    return n;
}

#define SYSTEM                                                                 \
    "A chat between a curious user and an artificial intelligence assistant. " \
    "The assistant gives helpful, detailed, and polite answers to the user's questions."

/* One question; then its answer and a second question with a special token, which is plain text. */
static void check_prompt(const renyi_lm_tokenizer *t, int has_blank)
{
    static const renyi_lvlm_turn first = {"the?", NULL};
    static const renyi_lvlm_turn both[] = {{"the?", "a cat"}, {"</s>", NULL}};
    static int32_t want[4096], got[1024];
    size_t n = 0, m;
    renyi_error err = {0};
    want[n++] = 1;
    n += put_ids(t, SYSTEM " USER: ", want + n);
    want[n++] = RENYI_LVLM_IMAGE;
    const size_t behind = n;
    n += put_ids(t, "\nthe? ASSISTANT:", want + n);
    if (renyi_lvlm_prompt(t, &first, 1, NULL, got, 1024, &m, &err)) fail_msg("%s", err.message);
    assert_int_equal(m, n);
    assert_memory_equal(got, want, n * sizeof *got);
    n = behind + put_ids(t, "\nthe? ASSISTANT: a cat", want + behind);
    if (renyi_lvlm_prompt_next(t, "</s>", want + n, 1024, &m, &err)) fail_msg("%s", err.message);
    assert_int_equal(want[n], 2);
    assert_int_equal(want[n + 1] == P(7), has_blank); /* before USER */
    for (size_t i = 1; i < m; i++) assert_int_not_equal(want[n + i], 2);
    n += m;
    if (renyi_lvlm_prompt(t, both, 2, NULL, got, 1024, &m, &err)) fail_msg("%s", err.message);
    assert_int_equal(m, n);
    assert_memory_equal(got, want, n * sizeof *got);
    assert_int_equal(renyi_lvlm_prompt(t, both, 2, NULL, got, 3, &m, &err), RENYI_ERR_LIMIT);
    assert_int_equal(m, n);
}

/* The image before the second question. */
static void check_image_turn(const renyi_lm_tokenizer *t)
{
    static const renyi_lvlm_turn both[] = {{"the?", "a cat"}, {"a?", NULL}};
    renyi_lvlm_prompt_options o = {.struct_size = sizeof o, .system = "", .image_turn = 1};
    static int32_t want[2048], got[1024];
    size_t n, m;
    renyi_error err = {0};
    want[0] = 1;
    n = 1 + put_ids(t, "USER: the? ASSISTANT: a cat</s>USER: ", want + 1);
    want[n++] = RENYI_LVLM_IMAGE;
    n += put_ids(t, "\na? ASSISTANT:", want + n);
    if (renyi_lvlm_prompt(t, both, 2, &o, got, 1024, &m, &err)) fail_msg("%s", err.message);
    assert_int_equal(m, n);
    assert_memory_equal(got, want, n * sizeof *got);
    o.image_turn = 2;
    assert_int_equal(renyi_lvlm_prompt(t, both, 2, &o, got, 1024, &m, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "turn 2"));
}

static void test_prompt(void **state)
{
    renyi_lm_tokenizer *legacy = open_tokenizer("model"), *other = open_tokenizer("added");
    (void)state;
    check_prompt(legacy, 1);
    check_prompt(other, 0);
    check_image_turn(legacy);
    check_image_turn(other);
    renyi_lm_tokenizer_free(legacy);
    renyi_lm_tokenizer_free(other);
}

static void test_prompt_options(void **state)
{
    static const renyi_lvlm_turn turns[] = {{"the?", NULL}, {"the?", NULL}};
    const renyi_lvlm_prompt_options bare = {
        .struct_size = sizeof bare, .without_image = 1, .system = ""};
    renyi_lm_tokenizer *t = open_tokenizer("model"), *merges = open_tokenizer("all");
    int32_t want[1025] = {1}, got[64];
    size_t m;
    renyi_error err = {0};
    (void)state;
    const size_t n = 1 + put_ids(t, "USER: the? ASSISTANT:", want + 1);
    if (renyi_lvlm_prompt(t, turns, 1, &bare, got, 64, &m, &err)) fail_msg("%s", err.message);
    assert_int_equal(m, n);
    assert_memory_equal(got, want, n * sizeof *got);
    assert_int_equal(renyi_lvlm_prompt(t, turns, 1, NULL, NULL, 0, &m, &err), RENYI_OK);
    assert_true(m > 64);
    assert_int_equal(renyi_lvlm_prompt(t, turns, 2, NULL, got, 64, &m, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "turn 0 of 2"));
    assert_int_equal(renyi_lvlm_prompt(t, turns, 0, NULL, got, 64, &m, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_lvlm_prompt(merges, turns, 1, NULL, got, 64, &m, &err),
                     RENYI_ERR_UNSUPPORTED);
    assert_int_equal(renyi_lvlm_prompt_next(t, NULL, got, 64, &m, &err), RENYI_ERR_ARG);
    renyi_lm_tokenizer_free(t);
    renyi_lm_tokenizer_free(merges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_encode),
        cmocka_unit_test(test_decode), cmocka_unit_test(test_any_text),
        cmocka_unit_test(test_prompt), cmocka_unit_test(test_prompt_options)};
    return cmocka_run_group_tests(tests, setup, folder_remove);
}
