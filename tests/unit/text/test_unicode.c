/* test_unicode.c - UTF-8, the Unicode tables and the HTML references, all compared with Python.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"
#include "text/html_entities.h"
#include "text/unicode.h"
#include "text_expected.h"

#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "test.h"

/* Every character. With sanitizers only the first 13,312; then sums are not compared. */
#ifdef RENYI_SANITIZED
enum { END = 0x3400, IS_ALL = 0 };
#else
enum { END = 0x110000, IS_ALL = 1 };
#endif
#define FOR_ALL(c) for (uint32_t c = 0; c < END; c += c == 0xd7ff ? 0x801 : 1)

static uint32_t add(uint32_t sum, const uint32_t *text, size_t n)
{
    unsigned char bytes[64 * 4];
    for (size_t i = 0; i < 4 * n; i++) bytes[i] = (unsigned char)(text[i / 4] >> (8 * (i % 4)));
    return (uint32_t)crc32(sum, bytes, (uInt)(4 * n));
}

/* ---- UTF-8 --------------------------------------------------------------------------------- */

static void test_utf8_all(void **state)
{
    (void)state;
    FOR_ALL(c)
    {
        char text[4];
        uint32_t back;
        const size_t n = ry_utf8_put(text, c);
        if (ry_utf8_get(text, n, &back) != n || back != c) fail_msg("U+%04X", c);
        if (n > 1 && ry_utf8_get(text, n - 1, &back) && back != RY_UTF8_BAD) fail_msg("U+%04X", c);
    }
}

/* Which bytes one U+FFFD replaces: Unicode 14, section 3.9, table 3-8. */
static void test_utf8_bad(void **state)
{
    static const struct {
        const char *bytes;
        size_t size, skip;
    } cases[] = {{"\x80", 1, 1},         {"\xff", 1, 1},         {"\xc0\x80", 2, 1},
                 {"\xc1\xbf", 2, 1},     {"\xe0\x80\x80", 3, 1}, {"\xe1\x80 ", 3, 2},
                 {"\xed\xa0\x80", 3, 1}, {"\xf0\x80\x80", 3, 1}, {"\xf0\x90\x80 ", 4, 3},
                 {"\xf4\x90\x80", 3, 1}, {"\xf5\x80\x80", 3, 1}, {"\xc3", 1, 1},
                 {"\xf1\x80\x80", 3, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t c = 0;
        assert_int_equal(ry_utf8_get(cases[i].bytes, cases[i].size, &c), cases[i].skip);
        assert_int_equal(c, RY_UTF8_BAD);
    }
}

/* ---- Unicode ------------------------------------------------------------------------------- */

static void test_classes(void **state)
{
    uint32_t sum = 0;
    (void)state;
    FOR_ALL(c)
    {
        const uint32_t class = ry_unicode_class(c);
        sum = add(sum, &class, 1);
    }
    if (IS_ALL) assert_int_equal(sum, EXPECTED_CLASSES);
    assert_int_equal(ry_unicode_class('a'), RY_LETTER | RY_CASED);
    assert_int_equal(ry_unicode_class('7'), RY_NUMBER);
    assert_int_equal(ry_unicode_class(0x3000), RY_SPACE);
    assert_int_equal(ry_unicode_class(0x65e5), RY_LETTER);
}

static void test_lower(void **state)
{
    uint32_t sum = 0, sigma = 0, out[8];
    (void)state;
    FOR_ALL(c)
    {
        const uint32_t word[] = {'a', c, 0x3a3, c};
        sum = add(sum, out, ry_unicode_lower(&c, 1, out, 1));
        sigma = add(sigma, out, ry_unicode_lower(word, 4, out, 1));
    }
    if (IS_ALL) assert_int_equal(sum, EXPECTED_LOWER);
    if (IS_ALL) assert_int_equal(sigma, EXPECTED_SIGMA);
}

static void test_compose(void **state)
{
    uint32_t sum = 0, marked = 0, text[64], spare[64];
    (void)state;
    FOR_ALL(c)
    {
        text[0] = c;
        sum = add(sum, text, ry_unicode_compose(text, 1, spare));
        text[0] = c, text[1] = 0x301, text[2] = 0x323;
        marked = add(marked, text, ry_unicode_compose(text, 3, spare));
    }
    if (IS_ALL) assert_int_equal(sum, EXPECTED_COMPOSED);
    if (IS_ALL) assert_int_equal(marked, EXPECTED_MARKED);
}

/* Very many marks are sorted in linear time and stay in order. */
static void test_compose_marks(void **state)
{
    enum { N = 200000 };
    static uint32_t text[RY_COMPOSE_GROWTH * (N + 1)], spare[RY_COMPOSE_GROWTH * (N + 1)];
    (void)state;
    text[0] = 'a';
    for (size_t i = 1; i <= N; i++) text[i] = i % 2 ? 0x301 : 0x323;
    assert_int_equal(ry_unicode_compose(text, N + 1, spare), N);
    assert_int_equal(text[0], 0x1ea1); /* a with a dot below, which sorts before the accent */
    assert_int_equal(text[1], 0x323);
    assert_int_equal(text[N - 1], 0x301);
}

/* ---- HTML ---------------------------------------------------------------------------------- */

static size_t unescape(const char *ascii, uint32_t *text)
{
    const size_t n = strlen(ascii);
    for (size_t i = 0; i < n; i++) text[i] = (unsigned char)ascii[i];
    return ry_html_unescape(text, n);
}

static void test_numbers(void **state)
{
    uint32_t sum = 0, text[256];
    (void)state;
    for (unsigned n = 0; n < END + 16; n++) {
        char ascii[40];
        snprintf(ascii, sizeof ascii, "&#%u;&#x%x", n, n);
        sum = add(sum, text, unescape(ascii, text));
    }
    if (IS_ALL) assert_int_equal(sum, EXPECTED_NUMBERS);
}

static void test_names(void **state)
{
    uint32_t sum = 0, text[256];
    (void)state;
    for (size_t i = 0; i < ry_html_entities_n; i++) {
        const char *name = ry_html_entities[i].name;
        char ascii[256];
        if (i) assert_true(strcmp(ry_html_entities[i - 1].name, name) < 0);
        snprintf(ascii, sizeof ascii, "&%s;&%s&%s1 &%.*s;", name, name, name, (int)strlen(name) - 1,
                 name);
        /* a name has at most 40 characters, so four of them fit into add() */
        size_t n = unescape(ascii, text), done = 0;
        for (; n - done > 64; done += 64) sum = add(sum, text + done, 64);
        sum = add(sum, text + done, n - done);
    }
    assert_int_equal(sum, EXPECTED_NAMES);
}

static void test_no_references(void **state)
{
    static const char *const same[] = {"&",     "&&",     "&#",  "&#;", "&#x",
                                       "&#xg;", "& amp;", "a&b", "&;"};
    uint32_t text[256];
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const size_t n = unescape(same[i], text);
        assert_int_equal(n, strlen(same[i]));
        for (size_t k = 0; k < n; k++) assert_int_equal(text[k], same[i][k]);
    }
    assert_int_equal(unescape("&#99999999999999999999999;", text), 1);
    assert_int_equal(text[0], RY_REPLACEMENT);
    assert_int_equal(unescape("&amp;lt;", text), 4); /* once */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8_all),     cmocka_unit_test(test_utf8_bad),
        cmocka_unit_test(test_classes),      cmocka_unit_test(test_lower),
        cmocka_unit_test(test_compose),      cmocka_unit_test(test_compose_marks),
        cmocka_unit_test(test_numbers),      cmocka_unit_test(test_names),
        cmocka_unit_test(test_no_references)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
