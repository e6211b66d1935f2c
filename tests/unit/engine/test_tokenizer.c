/* test_tokenizer.c - the public functions of CLIP's tokenizer: files and folders, truncation,
 * decoding, and arbitrary bytes as text.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* mkdtemp */
#include "base/rng.h"
#include "base/utf8.h"
#include "fixtures/test_folder.h"
#include "fixtures/test_heap.h"
#include "renyi/clip.h"

#include <unistd.h>
#include <zlib.h>

#define MERGES "#version: 0.2\nt h\nth e</w>\na n\nan d</w>\n\xc3\x83 \xc2\xa9</w>\n"
#define VOCAB                                                                           \
    "{\"t\": 0, \"h\": 1, \"e</w>\": 2, \"a\": 3, \"n\": 4, \"d</w>\": 5, \"th\": 6, "  \
    "\"the</w>\": 7, \"an\": 8, \"and</w>\": 9, \"\\u00c3\": 10, \"\\u00a9</w>\": 11, " \
    "\"\\u00c3\\u00a9</w>\": 12, \"<|startoftext|>\": 13, \"<|endoftext|>\": 14}"
#define TOKENIZER                                                                         \
    "{\"model\": {\"type\": \"BPE\", \"end_of_word_suffix\": \"</w>\", \"vocab\": " VOCAB \
    ", \"merges\": [\"t h\", \"th e</w>\", \"a n\", \"an d</w>\"]}}"

static void put_packed(const char *name, const char *text)
{
    gzFile f = gzopen(at(name), "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, text, (unsigned)strlen(text)), strlen(text));
    assert_int_equal(gzclose(f), Z_OK);
}

static int setup(void **state)
{
    if (folder_make(state) || mkdir(at("none"), 0777) || mkdir(at("packed"), 0777)) return -1;
    put("all/tokenizer.json", TOKENIZER);
    put("all/vocab.json", "not looked at");
    put("pair/vocab.json", VOCAB);
    put("pair/merges.txt", MERGES);
    put("half/vocab.json", VOCAB);
    put_packed("packed/bpe_simple_vocab_16e6.txt.gz", MERGES);
    put("plain/bpe_simple_vocab_16e6.txt", MERGES);
    return 0;
}

static renyi_tokenizer *open_tokenizer(const char *name)
{
    renyi_tokenizer *t = NULL;
    renyi_error err = {0};
    if (renyi_tokenizer_open(&t, at(name), NULL, &err)) fail_msg("%s", err.message);
    return t;
}

/* ---- files --------------------------------------------------------------------------------- */

static void test_places(void **state)
{
    static const struct {
        const char *path, *source;
        int32_t the, sot;
    } cases[] = {{"all", "all/tokenizer.json", 7, 13},
                 {"all/model.safetensors", "all/tokenizer.json", 7, 13},
                 {"all/tokenizer.json", "all/tokenizer.json", 7, 13},
                 {"pair", "pair/vocab.json", 7, 13},
                 {"pair/vocab.json", "pair/vocab.json", 7, 13},
                 {"pair/merges.txt", "pair/merges.txt", 513, 517},
                 {"packed", "packed/bpe_simple_vocab_16e6.txt.gz", 513, 517},
                 {"packed/ViT-B-16.pt", "packed/bpe_simple_vocab_16e6.txt.gz", 513, 517},
                 {"plain", "plain/bpe_simple_vocab_16e6.txt", 513, 517}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        renyi_tokenizer *t = open_tokenizer(cases[i].path);
        renyi_tokenizer_info info;
        renyi_error err = {0};
        int32_t ids[6];
        uint32_t n;
        renyi_tokenizer_get_info(t, &info);
        assert_string_equal(info.source, at(cases[i].source));
        assert_int_equal(info.sot, cases[i].sot);
        assert_int_equal(info.eot, cases[i].sot + 1);
        assert_int_equal(info.n_ids, cases[i].sot + 2);
        assert_int_equal(renyi_tokenizer_encode(t, "The the", 7, 6, 0, ids, &n, &err), RENYI_OK);
        const int32_t want[] = {info.sot, cases[i].the, cases[i].the, info.eot, 0, 0};
        assert_memory_equal(ids, want, sizeof want);
        assert_int_equal(n, 4);
        renyi_tokenizer_free(t);
    }
    assert_int_equal(chdir(at("packed")), 0); /* a file name without a folder */
    renyi_tokenizer *t = NULL;
    renyi_error err = {0};
    assert_int_equal(renyi_tokenizer_open(&t, "x.bin", NULL, &err), RENYI_OK);
    renyi_tokenizer_free(t);
    assert_int_equal(chdir("/"), 0);
}

static void test_refused(void **state)
{
    static const struct {
        const char *path, *words;
        renyi_status status;
    } cases[] = {
        {"none", "none: no tokenizer in this folder: looked for spiece.model", RENYI_ERR_IO},
        {"none/x.safetensors", "no tokenizer beside it", RENYI_ERR_IO},
        {"none/merges.txt", "merges.txt: No such file", RENYI_ERR_IO},
        {"half", "half/merges.txt: No such file", RENYI_ERR_IO},
        {"all/vocab.json", "vocab.json: line 1: two symbols", RENYI_ERR_FORMAT}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        renyi_tokenizer *t = (renyi_tokenizer *)&t;
        renyi_error err = {0};
        assert_int_equal(renyi_tokenizer_open(&t, at(cases[i].path), NULL, &err), cases[i].status);
        assert_null(t);
        if (!strstr(err.message, cases[i].words)) fail_msg("%s", err.message);
    }
    const renyi_options small = {.struct_size = sizeof small, .limits = {.max_header_bytes = 40}};
    static const char *const files[] = {"packed", "plain", "pair", "all"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        renyi_tokenizer *t;
        renyi_error err = {0};
        assert_int_equal(renyi_tokenizer_open(&t, at(files[i]), &small, &err), RENYI_ERR_LIMIT);
    }
}

static void test_memory(void **state)
{
    static const char *const files[] = {"packed", "plain", "pair", "all", "none"};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        renyi_status st = RENYI_ERR_NOMEM;
        for (size_t k = 1; st == RENYI_ERR_NOMEM; k++) {
            test_heap heap = {.fail_at = k};
            const renyi_options opt = {.struct_size = sizeof opt, .allocator = test_heap_of(&heap)};
            renyi_tokenizer *t;
            renyi_error err = {0};
            st = renyi_tokenizer_open(&t, at(files[i]), &opt, &err);
            renyi_tokenizer_free(t);
            assert_int_equal(heap.live, 0);
        }
        assert_int_equal(st, i < 4 ? RENYI_OK : RENYI_ERR_IO);
    }
}

/* ---- texts --------------------------------------------------------------------------------- */

static void test_too_long(void **state)
{
    renyi_tokenizer *t = open_tokenizer("plain");
    renyi_error err = {0};
    int32_t ids[5];
    uint32_t n = 0;
    (void)state;
    assert_int_equal(renyi_tokenizer_count(t, "the and the and", 15, &n, &err), RENYI_OK);
    assert_int_equal(n, 6);
    assert_int_equal(renyi_tokenizer_encode(t, "the and the and", 15, 5, 0, ids, &n, &err),
                     RENYI_ERR_LIMIT);
    assert_non_null(strstr(err.message, "needs 6 tokens, the model reads 5"));
    assert_non_null(strstr(err.message, "--truncate"));
    assert_int_equal(renyi_tokenizer_encode(t, "the and the and", 15, 5, 1, ids, &n, &err),
                     RENYI_OK);
    assert_memory_equal(ids, ((const int32_t[]){517, 513, 515, 513, 518}), sizeof ids);
    assert_int_equal(n, 5);
    assert_int_equal(renyi_tokenizer_encode(t, "the and the", 11, 5, 0, ids, NULL, &err), RENYI_OK);
    assert_int_equal(renyi_tokenizer_encode(t, NULL, 0, 2, 0, ids, &n, &err), RENYI_OK);
    assert_int_equal(n, 2);
    assert_int_equal(renyi_tokenizer_encode(t, "the", 3, 2, 1, ids, &n, &err), RENYI_OK);
    assert_int_equal(ids[1], 518);
    assert_int_equal(renyi_tokenizer_encode(t, "the", 3, 1, 1, ids, &n, &err), RENYI_ERR_ARG);
    char *huge = calloc(RENYI_TEXT_MAX + 1, 1);
    assert_non_null(huge);
    assert_int_equal(renyi_tokenizer_count(t, huge, RENYI_TEXT_MAX + 1, &n, &err), RENYI_ERR_LIMIT);
    free(huge);
    renyi_tokenizer_free(t);
}

static void test_not_utf8(void **state)
{
    renyi_tokenizer *t = open_tokenizer("plain");
    renyi_error err = {0};
    uint32_t n;
    (void)state;
    assert_int_equal(renyi_tokenizer_count(t, "caf\xe9", 4, &n, &err), RENYI_ERR_FORMAT);
    assert_int_equal(err.offset, 3);
    assert_non_null(strstr(err.message, "not UTF-8: byte 3, 0xe9"));
    renyi_tokenizer_free(t);
}

static void expect_text(const renyi_tokenizer *t, const int32_t *ids, size_t n, const char *want)
{
    char text[64];
    size_t length;
    renyi_error err = {0};
    if (renyi_tokenizer_decode(t, ids, n, text, sizeof text, &length, &err))
        fail_msg("%s", err.message);
    assert_string_equal(text, want);
    assert_int_equal(length, strlen(want));
}

static void test_decode(void **state)
{
    renyi_tokenizer *t = open_tokenizer("plain");
    renyi_error err = {0};
    char text[8];
    size_t length = 0;
    (void)state;
    const int32_t ids[] = {517, 513, 516, 515, 518, 0, 0};
    expect_text(t, ids, 7, "the \xc3\xa9 and"); /* up to eot */
    expect_text(t, ids, 1, "");
    expect_text(t, NULL, 0, "");
    const int32_t half[] = {512, 0xc3 - 0xa1 + 94, 515}; /* the first byte of e acute alone */
    expect_text(t, half, 2, "th\xef\xbf\xbd");
    expect_text(t, (const int32_t[]){512, 515}, 2, "thand");
    assert_int_equal(renyi_tokenizer_decode(t, ids, 7, NULL, 0, &length, &err), RENYI_OK);
    assert_int_equal(length, 10);
    assert_int_equal(renyi_tokenizer_decode(t, ids, 7, text, 6, &length, &err), RENYI_OK);
    assert_string_equal(text, "the "); /* no half of a character */
    assert_int_equal(renyi_tokenizer_decode(t, (const int32_t[]){1, 519}, 2, text, 8, NULL, &err),
                     RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "id 519, at place 1"));
    assert_int_equal(renyi_tokenizer_decode(t, (const int32_t[]){-1}, 1, text, 8, NULL, &err),
                     RENYI_ERR_ARG);
    renyi_tokenizer_free(t);
}

/* ---- any text ------------------------------------------------------------------------------ */

enum { TEXT = 120 };

/* Usual parts of texts, and parts that are easily handled wrongly. */
static size_t random_text(ry_rng *rng, char *text)
{
    static const char *const pieces[] = {
        "the", "'s", "'LL", " ",   "\t\n",     "&amp;",     "&#233;",       "&#x", "&lt",
        "<|",  "|>", "and", "...", "\xce\xa3", "e\xcc\x81", "\xea\xb0\x80", "7",   "\xe2\x80\x94"};
    size_t n = 0;
    const size_t parts = ry_rng_next(rng) % 16;
    for (size_t i = 0; i < parts; i++) {
        const uint64_t r = ry_rng_next(rng);
        if (r % 2) {
            const char *piece = pieces[(r >> 8) % (sizeof pieces / sizeof *pieces)];
            memcpy(text + n, piece, strlen(piece));
            n += strlen(piece);
            continue;
        }
        const uint32_t below[] = {0x80, 0x800, 0x10000, 0x110000};
        const uint32_t c = (uint32_t)(r >> 16) % below[(r >> 8) % 4];
        n += ry_utf8_put(text + n, c >= 0xd800 && c < 0xe000 ? ' ' : c);
    }
    return n;
}

/* Ids are within the vocabulary and as many as counted; their decoded text encodes to the same ids.
 * (That fails where lower case undoes composition: a dotted capital I becomes i and a mark, which
 * is sorted among the marks after it when composed again. No text here has one.) */
static void check_text(const renyi_tokenizer *t, const char *text, size_t size)
{
    int32_t ids[4 * TEXT + 2], again[8 * TEXT + 2];
    char back[8 * TEXT];
    uint32_t n, counted, m;
    size_t length;
    renyi_error err = {0};
    renyi_tokenizer_info info;
    renyi_tokenizer_get_info(t, &info);
    if (renyi_tokenizer_encode(t, text, size, 4 * TEXT + 2, 0, ids, &n, &err))
        fail_msg("%.*s: %s", (int)size, text, err.message);
    assert_int_equal(renyi_tokenizer_count(t, text, size, &counted, &err), RENYI_OK);
    assert_int_equal(n, counted);
    for (uint32_t i = 0; i < n; i++) assert_true(ids[i] >= 0 && (uint32_t)ids[i] < info.n_ids);
    for (uint32_t i = 1; i + 1 < n; i++)
        if (ids[i] == info.sot || ids[i] == info.eot) return; /* not in what is decoded */
    assert_int_equal(renyi_tokenizer_decode(t, ids, n, back, sizeof back, &length, &err), RENYI_OK);
    assert_true(length < sizeof back);
    assert_int_equal(renyi_tokenizer_encode(t, back, length, 8 * TEXT + 2, 0, again, &m, &err),
                     RENYI_OK);
    assert_int_equal(m, n);
    assert_memory_equal(again, ids, n * sizeof *ids);
}

static void test_any_unicode(void **state)
{
    renyi_tokenizer *t = open_tokenizer("plain");
    ry_rng rng = ry_rng_new(21);
    (void)state;
    for (int i = 0; i < 20000; i++) {
        char text[TEXT];
        const size_t n = random_text(&rng, text);
        check_text(t, text, n);
    }
    renyi_tokenizer_free(t);
}

static void test_any_bytes(void **state)
{
    renyi_tokenizer *t = open_tokenizer("plain");
    ry_rng rng = ry_rng_new(22);
    (void)state;
    for (int i = 0; i < 20000; i++) {
        char text[TEXT];
        renyi_error err = {0};
        uint32_t counted;
        size_t n = random_text(&rng, text);
        for (size_t k = ry_rng_next(&rng) % 4; k && n; k--)
            text[ry_rng_next(&rng) % n] = (char)ry_rng_next(&rng);
        if (n) n -= ry_rng_next(&rng) % 2;
        const renyi_status st = renyi_tokenizer_count(t, text, n, &counted, &err);
        assert_true(!st || (st == RENYI_ERR_FORMAT && err.offset >= 0 && (size_t)err.offset < n));
    }
    renyi_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory),      cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_not_utf8),    cmocka_unit_test(test_decode),
        cmocka_unit_test(test_any_unicode), cmocka_unit_test(test_any_bytes)};
    return cmocka_run_group_tests(tests, setup, folder_remove);
}
