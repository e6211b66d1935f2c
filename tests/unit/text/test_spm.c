/* test_spm.c - Llama's tokenizer against a plain implementation of its rule; valid and invalid
 * files of every format.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/json.h"
#include "base/rng.h"
#include "fixtures/spm_fixture.h"
#include "fixtures/test_heap.h"
#include "text/spm.h"

#include "test.h"

#include <time.h>

#define UNK "\xe2\x81\x87"
#define BAD "\xef\xbf\xbd" /* U+FFFD */
#define P(i) (FIRST_PIECE + (i))

static ry_spm *read_model(const proto *p)
{
    ry_spm *s;
    renyi_error err = {0};
    if (ry_spm_read_model(&s, p->at, p->n, "m", NULL, NULL, &err)) fail_msg("%s", err.message);
    return s;
}

static ry_spm *read_json(const char *text)
{
    json_t *root;
    ry_spm *s;
    renyi_error err = {0};
    if (ry_json_parse(&root, text, strlen(text), "t", NULL, &err)) fail_msg("%s", err.message);
    const renyi_status st = json_is_array(root) ? ry_spm_read_pieces(&s, root, "t", NULL, &err)
                                                : ry_spm_read_json(&s, root, "t", NULL, &err);
    json_decref(root);
    if (st) fail_msg("%s", err.message);
    return s;
}

/* want ends with -1 */
static void expect_ids(const ry_spm *s, const char *text, uint32_t flags, const int32_t *want)
{
    int32_t ids[64];
    size_t n = 0;
    ry_id_sink sink = {ids, 64, 0};
    renyi_error err = {0};
    if (ry_spm_encode(s, text, strlen(text), flags, 0, &sink, &err)) fail_msg("%s", err.message);
    while (want[n] >= 0) n++;
    if (sink.n != n || memcmp(ids, want, n * sizeof *ids) != 0)
        fail_msg("'%s': %zu ids, first %d; wanted %zu, first %d", text, sink.n, ids[0], n, want[0]);
}
#define IDS(...) \
    (const int32_t[]) { __VA_ARGS__, -1 }

static void expect_text(const ry_spm *s, const int32_t *ids, uint32_t flags, const char *want)
{
    char text[4 * RENYI_LM_STREAM_ROOM];
    renyi_lm_stream stream = {.flags = flags};
    size_t n = 0;
    for (; *ids >= 0; ids++) {
        int is_bad;
        n += ry_spm_put(s, &stream, *ids, text + n, &is_bad);
        assert_false(is_bad);
    }
    n += ry_spm_flush(&stream, text + n);
    text[n] = '\0';
    assert_string_equal(text, want);
}

/* ---- rules of texts ------------------------------------------------------------------------ */

static void test_small(void **state)
{
    proto p;
    (void)state;
    put_small(&p, 1);
    ry_spm *s = read_model(&p);
    assert_int_equal(s->bos, 1);
    assert_int_equal(s->eos, 2);
    assert_int_equal(s->unk, 0);
    expect_ids(s, "", 0, IDS(-1));
    expect_ids(s, "the", 0, IDS(P(2)));
    expect_ids(s, " the", 0, IDS(P(7), P(2)));
    expect_ids(s, "aaaaa", 0, IDS(P(7), P(5), P(11))); /* the leftmost of equals first */
    expect_ids(s, "cat ", 0, IDS(P(7), P(13), P(3), P(7)));
    expect_ids(s, "x\n\xc3\xa9", 0, IDS(P(7), 3 + 'x', 13, 3 + 0xc3, 3 + 0xa9));
    expect_ids(s, "</s>the", 0, IDS(2, P(2)));
    expect_ids(s, "</s>", RENYI_LM_PLAIN, IDS(P(7), 3 + '<', 3 + '/', 3 + 's', 3 + '>'));
    expect_ids(s, "<0x41>", 0, IDS(P(7), 3 + '<', 3 + '0', 3 + 'x', 3 + '4', 3 + '1', 3 + '>'));
    expect_text(s, IDS(1, P(2), P(2), 2), 0, "the the");
    expect_text(s, IDS(1, P(2), 2), RENYI_LM_SPECIAL, "<s> the</s>");
    expect_text(s, IDS(P(7), P(7), P(11)), 0, " a");
    expect_text(s, IDS(0, P(2)), 0, " " UNK "  the");
    ry_spm_free(s);
}

static void test_without_bytes(void **state)
{
    proto p;
    (void)state;
    put_small(&p, 0);
    ry_spm *s = read_model(&p);
    expect_ids(s, "axyzb", 0, IDS(10, 14, 0, 15)); /* several unknown characters are one id */
    expect_ids(s, "<unk>", 0, IDS(0));
    ry_spm_free(s);
    p.n = 0;
    put_specials(&p, 0);
    put_piece(&p, "cat", 0, 4);
    put_piece(&p, "ca", 0, 4);
    for (int i = 0; small_pieces[i]; i++) put_piece(&p, small_pieces[i], -(float)i, 1);
    put_settings(&p, 0, 1, 1);
    s = read_model(&p);
    expect_ids(s, "  cat  cab  ", 0,
               IDS(12, 3, 12, 4, 17)); /* spaces squeezed, whole pieces found */
    expect_ids(s, "   ", 0, IDS(-1));
    expect_text(s, IDS(12, 12, 16), 0, "a"); /* and all spaces in front dropped */
    ry_spm_free(s);
}

/* Bytes are returned when they form a character; each invalid byte becomes one replacement. */
static void test_stream(void **state)
{
    static const struct {
        const char *bytes, *parts[6];
    } cases[] = {{"\xf0\x9f\x98\x80", {"", "", "", "\xf0\x9f\x98\x80"}},
                 {"\xe6\x97"
                  "A",
                  {"", "", BAD BAD "A"}},
                 {"\xff\x80\xc3\xa9", {BAD, BAD, "", "\xc3\xa9"}},
                 {"\xe2\xe2\x96\x81", {"", BAD, "", BLANK}}, /* the bytes of U+2581 are no space */
                 {"\xed\xa0\x80", {"", BAD BAD, BAD}}};
    proto p;
    (void)state;
    put_small(&p, 1);
    ry_spm *s = read_model(&p);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        renyi_lm_stream stream = {0};
        for (size_t k = 0; cases[i].bytes[k]; k++) {
            char text[RENYI_LM_STREAM_ROOM];
            int is_bad;
            const int32_t id = 3 + (unsigned char)cases[i].bytes[k];
            text[ry_spm_put(s, &stream, id, text, &is_bad)] = '\0';
            assert_string_equal(text, cases[i].parts[k]);
        }
        assert_int_equal(stream.n_waiting, 0);
    }
    expect_text(s, IDS(3 + 0xe6, 3 + 0x97, P(11)), 0, BAD BAD "a");
    expect_text(s, IDS(P(11), 3 + 0xe6), 0, "a" BAD);
    ry_spm_free(s);
}

/* ---- against the plain rule ---------------------------------------------------------------- */

/* Joins the best pair of all neighbors until there is none. places: [n] starts of symbols. */
static size_t plain_rule(const ry_spm *s, const char *text, size_t n, size_t *places)
{
    for (size_t i = 0; i <= n; i++) places[i] = i;
    for (;;) {
        size_t best = n;
        uint32_t best_rank = UINT32_MAX;
        for (size_t i = 0; i + 2 <= n; i++) {
            const ry_symbol both = {text + places[i], places[i + 2] - places[i]};
            const uint32_t id = ry_bpe_find(s->bpe, both);
            if (id == RY_SPM_NONE || s->ranks[id] >= best_rank) continue;
            best = i;
            best_rank = s->ranks[id];
        }
        if (best == n) return n;
        memmove(places + best + 1, places + best + 2, (n - best - 1) * sizeof *places);
        n--;
    }
}

static void random_model(ry_rng *rng, proto *p)
{
    char seen[40][8] = {"a", "b", "c"};
    size_t n = 3;
    p->n = 0;
    put_specials(p, 0);
    for (int tries = 0; tries < 100 && n < 40; tries++) {
        char *text = seen[n];
        const size_t length = 2 + ry_rng_next(rng) % 4;
        for (size_t i = 0; i < length; i++) text[i] = (char)('a' + ry_rng_next(rng) % 3);
        text[length] = '\0';
        size_t same = 0;
        while (strcmp(seen[same], text) != 0) same++;
        n += same == n;
    }
    for (size_t i = 0; i < n; i++) /* scores are often equal */
        put_piece(p, seen[i], -(float)(ry_rng_next(rng) % 16), 1);
    put_settings(p, 0, 0, 0);
}

static void test_random(void **state)
{
    enum { MODELS = 60, TEXTS = 60, LENGTH = 40 };
    ry_rng rng = ry_rng_new(4);
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        proto p;
        random_model(&rng, &p);
        ry_spm *s = read_model(&p);
        for (int k = 0; k < TEXTS; k++) {
            char text[LENGTH];
            size_t places[LENGTH + 2];
            int32_t ids[LENGTH];
            ry_id_sink sink = {ids, LENGTH, 0};
            renyi_error err = {0};
            const size_t n = 1 + ry_rng_next(&rng) % LENGTH;
            for (size_t i = 0; i < n; i++) text[i] = (char)('a' + ry_rng_next(&rng) % 3);
            assert_int_equal(ry_spm_encode(s, text, n, 0, 0, &sink, &err), RENYI_OK);
            assert_int_equal(sink.n, plain_rule(s, text, n, places));
            for (size_t i = 0; i < sink.n; i++) {
                const ry_symbol want = {text + places[i], places[i + 1] - places[i]};
                assert_int_equal(ids[i], ry_bpe_find(s->bpe, want));
            }
        }
        ry_spm_free(s);
    }
}

/* ---- SentencePiece's file ------------------------------------------------------------------ */

static void expect_refused(const proto *p, renyi_status status, const char *words)
{
    ry_spm *s = (ry_spm *)(uintptr_t)p;
    renyi_error err = {0};
    const renyi_status st = ry_spm_read_model(&s, p->at, p->n, "m.model", NULL, NULL, &err);
    assert_null(s);
    if (st != status || !strstr(err.message, words) || strncmp(err.message, "m.model: ", 9) != 0)
        fail_msg("%d: %s; wanted: %s", st, err.message, words);
}

static void test_bad_buffers(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *words;
    } cases[] = {{"", 0, "no pieces"},
                 {"\x20\x01", 2, "no pieces"}, /* other fields are skipped */
                 {"\x0a", 1, "byte 0: field 1 of a Protocol Buffer, kind 2, is broken"},
                 {"\x20\x01\x0a\x05", 4, "byte 2: field 1"},
                 {"\x00\x00", 2, "byte 0: no field"},
                 {"\x0b\x0c", 2, "kind 3, is broken"},
                 {"\x08\x01", 2, "field 1 of a Protocol Buffer has the kind 0; 2 expected"},
                 {"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "is broken"},
                 {"\xff\xff\xff\xff\xff\xff", 6, "no field"},
                 {"\x21\x00\x00", 3, "kind 1, is broken"},
                 {"\x0a\x02\x0a\x05", 4, "piece 0: byte 2: field 1"},
                 {"<html>", 6, "broken"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        proto p = {.n = cases[i].n};
        memcpy(p.at, cases[i].bytes, p.n);
        if (i == 10) put_settings(&p, 0, 1, 0);
        expect_refused(&p, RENYI_ERR_FORMAT, cases[i].words);
    }
}

static void test_bad_pieces(void **state)
{
    static const struct {
        const char *text;
        float score;
        uint32_t type;
        renyi_status status;
        const char *words;
    } cases[] = {{"<s>", 0, 1, RENYI_ERR_FORMAT, "piece 3: '<s>' occurs twice"},
                 {"", 0, 1, RENYI_ERR_LIMIT, "piece 3: a symbol of 0 bytes"},
                 {"\xe6x", 0, 1, RENYI_ERR_FORMAT, "piece 3: its text is not UTF-8"},
                 {"x", 0.0f / 0.0f, 1, RENYI_ERR_FORMAT, "the score of piece 3 is not a number"},
                 {"x", 0, 5, RENYI_ERR_UNSUPPORTED, "piece 3: its type is 5"},
                 {"x", 0, 7, RENYI_ERR_UNSUPPORTED, "piece 3: its type is 7"},
                 {"x", 0, 6, RENYI_ERR_FORMAT, "names are <0x00> to <0xFF>"}};
    proto p;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        p.n = 0;
        put_specials(&p, 0);
        put_piece(&p, cases[i].text, cases[i].score, cases[i].type);
        put_settings(&p, 0, 1, 0);
        expect_refused(&p, cases[i].status, cases[i].words);
    }
    put_small(&p, 0);
    put_settings(&p, 1, 1, 0); /* the later value counts */
    expect_refused(&p, RENYI_ERR_FORMAT, "there is no piece '<0x00>'");
}

static void add_piece(ry_bpe *bpe, const char *text, uint32_t id)
{
    renyi_error err = {0};
    if (ry_bpe_add(bpe, (ry_symbol){text, strlen(text)}, id, &err)) fail_msg("%s", err.message);
}

/* "a", "aa", ... and many more that a text of a's begins like: the longest that fits is found, and
 * no choice of pieces makes the search slow. */
static void test_many_special_pieces(void **state)
{
    enum { NESTED = 3, OTHERS = 50000, N = 1 + NESTED + OTHERS, TEXT = NESTED * 80000 };
    static char text[TEXT + 1];
    char piece[16];
    ry_bpe *bpe;
    ry_spm *s;
    ry_id_sink sink = {0};
    renyi_error err = {0};
    (void)state;
    assert_int_equal(ry_bpe_new(&bpe, N, 0, NULL, &err), RENYI_OK);
    add_piece(bpe, "<unk>", 0);
    for (uint32_t i = 1; i <= NESTED; i++) add_piece(bpe, &"aaa"[NESTED - i], i);
    for (uint32_t i = 0; i < OTHERS; i++) {
        snprintf(piece, sizeof piece, "a%05u", i);
        add_piece(bpe, piece, 1 + NESTED + i);
    }
    assert_int_equal(ry_spm_new(&s, bpe, "test", &err), RENYI_OK);
    memset(s->kinds, RY_PIECE_CONTROL, N);
    s->unk = 0;
    assert_int_equal(ry_spm_finish(s, NULL, &err), RENYI_OK);
    memset(text, 'a', TEXT);
    const clock_t begin = clock();
    assert_int_equal(ry_spm_encode(s, text, TEXT, 0, 0, &sink, &err), RENYI_OK);
    assert_true(clock() - begin < 10 * CLOCKS_PER_SEC); /* it takes 0.1 s */
    assert_int_equal(sink.n, TEXT / NESTED);
    expect_ids(s, "aaaaa", 0, IDS(3, 2));
    expect_ids(s, "aaaa00042a", 0, IDS(3, 1 + NESTED + 42, 1));
    ry_spm_free(s);
}

/* A damaged table of characters: the unit of 'a' is its own child. */
static void test_looping_map(void **state)
{
    enum { UNITS = 'a' + 1, TEXT = RENYI_LM_TEXT_MAX };
    uint8_t table[4 + 4 * UNITS + 1] = {4 * UNITS & 0xff, 4 * UNITS >> 8};
    static char text[TEXT];
    ry_charsmap map;
    ry_buffer out = {0};
    renyi_error err = {0};
    (void)state;
    const uint32_t unit = (uint32_t)'a' << 10 | 'a';
    for (int i = 0; i < 4; i++) table[4 + 4 * 'a' + i] = (uint8_t)(unit >> 8 * i);
    assert_int_equal(ry_charsmap_read(&map, table, sizeof table, NULL, &err), RENYI_OK);
    memset(text, 'a', TEXT);
    const clock_t begin = clock();
    assert_int_equal(ry_charsmap_apply(&map, text, TEXT, &out, &err), RENYI_OK);
    assert_true(clock() - begin < 10 * CLOCKS_PER_SEC); /* it takes 0.1 s */
    assert_true(out.size == TEXT && !memcmp(out.bytes, text, TEXT));
    ry_buffer_free(&out);
    ry_charsmap_free(&map, NULL);
}

static void test_other_kinds(void **state)
{
    static const struct {
        uint32_t part, field;
        uint64_t value;
        const char *words;
    } cases[] = {{2, 3, 3, "of type word"},
                 {2, 3, 9, "of type unknown"},
                 {2, 24, 1, "treat_whitespace_as_suffix"},
                 {3, 5, 0, "escape_whitespaces"}};
    proto p;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        proto part = {.n = 0};
        put_small(&p, 1);
        proto_number(&part, cases[i].field, cases[i].value);
        proto_bytes(&p, cases[i].part, part.at, part.n);
        expect_refused(&p, RENYI_ERR_UNSUPPORTED, cases[i].words);
    }
    proto map = {.n = 0};
    put_small(&p, 1);
    proto_bytes(&map, 2, "abc", 3);
    proto_bytes(&p, 3, map.at, map.n);
    expect_refused(&p, RENYI_ERR_FORMAT, "precompiled_charsmap) has 3 bytes");
}

static void test_roles(void **state)
{
    proto p, part = {.n = 0};
    (void)state;
    put_small(&p, 1);
    proto_number(&part, 41, (uint64_t)(int64_t)-1); /* no bos */
    proto_number(&part, 42, 300);                   /* not a control piece */
    proto_bytes(&p, 2, part.at, part.n);
    ry_spm *s = read_model(&p);
    assert_int_equal(s->bos, -1);
    assert_int_equal(s->eos, -1);
    ry_spm_free(s);
}

/* ---- tokenizer.json ------------------------------------------------------------------------ */

#define VOCAB                                                                     \
    "{\"<unk>\": 0, \"<s>\": 1, \"</s>\": 2, \"" BLANK                            \
    "\": 3, \"t\": 4, \"h\": 5, \"e\": 6, \"" BLANK "t\": 7, \"he\": 8, \"" BLANK \
    "the\": 9, \"the\": 10, \"th\": 11}"
#define MERGES "[\"" BLANK " t\", \"h e\", \"" BLANK "t he\", [\"t\", \"he\"], [\"t\", \"h\"]]"
#define MODEL                                                                                        \
    "\"model\": {\"type\": \"BPE\", \"unk_token\": \"<unk>\", \"fuse_unk\": true, \"vocab\": " VOCAB \
    ", \"merges\": " MERGES "}"
#define TOKEN(id, text, more) "{\"id\": " id ", \"content\": \"" text "\"" more "}"
#define ADDED                                                                   \
    "\"added_tokens\": [" TOKEN("2", "</s>", ", \"special\": true") ", " TOKEN( \
        "12", "<image>",                                                        \
        ", \"special\": true, \"lstrip\": true, \"rstrip\": true") ", " TOKEN("13", "<b>", "") "]"
#define REPLACE \
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"" BLANK "\"}"
#define PREPEND "{\"type\": \"Prepend\", \"prepend\": \"" BLANK "\"}"
#define OLD "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [" PREPEND ", " REPLACE "]}"
#define METASPACE(scheme)                                                    \
    "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"" BLANK \
    "\", \"prepend_scheme\": \"" scheme "\", \"split\": false}"

static void test_json(void **state)
{
    (void)state;
    ry_spm *s = read_json("{" ADDED ", " OLD ", \"pre_tokenizer\": null, " MODEL "}");
    assert_int_equal(s->bpe->n_ids, 14);
    expect_ids(s, "the", 0, IDS(9));
    expect_ids(s, " the", 0, IDS(3, 9));
    expect_ids(s, "th", 0, IDS(7, 5));
    expect_ids(s, "the</s>the", 0, IDS(9, 2, 9));
    expect_ids(s, "the \n<image> \tthe<b>xy", 0, IDS(9, 12, 9, 13, 3, 0));
    expect_text(s, IDS(9, 12, 13, 9, 2), 0, "the<b> the");
    ry_spm_free(s);
    s = read_json("{" ADDED ", " METASPACE("first") ", " MODEL "}");
    expect_ids(s, "the</s>the", 0, IDS(9, 2, 10));
    expect_ids(s, " the", 0, IDS(9)); /* has its space already */
    expect_ids(s, "</s>the", 0, IDS(2, 10));
    ry_spm_free(s);
    s = read_json("{" METASPACE("never") ", " MODEL "}");
    expect_ids(s, "the</s>", 0, IDS(10, 0)); /* not an added token */
    expect_text(s, IDS(9), 0, " the");
    ry_spm_free(s);
    s = read_json("{\"normalizer\": " REPLACE ", " MODEL "}");
    expect_ids(s, "the the", 0, IDS(10, 9));
    ry_spm_free(s);
}

static void test_bad_json(void **state)
{
    static const struct {
        const char *text;
        renyi_status status;
        const char *words;
    } cases[] = {
        {"{}", RENYI_ERR_UNSUPPORTED, "does not write spaces"},
        {"{" OLD "}", RENYI_ERR_FORMAT, "\"model\" with \"vocab\""},
        {"{" MODEL "}", RENYI_ERR_UNSUPPORTED, "does not write spaces"},
        {"{" OLD ", \"model\": {\"type\": \"WordPiece\"}}", RENYI_ERR_UNSUPPORTED,
         "\"type\" WordPiece"},
        {"{" OLD ", \"model\": {\"end_of_word_suffix\": \"</w>\"}}", RENYI_ERR_UNSUPPORTED, "</w>"},
        {"{" OLD ", \"model\": {\"ignore_merges\": true}}", RENYI_ERR_UNSUPPORTED, "ignore_merges"},
        {"{" OLD ", \"model\": {\"dropout\": 0.1}}", RENYI_ERR_UNSUPPORTED, "dropout"},
        {"{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, " MODEL "}", RENYI_ERR_UNSUPPORTED,
         "\"pre_tokenizer\" ByteLevel: not a tokenizer like Llama's"},
        {"{" METASPACE("last") ", " MODEL "}", RENYI_ERR_UNSUPPORTED, "last"},
        {"{\"pre_tokenizer\": {\"type\": \"Metaspace\"}, " MODEL "}", RENYI_ERR_UNSUPPORTED,
         "splits at spaces"},
        {"{\"normalizer\": {\"type\": \"NFKC\"}, " MODEL "}", RENYI_ERR_UNSUPPORTED,
         "has a step that is not known"},
        {"{" OLD ", \"added_tokens\": [{\"id\": 20}], " MODEL "}", RENYI_ERR_FORMAT, "entry 0"},
        {"{" OLD ", \"added_tokens\": [" TOKEN("20", "<b>", ", \"single_word\": true") "], " MODEL
                                                                                       "}",
         RENYI_ERR_UNSUPPORTED, "only as a whole word"},
        {"{" OLD ", \"model\": {\"vocab\": {\"a\": 0}, \"merges\": []}}", RENYI_ERR_FORMAT,
         "neither bytes nor an unknown piece"},
        {"{" OLD ", \"model\": {\"byte_fallback\": true, \"vocab\": {\"a\": 0}, \"merges\": []}}",
         RENYI_ERR_FORMAT, "no piece '<0x00>'"},
        {"[1]", RENYI_ERR_FORMAT, "at least 3 pieces"},
        {"[{}, {}, {}]", RENYI_ERR_FORMAT, "entry 0: \"piece\""},
        {"[{\"piece\": \"a\", \"score\": 1e300}, {}, {}]", RENYI_ERR_FORMAT, "entry 0: \"piece\""},
        {"[{\"piece\": \"a\", \"score\": 1}, {\"piece\": \"a\", \"score\": 1}, {}]",
         RENYI_ERR_FORMAT, "entry 1: 'a' occurs twice"},
        {"[{\"piece\": \"a\", \"score\": 1}, {\"piece\": \"b\", \"score\": 1}, {\"piece\": \"c\", "
         "\"score\": 0}]",
         RENYI_ERR_FORMAT, "no piece '<0x00>'"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *root;
        ry_spm *s;
        renyi_error err = {0};
        if (ry_json_parse(&root, cases[i].text, strlen(cases[i].text), "t.json", NULL, &err))
            fail_msg("%s", err.message);
        const renyi_status st = json_is_array(root)
                                    ? ry_spm_read_pieces(&s, root, "t.json", NULL, &err)
                                    : ry_spm_read_json(&s, root, "t.json", NULL, &err);
        assert_null(s);
        if (st != cases[i].status || !strstr(err.message, cases[i].words) ||
            strncmp(err.message, "t.json: ", 8) != 0)
            fail_msg("%d: %s; wanted: %s", st, err.message, cases[i].words);
        json_decref(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),       cmocka_unit_test(test_without_bytes),
        cmocka_unit_test(test_stream),      cmocka_unit_test(test_random),
        cmocka_unit_test(test_bad_buffers), cmocka_unit_test(test_bad_pieces),
        cmocka_unit_test(test_other_kinds), cmocka_unit_test(test_roles),
        cmocka_unit_test(test_json),        cmocka_unit_test(test_bad_json),
        cmocka_unit_test(test_looping_map), cmocka_unit_test(test_many_special_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
