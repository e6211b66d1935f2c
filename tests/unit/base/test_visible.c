/* test_visible.c - what text from outside may show: every class of hidden character, everywhere.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "renyi/renyi.h"
#include "report/markup.h"
#include "test.h"

#include <string.h>

/* One row per class: characters from `first` to `last` are hidden, or none of them is. */
static const struct {
    const char *what;
    uint32_t first, last;
    int is_hidden;
} classes[] = {
    {"C0", 0x00, 0x1f, 1},
    {"ASCII", 0x20, 0x7e, 0},
    {"DEL", 0x7f, 0x7f, 1},
    {"C1", 0x80, 0x9f, 1},
    {"Latin-1", 0xa0, 0xac, 0},
    {"soft hyphen", 0xad, 0xad, 1},
    {"Latin, Greek, Cyrillic, Armenian, Hebrew", 0xae, 0x5ff, 0},
    {"Arabic letter mark", 0x61c, 0x61c, 1},
    {"Arabic, Indic, Thai, Georgian, Ethiopic", 0x61d, 0x180d, 0},
    {"Mongolian vowel separator", 0x180e, 0x180e, 1},
    {"spaces with a width", 0x2000, 0x200a, 0},
    {"zero-width space", 0x200b, 0x200b, 1},
    {"joiners", 0x200c, 0x200d, 0},
    {"direction marks", 0x200e, 0x200f, 1},
    {"punctuation", 0x2010, 0x2027, 0},
    {"line and paragraph separator", 0x2028, 0x2029, 1},
    {"embeddings and overrides", 0x202a, 0x202e, 1},
    {"more punctuation", 0x202f, 0x205f, 0},
    {"word joiner, invisible operators", 0x2060, 0x2064, 1},
    {"isolates", 0x2066, 0x2069, 1},
    {"deprecated controls", 0x206a, 0x206f, 1},
    {"symbols, CJK, Hangul", 0x2070, 0xd7ff, 0},
    {"surrogates", 0xd800, 0xdfff, 1},
    {"private use: icons", 0xe000, 0xf8ff, 0},
    {"no characters", 0xfdd0, 0xfdef, 1},
    {"emoji selectors", 0xfe00, 0xfe0f, 0},
    {"byte order mark", 0xfeff, 0xfeff, 1},
    {"full width", 0xff00, 0xffef, 0},
    {"annotations", 0xfff9, 0xfffb, 1},
    {"replacement character", 0xfffc, 0xfffd, 0},
    {"end of the plane", 0xfffe, 0xffff, 1},
    {"emoji", 0x1f300, 0x1faff, 0},
    {"rare ideographs", 0x20000, 0x2fa1f, 0},
    {"tags", 0xe0000, 0xe007f, 1},
    {"further selectors", 0xe0100, 0xe01ef, 1},
    {"end of the last plane", 0x10fffe, 0x10ffff, 1},
    {"beyond Unicode", 0x110000, 0x110100, 1},
};

static void every_class_is_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        for (uint32_t c = classes[i].first; c <= classes[i].last; c++)
            if (ry_is_hidden(c) != classes[i].is_hidden)
                fail_msg("%s: U+%04X is %shidden", classes[i].what, c,
                         classes[i].is_hidden ? "not " : "");
}

/* Text and what is shown of it, on one line; NULL = unchanged. */
#define BAD "\xef\xbf\xbd"
static const struct {
    const char *text, *shown;
} texts[] = {
    {"plain name.jpg", NULL},
    {"a\033[2J\033]0;title\007b", "a" BAD "[2J" BAD "]0;title" BAD "b"},
    {"a\tb\nc\rd", "a b c d"},
    {"a\x7f"
     "b",
     "a" BAD "b"},
    {"\xc2\x9b"
     "31mred",
     BAD "31mred"}, /* CSI as UTF-8 */
    {"\x9b"
     "31mred",
     BAD "31mred"}, /* CSI as one byte */
    {"\x9d"
     "0;title\x9c",
     BAD "0;title" BAD}, /* OSC and ST as bytes */
    {"gpj.\xe2\x80\xae"
     "exe",
     "gpj." BAD "exe"},                         /* right-to-left override */
    {"\xe2\x81\xa6x\xe2\x81\xa9", BAD "x" BAD}, /* isolate */
    {"a\xe2\x80\x8b"
     "b\xef\xbb\xbf",
     "a" BAD "b" BAD}, /* zero width, byte order mark */
    {"a\xe2\x80\xa8"
     "b\xe2\x80\xa9",
     "a" BAD "b" BAD},                             /* separators */
    {"x\xf3\xa0\x81\xa1y", "x" BAD "y"},           /* tag */
    {"\xed\xa0\x80", BAD BAD BAD},                 /* surrogate: three bytes that are not UTF-8 */
    {"\xc0\x9b\xe0\x80\x9b", BAD BAD BAD BAD BAD}, /* overlong forms of ESC-like bytes */
    {"end\xf0\x9f\x98", "end" BAD},                /* cut inside a character */
    {"\xc3\xa4\xc3\xb6\xc3\xbc \xce\xb1\xce\xb2 \xd0\xb0\xd0\xb1", NULL},
    {"\xe7\x8c\xab \xed\x95\x9c\xea\xb8\x80 \xd7\x97\xd7\xaa\xd7\x95\xd7\x9c", NULL},
    {"\xd9\x86\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae\xd9\x88\xd8\xa7\xd9\x87\xd9\x85",
     NULL},                                                                          /* ZWNJ */
    {"\xe0\xa4\x95\xe0\xa5\x8d\xe2\x80\x8d\xe0\xa4\xb7", NULL},                      /* ZWJ */
    {"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac \xe2\x9d\xa4\xef\xb8\x8f", NULL}, /* emoji */
};

static void pages_and_figures_use_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *want = texts[i].shown ? texts[i].shown : texts[i].text;
        void (*const put[])(ry_buffer *, const char *) = {ry_put_clean, ry_put_escaped,
                                                          ry_put_json};
        for (size_t k = 0; k < sizeof put / sizeof *put; k++) {
            ry_buffer b = {.al = NULL};
            put[k](&b, texts[i].text);
            assert_false(b.failed);
            assert_int_equal(b.size, strlen(want));
            assert_memory_equal(b.bytes, want, b.size);
            ry_free(b.al, b.bytes);
        }
    }
}

/* Messages of the library, for any length at which they are cut. */
static void messages_use_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *want = texts[i].shown ? texts[i].shown : texts[i].text;
        renyi_error err;
        ry_fail(&err, RENYI_ERR_FORMAT, -1, "%s", texts[i].text);
        assert_string_equal(err.message, want);
        for (size_t size = 1; size < 64; size++) {
            char out[64];
            memset(out, 'x', sizeof out);
            ry_visible_copy(out, size, texts[i].text);
            const size_t length = strlen(out);
            assert_true(length < size);
            assert_memory_equal(out, want, length);
            assert_int_equal(ry_utf8_valid(out, length), length);
        }
    }
}

/* What a caller of renyi_text_next prints, with line ends as spaces. */
static size_t show(char *out, const char *text, size_t size)
{
    size_t length = 0;

    for (size_t i = 0, n; i < size; i += n) {
        uint32_t code;
        int is_hidden;
        n = renyi_text_next(text + i, size - i, &code, &is_hidden);
        assert_in_range(n, 1, size - i);
        if (code == '\t' || code == '\n' || code == '\r') code = ' ';
        length += ry_utf8_put(out + length, is_hidden && code != ' ' ? RY_REPLACEMENT : code);
    }
    out[length] = 0;
    return length;
}

static void the_public_function_agrees(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char out[256];
        show(out, texts[i].text, strlen(texts[i].text));
        assert_string_equal(out, texts[i].shown ? texts[i].shown : texts[i].text);
    }
}

/* A text that comes in two pieces, cut at any byte, shows nothing hidden and no byte of C1. */
static void a_seam_lets_nothing_through(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const size_t size = strlen(texts[i].text);
        for (size_t cut = 0; cut <= size; cut++) {
            char out[512];
            size_t n = show(out, texts[i].text, cut);
            n += show(out + n, texts[i].text + cut, size - cut);
            assert_int_equal(ry_utf8_valid(out, n), n);
            for (size_t at = 0, step; at < n; at += step) {
                uint32_t c;
                step = ry_utf8_get(out + at, n - at, &c);
                assert_false(ry_is_hidden(c));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_class_is_known),
        cmocka_unit_test(pages_and_figures_use_it),
        cmocka_unit_test(messages_use_it),
        cmocka_unit_test(the_public_function_agrees),
        cmocka_unit_test(a_seam_lets_nothing_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
