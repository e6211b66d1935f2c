/* html_entities.c - replaces HTML character references such as &amp; &#233; &eacute; by characters.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/html_entities.h"

#include "base/utf8.h"

#include <string.h>

enum { NAME_MAX_LENGTH = 32 };

/* A reference at the start of a text. */
typedef struct reference {
    size_t length; /* in characters, with the '&'; 0 = no reference */
    size_t n;      /* characters it stands for: 0, 1 or 2 */
    uint32_t c[2];
} reference;

/* The digit c of a number with this base, or -1. */
static int digit_of(uint32_t c, uint32_t base)
{
    if (c >= '0' && c <= '9') return (int)(c - '0');
    if (base == 16 && c >= 'a' && c <= 'f') return (int)(c - 'a') + 10;
    if (base == 16 && c >= 'A' && c <= 'F') return (int)(c - 'A') + 10;
    return -1;
}

/* The character of a numeric reference; 0 = none. */
static uint32_t character_of(uint32_t number)
{
    static const uint16_t windows[32] = {
        0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021, 0x2c6,  0x2030, 0x160,
        0x2039, 0x152,  0x8d,   0x17d,  0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
        0x2013, 0x2014, 0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};
    if (number >= 0x80 && number < 0xa0) return windows[number - 0x80];
    if (!number || number > 0x10ffff || (number >= 0xd800 && number < 0xe000))
        return RY_REPLACEMENT;
    const int is_blank = number == '\t' || number == '\n' || number == '\f' || number == '\r';
    const int is_none = (number & 0xfffe) == 0xfffe || (number >= 0xfdd0 && number <= 0xfdef);
    return (number < 0x20 && !is_blank) || number == 0x7f || is_none ? 0 : number;
}

/* text[0] is '&', text[1] is '#'. */
static reference read_number(const uint32_t *text, size_t n)
{
    const uint32_t base = n > 2 && (text[2] == 'x' || text[2] == 'X') ? 16 : 10;
    const size_t first = base == 16 ? 3 : 2;
    uint32_t number = 0;
    size_t i = first;
    for (; i < n && digit_of(text[i], base) >= 0; i++)
        if (number <= 0x10ffff) number = number * base + (uint32_t)digit_of(text[i], base);
    if (i == first) return (reference){0};
    const uint32_t c = character_of(number);
    return (reference){i + (i < n && text[i] == ';'), c != 0, {c, 0}};
}

static const ry_html_entity *find_entity(const char *name)
{
    size_t low = 0, high = ry_html_entities_n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(ry_html_entities[middle].name, name);
        if (!order) return &ry_html_entities[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* text[0] is '&'. The whole name, or else its longest start that is valid without a semicolon. */
static reference read_name(const uint32_t *text, size_t n)
{
    char name[NAME_MAX_LENGTH + 1];
    size_t length = 0;
    while (length < NAME_MAX_LENGTH && length + 1 < n) {
        const uint32_t c = text[length + 1];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) break;
        name[length++] = (char)c;
    }
    int is_closed = length + 1 < n && text[length + 1] == ';';
    for (; length; length--, is_closed = 0) {
        name[length] = '\0';
        const ry_html_entity *e = find_entity(name);
        if (e && (is_closed || e->is_bare))
            return (reference){1 + length + (size_t)is_closed, e->c[1] ? 2 : 1, {e->c[0], e->c[1]}};
    }
    return (reference){0};
}

size_t ry_html_unescape(uint32_t *text, size_t n)
{
    size_t m = 0;
    for (size_t i = 0; i < n;) {
        reference r = {0};
        if (text[i] == '&' && i + 1 < n)
            r = text[i + 1] == '#' ? read_number(text + i, n - i) : read_name(text + i, n - i);
        if (!r.length) {
            text[m++] = text[i++];
            continue;
        }
        for (size_t k = 0; k < r.n; k++) text[m++] = r.c[k]; /* never longer than the reference */
        i += r.length;
    }
    return m;
}
