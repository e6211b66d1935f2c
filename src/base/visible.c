/* visible.c - the one filter of text from outside for terminals, pages and figures.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/visible.h"

#include "base/utf8.h"
#include "renyi/renyi.h"

int ry_is_hidden(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x0000, 0x001f},   /* C0: escape sequences, line ends, bell */
        {0x007f, 0x009f},   /* DEL and C1: U+009B begins a sequence as ESC [ does */
        {0x00ad, 0x00ad},   /* soft hyphen */
        {0x061c, 0x061c},   /* Arabic letter mark: direction */
        {0x180e, 0x180e},   /* Mongolian vowel separator: zero width */
        {0x200b, 0x200b},   /* zero-width space */
        {0x200e, 0x200f},   /* direction marks */
        {0x2028, 0x202e},   /* line and paragraph separator; embedded and overridden direction */
        {0x2060, 0x206f},   /* word joiner, invisible operators, isolated direction, deprecated */
        {0xd800, 0xdfff},   /* surrogates */
        {0xfdd0, 0xfdef},   /* no characters */
        {0xfeff, 0xfeff},   /* byte order mark, zero-width no-break space */
        {0xfff0, 0xfffb},   /* not assigned; annotations, which hide text */
        {0xe0000, 0xe0fff}, /* tags; variation selectors beyond the first 16; not assigned */
    };
    if (c > 0x10ffff || (c & 0xfffe) == 0xfffe) return 1; /* the last two of each plane: none */
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (c <= hidden[i].last) return c >= hidden[i].first;
    return 0;
}

uint32_t ry_visible_next(const char *at, size_t *n)
{
    uint32_t c;
    *n = ry_utf8_get(at, 4, &c); /* a NUL ends a character: nothing is read behind it */
    if (c == '\t' || c == '\n' || c == '\r') return ' ';
    return ry_is_hidden(c) ? RY_REPLACEMENT : c;
}

void ry_visible_copy(char *out, size_t size, const char *text)
{
    size_t length = 0;

    for (size_t n; *text; text += n) {
        char shown[4];
        const size_t n_shown = ry_utf8_put(shown, ry_visible_next(text, &n));
        if (length + n_shown >= size) break;
        for (size_t i = 0; i < n_shown; i++) out[length++] = shown[i];
    }
    out[length] = 0;
}

size_t renyi_text_next(const char *text, size_t size, uint32_t *code, int *is_hidden)
{
    const size_t n = ry_utf8_get(text, size, code);
    *is_hidden = ry_is_hidden(*code);
    if (*code == RY_UTF8_BAD) *code = RY_REPLACEMENT;
    return n;
}
