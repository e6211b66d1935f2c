/* vqa_normalize.c - answers as the servers of VQAv2, VizWiz and TextVQA compare them: the steps of
 * EvalAI's answer processor, in its order, with its quirks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "eval/vqa/vqa_questions.h"
#include "text/unicode.h"

#include <string.h>

/* ---- lower case ---------------------------------------------------------------------------- */

/* Some text beyond ASCII; out has room for 8 bytes a byte. Bad bytes become U+FFFD. */
static int lower_any(const char *text, size_t n, char *out, const renyi_allocator *al)
{
    uint32_t *from = ry_alloc(al, n, sizeof *from), *to = ry_alloc(al, n, 2 * sizeof *to);
    size_t count = 0, used = 0;
    if (from && to) {
        for (size_t at = 0; at < n; count++) {
            at += ry_utf8_get(text + at, n - at, &from[count]);
            if (from[count] == RY_UTF8_BAD) from[count] = RY_REPLACEMENT;
        }
        count = ry_unicode_lower(from, count, to);
        for (size_t i = 0; i < count; i++) used += ry_utf8_put(out + used, to[i]);
        out[used] = 0;
    }
    const int is_fine = from && to;
    ry_free(al, from);
    ry_free(al, to);
    return is_fine;
}

char *ry_vqa_lower(const char *text, size_t n, const renyi_allocator *al)
{
    size_t n_ascii = 0;
    while (n_ascii < n && (unsigned char)text[n_ascii] < 0x80) n_ascii++;
    if (n > SIZE_MAX / 8 - 1) return NULL;
    char *out = ry_alloc(al, n_ascii == n ? n + 1 : 8 * n + 1, 1);
    if (!out) return NULL;
    if (n_ascii == n) {
        for (size_t i = 0; i < n; i++)
            out[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
        out[n] = 0;
    } else if (!lower_any(text, n, out, al)) {
        ry_free(al, out);
        return NULL;
    }
    return out;
}

/* ---- the steps ----------------------------------------------------------------------------- */

static int is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* No commas and question marks, a blank before 's, blanks for line ends and tabs, none at the ends.
 * `to` has room for twice the text. */
static void strip(const char *at, char *to)
{
    char *const start = to;
    for (; *at; at++) {
        if (*at == ',' || *at == '?') continue;
        /* Commas were gone before 's was looked for: ',s is 's too. */
        const char *next = at + 1;
        while (*next == ',' || *next == '?') next++;
        if (*at == '\'' && *next == 's') *to++ = ' ';
        *to++ = *at;
    }
    while (to > start && is_blank(to[-1])) to--;
    *to = 0;
    size_t lead = 0;
    while (is_blank(start[lead])) lead++;
    memmove(start, start + lead, (size_t)(to - start) - lead + 1);
    for (char *c = start; *c; c++)
        if (*c == '\n' || *c == '\t') *c = ' ';
}

/* A mark that stands beside a blank anywhere goes; others become a blank. */
static void drop_punctuation(const char *at, char *to)
{
    static const char marks[] = ";/[]\"{}()=+\\_-><@`!";
    unsigned char goes[256] = {0};
    for (const char *c = at; *c; c++) {
        const int beside = c[1] == ' ' || (c > at && c[-1] == ' ');
        if (beside) goes[(unsigned char)*c] = 1;
    }
    for (; *at; at++) {
        if (!strchr(marks, *at))
            *to++ = *at;
        else if (!goes[(unsigned char)*at])
            *to++ = ' ';
    }
    *to = 0;
}

/* Points that no digit follows, the first 32 of them: the original takes a flag for a count. */
static void drop_points(char *text)
{
    enum { AT_MOST = 32 };
    char *to = text;
    int n = 0;
    for (const char *at = text; *at; at++) {
        const int is_digit = at[1] >= '0' && at[1] <= '9';
        if (*at == '.' && !is_digit && n < AT_MOST)
            n++;
        else
            *to++ = *at;
    }
    *to = 0;
}

static const char *number_of(const char *word)
{
    static const char *const words[][2] = {{"none", "0"},  {"zero", "0"},  {"one", "1"},
                                           {"two", "2"},   {"three", "3"}, {"four", "4"},
                                           {"five", "5"},  {"six", "6"},   {"seven", "7"},
                                           {"eight", "8"}, {"nine", "9"},  {"ten", "10"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], word) == 0) return words[i][1];
    return NULL;
}

/* Words with one blank between them: digits, no articles, whole contractions. No word grows by more
 * than two bytes, and a blank stands behind each. */
static void mend_words(char *at, char *to)
{
    char *const start = to;
    while (*at) {
        char mended[24];
        while (is_blank(*at)) at++;
        char *end = at;
        while (*end && !is_blank(*end)) end++;
        const int is_last = !*end;
        *end = 0;
        const char *word = number_of(at);
        if (!word) word = ry_vqa_contraction(at, mended) ? mended : at;
        const int is_article =
            strcmp(at, "a") == 0 || strcmp(at, "an") == 0 || strcmp(at, "the") == 0;
        if (*at && !is_article) {
            if (to > start) *to++ = ' ';
            memcpy(to, word, strlen(word));
            to += strlen(word);
        }
        at = is_last ? end : end + 1;
    }
    *to = 0;
}

/* Owned (ry_free); NULL = no memory. */
static char *normalise(const char *answer, const renyi_allocator *al)
{
    char *lower = ry_vqa_lower(answer, strlen(answer), al);
    const size_t n = lower ? strlen(lower) : 0;
    char *a = lower && n < SIZE_MAX / 4 ? ry_alloc(al, 2 * n + 1, 1) : NULL;
    char *b = a ? ry_alloc(al, 4 * n + 1, 1) : NULL;
    if (b) {
        strip(lower, a);
        drop_punctuation(a, b);
        drop_points(b);
        memcpy(a, b, strlen(b) + 1); /* no longer than it was */
        mend_words(a, b);
    }
    ry_free(al, lower);
    ry_free(al, a);
    return b;
}

renyi_status ry_vqa_normalise(ry_pool *pool, const char **out, const char *answer, renyi_error *err)
{
    char *text = normalise(answer, pool->al);
    *out = text ? ry_pool_copy(pool, ry_text_of(text)) : NULL;
    ry_free(pool->al, text);
    return *out ? RENYI_OK : ry_fail_nomem(err, strlen(answer));
}

renyi_status renyi_vqa_normalise(char **out, const char *answer, const renyi_allocator *allocator,
                                 renyi_error *err)
{
    if (!out || !answer)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_vqa_normalise: NULL argument");
    *out = normalise(answer, allocator);
    return *out ? RENYI_OK : ry_fail_nomem(err, strlen(answer));
}

void renyi_vqa_text_free(char *text, const renyi_allocator *allocator) { ry_free(allocator, text); }
