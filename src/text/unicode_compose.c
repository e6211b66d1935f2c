/* unicode_compose.c - normalization form C (Unicode Standard Annex #15): characters are taken
 * apart, marks put in order, and what has a character of its own is put together again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/unicode.h"
#include "text/unicode_tables.h"

/* Hangul syllables are made of leads, vowels and tails by arithmetic (Unicode, section 3.12). */
enum { SYLLABLE = 0xac00, LEAD = 0x1100, VOWEL = 0x1161, TAIL = 0x11a7 };
enum { LEADS = 19, VOWELS = 21, TAILS = 28, SYLLABLES = LEADS * VOWELS * TAILS };

/* Nothing below is taken apart, is a mark, or joins what stands before it. */
enum { FIRST_APART = 0xc0, FIRST_MARK = 0x300 };

/* Canonical combining class: 0 = a character that marks stand on. */
static uint32_t order_of(uint32_t c)
{
    size_t low = 0, high = ry_unicode_orders_n;
    if (c < FIRST_MARK) return 0;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (ry_unicode_orders[middle] >> 8 <= c)
            low = middle;
        else
            high = middle;
    }
    return ry_unicode_orders[low] & 0xff;
}

static const ry_character_pair *parts_of(uint32_t c)
{
    size_t low = 0, high = ry_unicode_decomposed_n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (ry_unicode_decomposed[middle].whole < c)
            low = middle + 1;
        else
            high = middle;
    }
    const int found = low < ry_unicode_decomposed_n && ry_unicode_decomposed[low].whole == c;
    return found ? &ry_unicode_decomposed[low] : NULL;
}

/* c taken apart into out [4]; the parts. Only first parts go on being taken apart. */
static size_t take_apart(uint32_t c, uint32_t *out)
{
    uint32_t back[RY_COMPOSE_GROWTH];
    size_t n = 0, m = 0;
    if (c >= SYLLABLE && c < SYLLABLE + SYLLABLES) {
        const uint32_t s = c - SYLLABLE;
        out[0] = LEAD + s / (VOWELS * TAILS);
        out[1] = VOWEL + s % (VOWELS * TAILS) / TAILS;
        out[2] = TAIL + s % TAILS;
        return s % TAILS ? 3 : 2;
    }
    for (const ry_character_pair *p; c >= FIRST_APART && (p = parts_of(c)); c = p->first)
        if (p->second) back[n++] = p->second;
    out[m++] = c;
    while (n) out[m++] = back[--n];
    return m;
}

/* The character that stands for `first` and `second`, or 0. */
static uint32_t whole_of(uint32_t first, uint32_t second)
{
    if (second < FIRST_MARK) return 0;
    if (first >= LEAD && first < LEAD + LEADS && second >= VOWEL && second < VOWEL + VOWELS)
        return SYLLABLE + ((first - LEAD) * VOWELS + (second - VOWEL)) * TAILS;
    if (first >= SYLLABLE && first < SYLLABLE + SYLLABLES && (first - SYLLABLE) % TAILS == 0 &&
        second > TAIL && second < TAIL + TAILS)
        return first + (second - TAIL);
    size_t low = 0, high = ry_unicode_composed_n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const ry_character_pair *p = &ry_unicode_composed[middle];
        if (p->first < first || (p->first == first && p->second < second))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == ry_unicode_composed_n) return 0;
    const ry_character_pair *p = &ry_unicode_composed[low];
    return p->first == first && p->second == second ? p->whole : 0;
}

/* Marks of one base in ascending order, equal ones as they were. Sorted by counting: there are few
 * orders, and a text may be nothing but marks. */
static void sort_marks(const uint32_t *marks, size_t n, uint32_t *out)
{
    size_t place[257] = {0};
    for (size_t i = 0; i < n; i++) place[order_of(marks[i]) + 1]++;
    for (size_t o = 1; o < 257; o++) place[o] += place[o - 1];
    for (size_t i = 0; i < n; i++) out[place[order_of(marks[i])]++] = marks[i];
}

static void put_in_order(const uint32_t *text, size_t n, uint32_t *out)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && order_of(text[end]);) end++;
        if (end - i > 1)
            sort_marks(text + i, end - i, out + i);
        else
            out[i] = text[i]; /* a single mark, or none: then a base */
        if (end == i) end++;
    }
}

static size_t put_together(uint32_t *text, size_t n)
{
    size_t m = 0, base = SIZE_MAX; /* place of the last character of order 0 */
    uint32_t last = 0;             /* order of what was written behind it; 0 = nothing was */
    for (size_t i = 0; i < n; i++) {
        const uint32_t c = text[i], order = order_of(c);
        const int is_next = base != SIZE_MAX && m == base + 1;
        const int is_free = base != SIZE_MAX && (is_next || last < order);
        const uint32_t whole = is_free ? whole_of(text[base], c) : 0;
        if (whole) {
            text[base] = whole;
            continue;
        }
        if (!order) base = m;
        last = order;
        text[m++] = c;
    }
    return m;
}

size_t ry_unicode_compose(uint32_t *text, size_t n, uint32_t *spare)
{
    size_t m = 0, plain = 0;
    while (plain < n && text[plain] < FIRST_MARK) plain++;
    if (plain == n) return n; /* nothing to put in order or together */
    for (size_t i = 0; i < n; i++) m += take_apart(text[i], spare + m);
    put_in_order(spare, m, text);
    return put_together(text, m);
}
