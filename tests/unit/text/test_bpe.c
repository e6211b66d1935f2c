/* test_bpe.c - CLIP's encoding against a plain implementation of its rule; valid and invalid files
 * of every format.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/rng.h"
#include "fixtures/test_heap.h"
#include "text/bpe.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

#define HEAD "#version: 0.2\n"
#define MERGES HEAD "t h\nth e</w>\nc a\nca t</w>\na t</w>\n"
#define VOCAB                                                                                   \
    "\"a\": 0, \"c\": 1, \"e\": 2, \"h\": 3, \"t\": 4, \"e</w>\": 5, \"t</w>\": 6, \"th\": 7, " \
    "\"the</w>\": 8, \"ca\": 9, \"cat</w>\": 10, \"at</w>\": 11, \"h</w>\": 12, \"a</w>\": 13"
#define SPECIALS ", \"<|startoftext|>\": 14, \"<|endoftext|>\": 15"

static void expect_ids(const ry_bpe *b, const char *text, const int32_t *want, size_t n)
{
    int32_t ids[64];
    ry_id_sink sink = {ids, 64, 0};
    renyi_error err = {0};
    if (ry_bpe_encode(b, text, strlen(text), &sink, &err)) fail_msg("%s: %s", text, err.message);
    assert_int_equal(sink.n, n);
    assert_memory_equal(ids, want, n * sizeof *want);
}

/* ---- letters ------------------------------------------------------------------------------- */

static void test_letters(void **state)
{
    int seen[0x144] = {0};
    (void)state;
    for (uint32_t byte = 0; byte < 256; byte++) {
        const uint32_t letter = ry_bpe_letter(byte);
        assert_true(letter < 0x144 && letter > 0x20);
        assert_false(seen[letter]++);
        assert_int_equal(ry_bpe_byte(letter), byte);
    }
    assert_int_equal(ry_bpe_letter(' '), 0x120); /* as in every such vocabulary */
    assert_int_equal(ry_bpe_letter('\n'), 0x10a);
    assert_int_equal(ry_bpe_byte(' '), -1);
    assert_int_equal(ry_bpe_byte(0x144), -1);
    assert_int_equal(ry_bpe_byte(UINT32_MAX), -1);
}

/* ---- merges files -------------------------------------------------------------------------- */

static void test_merges(void **state)
{
    static const char *const same[] = {MERGES, "t h\nth e</w>\nc a\nca t</w>\na t</w>",
                                       "\"x.txt" MERGES "\n\n\n",
                                       HEAD "t h\r\nth e</w>\r\nc a\r\nca t</w>\r\na t</w>\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        ry_bpe *b;
        renyi_error err = {0};
        if (ry_bpe_read_merges(&b, same[i], strlen(same[i]), "m.txt", NULL, &err))
            fail_msg("%s", err.message);
        assert_int_equal(b->n_ids, 519);
        assert_int_equal(b->n_merges, 5);
        assert_int_equal(b->sot, 517);
        assert_int_equal(b->eot, 518);
        /* 't' is byte 0x74: number 0x74 - 0x21 = 83 of those that stand for themselves */
        expect_ids(b, "The cat", (const int32_t[]){513, 515}, 2);
        expect_ids(b, "that's at", (const int32_t[]){512, 516, 6, 256 + 82, 516}, 5);
        expect_ids(b, "t", (const int32_t[]){256 + 83}, 1);
        expect_ids(b, " \t\n", NULL, 0);
        expect_ids(b, "<|endoftext|>the<|StartOfText|>", (const int32_t[]){518, 513, 517}, 3);
        expect_ids(b, "&amp;amp;", (const int32_t[]){256 + 5}, 1);
        ry_bpe_free(b);
    }
}

static void test_only_the_first_merges_count(void **state)
{
    enum { PAIRS = 94 * 94, LINES = RY_BPE_FILE_MERGES + 10 };
    static char text[LINES * 10];
    size_t n = 0;
    ry_bpe *b;
    renyi_error err = {0};
    (void)state;
    for (int i = 0; i < 2 * PAIRS; i++) /* all pairs of visible bytes, then all at ends of words */
        n += (size_t)snprintf(text + n, 10, "%c %c%s\n", 33 + i / 94 % 94, 33 + i % 94,
                              i < PAIRS ? "" : RY_BPE_END);
    if (ry_bpe_read_merges(&b, text, n, "m", NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(b->n_merges, 2 * PAIRS);
    assert_int_equal(b->eot, 512 + 2 * PAIRS + 1);
    ry_bpe_free(b);
    for (n = 0; n < 2 * LINES; n += 2) memcpy(text + n, "x\n", 2);
    assert_int_equal(ry_bpe_count_merges(text, n), RY_BPE_FILE_MERGES);
}

static void expect_failure(renyi_status got, renyi_status want, const renyi_error *err,
                           const char *message)
{
    if (got != want || !strstr(err->message, message))
        fail_msg("%s (%d): %s; wanted: %s", renyi_status_name(got), got, err->message, message);
}

static void test_bad_merges(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {{"", "m.txt: no merges"},
                 {HEAD, "m.txt: no merges"},
                 {"\n\n", "no merges"},
                 {"t h\nword\n", "m.txt: line 2: two symbols"},
                 {HEAD "t h\n\nt e\n", "m.txt: line 3: two symbols"},
                 {"t  h\n", "line 1: two symbols"},
                 {" h\n", "line 1: two symbols"},
                 {"t h e\n", "line 1: two symbols"},
                 {"th e\n", "line 1: 'th' is neither"},
                 {"t h\nt h\n", "line 2: 'th' occurs twice"},
                 {"t h\nh e\nth e\nt he\n", "line 4: 'the' occurs twice"},
                 {"\xff\xfe\x00\x01", "line 1: two symbols"},
                 {"a </w>\n", "'</w>' is neither"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ry_bpe *b = (ry_bpe *)&b;
        renyi_error err = {0};
        expect_failure(
            ry_bpe_read_merges(&b, cases[i].text, strlen(cases[i].text), "m.txt", NULL, &err),
            RENYI_ERR_FORMAT, &err, cases[i].words);
        assert_null(b);
    }
}

/* The length of a symbol is limited: each line doubles it. */
static void test_long_symbols(void **state)
{
    static char text[1 << 16];
    size_t n = 0;
    ry_bpe *b;
    renyi_error err = {0};
    (void)state;
    for (size_t length = 1; length <= 1024; length *= 2) {
        memset(text + n, 'a', 2 * length + 1);
        text[n + length] = ' ';
        n += 2 * length + 1;
        text[n++] = '\n';
    }
    expect_failure(ry_bpe_read_merges(&b, text, n, "m", NULL, &err), RENYI_ERR_LIMIT, &err,
                   "m: line 11: a symbol of 2048 bytes; 1 to 1024 accepted");
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static renyi_status read_json(ry_bpe **out, const char *text, const char *merges,
                              const renyi_allocator *al, renyi_error *err)
{
    json_t *root;
    const renyi_status st = ry_json_parse(&root, text, strlen(text), "t.json", NULL, err);
    *out = NULL;
    if (st) return st;
    const renyi_status got =
        merges ? ry_bpe_read_vocab(out, root, "t.json", merges, strlen(merges), "m.txt", al, err)
               : ry_bpe_read_tokenizer(out, root, "t.json", al, err);
    json_decref(root);
    return got;
}

#define MODEL "\"model\": {\"type\": \"BPE\", \"end_of_word_suffix\": \"</w>\", \"vocab\": {" VOCAB
#define ADDED                                                             \
    "\"added_tokens\": [{\"id\": 14, \"content\": \"<|startoftext|>\"}, " \
    "{\"id\": 15, \"content\": \"<|endoftext|>\", \"special\": true}], "
#define OLD_MERGES "}, \"merges\": [\"t h\", \"th e</w>\", \"c a\", \"ca t</w>\", \"a t</w>\"]}}"
#define NEW_MERGES                                                                               \
    "}, \"merges\": [[\"t\", \"h\"], [\"th\", \"e</w>\"], [\"c\", \"a\"], [\"ca\", \"t</w>\"], " \
    "[\"a\", \"t</w>\"]]}}"

static void test_json(void **state)
{
    static const struct {
        const char *text, *merges;
    } cases[] = {{"{" VOCAB SPECIALS "}", MERGES},
                 {"{" ADDED MODEL OLD_MERGES, NULL},
                 {"{" MODEL SPECIALS NEW_MERGES, NULL},
                 {"{" ADDED MODEL SPECIALS NEW_MERGES, NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ry_bpe *b;
        renyi_error err = {0};
        int32_t id;
        ry_id_sink sink = {&id, 1, 0};
        if (read_json(&b, cases[i].text, cases[i].merges, NULL, &err)) fail_msg("%s", err.message);
        assert_int_equal(b->n_ids, 16);
        expect_ids(b, "the cat at", (const int32_t[]){8, 10, 11}, 3);
        expect_ids(b, "Tha<|endoftext|>", (const int32_t[]){7, 13, 15}, 3);
        expect_failure(ry_bpe_encode(b, "tho", 3, &sink, &err), RENYI_ERR_UNSUPPORTED, &err,
                       "no symbol for the byte 0x6f at the end of a word");
        ry_bpe_free(b);
    }
}

static void test_bad_json(void **state)
{
    static const struct {
        renyi_status status;
        const char *text, *merges, *words;
    } cases[] = {
        {RENYI_ERR_FORMAT, "{}", "t h", "t.json: an object of symbols"},
        {RENYI_ERR_FORMAT, "[]", "t h", "t.json: an object of symbols"},
        {RENYI_ERR_FORMAT, "{\"a\": -1}", "t h", "the id of 'a' is not a whole number"},
        {RENYI_ERR_FORMAT, "{\"a\": 1.5}", "t h", "the id of 'a' is not a whole number"},
        {RENYI_ERR_FORMAT, "{\"a\": 1048576}", "t h", "the id of 'a' is not"},
        {RENYI_ERR_FORMAT, "{\"a\": 1, \"b\": 1}", "t h", "have the same id, 1"},
        {RENYI_ERR_LIMIT, "{\"\": 1}", "t h", "t.json: a symbol of 0 bytes"},
        {RENYI_ERR_FORMAT, "{" VOCAB SPECIALS "}", "t h\nh e</w>", "m.txt: line 2: 'he</w>' is"},
        {RENYI_ERR_FORMAT, "{" VOCAB SPECIALS "}", "t h\nt h", "m.txt: line 2: 't' and 'h' are"},
        {RENYI_ERR_UNSUPPORTED, "{" VOCAB "}", MERGES, "t.json: the vocabulary has no '<|start"},
        {RENYI_ERR_UNSUPPORTED, "{\"model\": {\"type\": \"WordPiece\"}}", NULL, "type WordPiece"},
        {RENYI_ERR_UNSUPPORTED, "{\"model\": {\"type\": \"BPE\"}}", NULL, "CLIP's is BPE with"},
        {RENYI_ERR_UNSUPPORTED, "{}", NULL, "CLIP's is BPE with"},
        {RENYI_ERR_FORMAT, "{\"model\": {\"end_of_word_suffix\": \"</w>\"}}", NULL, "\"vocab\""},
        {RENYI_ERR_FORMAT, "{" MODEL SPECIALS "}, \"merges\": [\"th\"]}}", NULL, "entry 0: two"},
        {RENYI_ERR_FORMAT, "{" MODEL SPECIALS "}, \"merges\": [[\"t\"]]}}", NULL, "entry 0: two"},
        {RENYI_ERR_FORMAT, "{" MODEL SPECIALS "}, \"merges\": [[\"t\", 1]]}}", NULL,
         "entry 0: two"},
        {RENYI_ERR_FORMAT, "{" MODEL SPECIALS "}, \"merges\": [\"t h\", 7]}}", NULL,
         "entry 1: two"},
        {RENYI_ERR_FORMAT, "{" MODEL SPECIALS "}, \"merges\": [\"t  h\"]}}", NULL, "entry 0: ' h'"},
        {RENYI_ERR_FORMAT, "{\"added_tokens\": [{\"id\": 3}], " MODEL OLD_MERGES, NULL,
         "\"added_tokens\", entry 0"},
        {RENYI_ERR_FORMAT, "{\"added_tokens\": [7], " MODEL OLD_MERGES, NULL, "entry 0"},
        {RENYI_ERR_FORMAT,
         "{\"added_tokens\": [{\"id\": 3, \"content\": \"<x>\"}], " MODEL OLD_MERGES, NULL,
         "'h' and '<x>' have the same id, 3"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ry_bpe *b;
        renyi_error err = {0};
        expect_failure(read_json(&b, cases[i].text, cases[i].merges, NULL, &err), cases[i].status,
                       &err, cases[i].words);
        assert_null(b);
    }
}

/* ---- words --------------------------------------------------------------------------------- */

/* The rule taken literally: applies the earliest merge at its leftmost place until none applies. */
static size_t plain_word(const ry_bpe *b, const char *word, size_t n, uint32_t *ids)
{
    for (size_t i = 0; i < n; i++) ids[i] = b->byte_id[i + 1 == n][(unsigned char)word[i]];
    for (;;) {
        const ry_merge *best = NULL;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const ry_merge *m = ry_bpe_merge_of(b, ids[i], ids[i + 1]);
            if (m && (!best || m->rank < best->rank)) best = m, at = i;
        }
        if (!best) return n;
        ids[at] = best->whole;
        n--;
        memmove(ids + at + 1, ids + at + 2, (n - at - 1) * sizeof *ids);
    }
}

/* A merges file of random merges over few letters; each joins two existing symbols. */
static ry_bpe *random_bpe(ry_rng *rng, char *text, size_t capacity)
{
    enum { MAX = 60 };
    char symbols[8 + MAX][80] = {"a", "b", "c", "a</w>", "b</w>", "c</w>"};
    size_t count = 6, n = 0;
    ry_bpe *b;
    renyi_error err = {0};
    while (count < 6 + MAX) {
        const char *left = symbols[ry_rng_next(rng) % count];
        const char *right = symbols[ry_rng_next(rng) % count];
        char *whole = symbols[count];
        if (strstr(left, "</w>") || strlen(left) + strlen(right) > 70) continue;
        assert_in_range(snprintf(whole, sizeof symbols[0], "%s%s", left, right), 0,
                        sizeof symbols[0] - 1);
        size_t same = 0;
        while (strcmp(symbols[same], whole) != 0) same++;
        if (same < count) continue;
        n += (size_t)snprintf(text + n, capacity - n, "%s %s\n", left, right);
        count++;
    }
    if (ry_bpe_read_merges(&b, text, n, "random", NULL, &err)) fail_msg("%s", err.message);
    return b;
}

static void test_words(void **state)
{
    enum { FILES = 50, WORDS = 100, LENGTH = 60 };
    static char text[16384];
    ry_rng rng = ry_rng_new(9);
    ry_merge_list scratch = {0};
    (void)state;
    for (int f = 0; f < FILES; f++) {
        ry_bpe *b = random_bpe(&rng, text, sizeof text);
        for (int w = 0; w < WORDS; w++) {
            char word[LENGTH];
            uint32_t want[LENGTH];
            int32_t got[LENGTH];
            renyi_error err = {0};
            const size_t n = 1 + ry_rng_next(&rng) % LENGTH;
            for (size_t i = 0; i < n; i++) word[i] = (char)('a' + ry_rng_next(&rng) % 3);
            ry_id_sink sink = {got, LENGTH, 0};
            assert_int_equal(ry_bpe_word(b, word, n, &scratch, &sink, &err), RENYI_OK);
            assert_int_equal(sink.n, plain_word(b, word, n, want));
            assert_memory_equal(got, want, sink.n * sizeof *got);
        }
        ry_bpe_free(b);
    }
    ry_merge_list_free(&scratch, NULL);
}

/* A word of a hundred thousand letters takes O(n log n) steps. */
static void test_long_word(void **state)
{
    enum { N = 100000 };
    static char word[N];
    ry_bpe *b;
    renyi_error err = {0};
    ry_id_sink sink = {NULL, 0, 0};
    (void)state;
    if (ry_bpe_read_merges(&b, MERGES, strlen(MERGES), "m", NULL, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < N; i++) word[i] = "cath"[i % 4];
    if (ry_bpe_encode(b, word, N, &sink, &err)) fail_msg("%s", err.message);
    assert_int_equal(sink.n, N / 2 + 1); /* "ca" and "th" repeated; "t", "h</w>" */
    ry_bpe_free(b);
}

/* ---- memory -------------------------------------------------------------------------------- */

static renyi_status try_merges(const renyi_allocator *al, renyi_error *err)
{
    ry_bpe *b;
    const renyi_status st = ry_bpe_read_merges(&b, MERGES, strlen(MERGES), "m", al, err);
    ry_bpe_free(b);
    return st;
}

static renyi_status try_vocab(const renyi_allocator *al, renyi_error *err)
{
    ry_bpe *b;
    const renyi_status st = read_json(&b, "{" VOCAB SPECIALS "}", MERGES, al, err);
    ry_bpe_free(b);
    return st;
}

static renyi_status try_tokenizer(const renyi_allocator *al, renyi_error *err)
{
    ry_bpe *b;
    const renyi_status st = read_json(&b, "{" ADDED MODEL OLD_MERGES, NULL, al, err);
    ry_bpe_free(b);
    return st;
}

static renyi_status try_use(const renyi_allocator *al, renyi_error *err)
{
    static char word[2000];
    ry_bpe *b;
    renyi_status st = ry_bpe_read_merges(&b, MERGES, strlen(MERGES), "m", al, err);
    if (st) return st;
    int32_t ids[sizeof word];
    size_t length;
    ry_id_sink sink = {ids, sizeof word, 0};
    memset(word, 'a', sizeof word);
    word[3] = ' '; /* a short word, then one that needs more space */
    st = ry_bpe_encode(b, word, sizeof word, &sink, err);
    if (!st) st = ry_bpe_decode(b, ids, sink.n, NULL, 0, &length, err);
    ry_bpe_free(b);
    return st;
}

static void test_memory(void **state)
{
    renyi_status (*const tries[])(const renyi_allocator *,
                                  renyi_error *) = {try_merges, try_vocab, try_tokenizer, try_use};
    (void)state;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        renyi_status st = RENYI_ERR_NOMEM;
        size_t at = 0;
        while (st) {
            test_heap heap = {.fail_at = ++at};
            const renyi_allocator al = test_heap_of(&heap);
            renyi_error err = {0};
            st = tries[i](&al, &err);
            assert_true(st == RENYI_OK || (st == RENYI_ERR_NOMEM && err.message[0]));
            assert_int_equal(heap.live, 0);
        }
        assert_true(at > 4);
    }
}

/* ---- hashes that collide --------------------------------------------------------------------- */

enum { SLOTS = 1024, COLLIDING = 256 }; /* of a table for 512; searches end after so many */

/* Texts of one slot: 256 are accepted and found, the next is refused. */
static void test_colliding_symbols(void **state)
{
    renyi_error err = {0};
    ry_bpe *b;
    char text[16];
    uint32_t n = 0;
    (void)state;
    assert_int_equal(ry_bpe_new(&b, SLOTS / 2, 0, NULL, &err), RENYI_OK);
    assert_int_equal(b->text_slots, SLOTS);
    for (uint32_t i = 0; n <= COLLIDING; i++) {
        const ry_symbol s = {text, (size_t)snprintf(text, sizeof text, "%u", i)};
        if (ry_hash(s.at, s.n) % SLOTS) continue;
        assert_int_equal(ry_bpe_find(b, s), UINT32_MAX);
        const renyi_status st = ry_bpe_add(b, s, n, &err);
        assert_int_equal(st, n < COLLIDING ? RENYI_OK : RENYI_ERR_LIMIT);
        if (!st) assert_int_equal(ry_bpe_find(b, s), n);
        n++;
    }
    assert_non_null(strstr(err.message, "has the hash of 256 others"));
    ry_bpe_free(b);
}

/* The same of merges. */
static void test_colliding_merges(void **state)
{
    enum { PARTS = 640, IDS = PARTS + COLLIDING + 1 };
    renyi_error err = {0};
    ry_bpe *b;
    uint32_t n = 0;
    (void)state;
    assert_int_equal(ry_bpe_new(&b, IDS, SLOTS / 2, NULL, &err), RENYI_OK);
    assert_int_equal(b->merge_slots, SLOTS);
    for (uint32_t i = 0; i < PARTS; i++) {
        char text[16];
        const ry_symbol s = {text, (size_t)snprintf(text, sizeof text, "%03u", i)};
        assert_int_equal(ry_bpe_add(b, s, i, &err), RENYI_OK);
    }
    for (uint32_t i = 0; i < PARTS * PARTS && n <= COLLIDING; i++) {
        const uint32_t l = i / PARTS, r = i % PARTS;
        ry_rng mix = ry_rng_new((uint64_t)l << 32 | r);
        if (ry_rng_next(&mix) % SLOTS) continue;
        assert_null(ry_bpe_merge_of(b, l, r));
        const renyi_status st = ry_bpe_join(b, b->symbols[l], b->symbols[r], PARTS + n, &err);
        assert_int_equal(st, n < COLLIDING ? RENYI_OK : RENYI_ERR_LIMIT);
        if (!st) assert_int_equal(ry_bpe_merge_of(b, l, r)->whole, PARTS + n);
        n++;
    }
    assert_int_equal(n, COLLIDING + 1);
    ry_bpe_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_letters),
                                       cmocka_unit_test(test_colliding_symbols),
                                       cmocka_unit_test(test_colliding_merges),
                                       cmocka_unit_test(test_merges),
                                       cmocka_unit_test(test_only_the_first_merges_count),
                                       cmocka_unit_test(test_bad_merges),
                                       cmocka_unit_test(test_long_symbols),
                                       cmocka_unit_test(test_json),
                                       cmocka_unit_test(test_bad_json),
                                       cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_long_word),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
