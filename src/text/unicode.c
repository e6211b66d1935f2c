/* unicode.c - properties of characters, lower case, and canonical composition.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/unicode.h"

#include "text/unicode_tables.h"

/* The value of the range that contains c; the first range begins at 0. */
static uint32_t value_at(const uint32_t *ranges, size_t n, uint32_t c)
{
    size_t low = 0, high = n;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (ranges[middle] >> 8 <= c)
            low = middle;
        else
            high = middle;
    }
    return ranges[low] & 0xff;
}

/* ---- properties and lower case --------------------------------------------------------------- */

uint32_t ry_unicode_class(uint32_t c)
{
    return value_at(ry_unicode_classes, ry_unicode_classes_n, c);
}

static uint32_t lower_of(uint32_t c)
{
    size_t low = 0, high = ry_unicode_lowers_n;
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const ry_lower_range *r = &ry_unicode_lowers[middle];
        if (c > r->last)
            low = middle + 1;
        else if (c < r->first)
            high = middle;
        else
            return (c - r->first) % r->step ? c : (uint32_t)((int32_t)c + r->distance);
    }
    return c;
}

/* Whether the sigma at i ends a word: a cased letter before it, none after it. */
static int is_final(const uint32_t *text, size_t n, size_t i)
{
    size_t before = i, after = i + 1;
    while (before && ry_unicode_class(text[before - 1]) & RY_IGNORED) before--;
    if (!before || !(ry_unicode_class(text[before - 1]) & RY_CASED)) return 0;
    while (after < n && ry_unicode_class(text[after]) & RY_IGNORED) after++;
    return after == n || !(ry_unicode_class(text[after]) & RY_CASED);
}

size_t ry_unicode_lower(const uint32_t *text, size_t n, uint32_t *out, int has_final_sigma)
{
    enum { CAPITAL_SIGMA = 0x3a3, FINAL_SIGMA = 0x3c2, DOTTED_I = 0x130, DOT_ABOVE = 0x307 };
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (has_final_sigma && text[i] == CAPITAL_SIGMA && is_final(text, n, i)) {
            out[m++] = FINAL_SIGMA;
        } else if (text[i] == DOTTED_I) { /* the only character that becomes two */
            out[m++] = 'i';
            out[m++] = DOT_ABOVE;
        } else {
            out[m++] = lower_of(text[i]);
        }
    }
    return m;
}

/* ---- composition ----------------------------------------------------------------------------- */

/* Normalization form C (Unicode Standard Annex #15): characters are decomposed, marks are sorted,
 * and pairs that have a character of their own are composed. Hangul syllables are composed of
 * leads, vowels and tails by arithmetic (Unicode, section 3.12). */
enum { SYLLABLE = 0xac00, LEAD = 0x1100, VOWEL = 0x1161, TAIL = 0x11a7 };
enum { LEADS = 19, VOWELS = 21, TAILS = 28, SYLLABLES = LEADS * VOWELS * TAILS };

/* No character below FIRST_APART is decomposed; none below FIRST_MARK is a mark or composes with
 * the character before it. */
enum { FIRST_APART = 0xc0, FIRST_MARK = 0x300 };

/* Canonical combining class; 0 = a base character. */
static uint32_t order_of(uint32_t c)
{
    return c < FIRST_MARK ? 0 : value_at(ry_unicode_orders, ry_unicode_orders_n, c);
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

/* Decomposes c into out [4] and returns the number of parts. Only first parts decompose further. */
static size_t decompose(uint32_t c, uint32_t *out)
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

/* The character that `first` and `second` compose to, or 0. */
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

/* Marks of one base in ascending order, stable. A counting sort: there are few classes, and a text
 * may consist of marks only. */
static void sort_marks(const uint32_t *marks, size_t n, uint32_t *out)
{
    size_t place[257] = {0};
    for (size_t i = 0; i < n; i++) place[order_of(marks[i]) + 1]++;
    for (size_t o = 1; o < 257; o++) place[o] += place[o - 1];
    for (size_t i = 0; i < n; i++) out[place[order_of(marks[i])]++] = marks[i];
}

static void sort_all_marks(const uint32_t *text, size_t n, uint32_t *out)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && order_of(text[end]);) end++;
        if (end - i > 1)
            sort_marks(text + i, end - i, out + i);
        else
            out[i] = text[i]; /* a single mark, or a base */
        if (end == i) end++;
    }
}

static size_t compose_pairs(uint32_t *text, size_t n)
{
    size_t m = 0, base = SIZE_MAX; /* index of the last base */
    uint32_t last = 0;             /* class of the last mark written after it; 0 = none */
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
    if (plain == n) return n; /* nothing to sort or compose */
    for (size_t i = 0; i < n; i++) m += decompose(text[i], spare + m);
    sort_all_marks(spare, m, text);
    return compose_pairs(text, m);
}
