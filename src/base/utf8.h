/* utf8.h - reads and writes UTF-8 one character at a time, strictly: no surrogates, no overlong
 * forms, nothing beyond U+10FFFF.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_UTF8_H
#define RY_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { RY_REPLACEMENT = 0xfffd };

/* Reads the character at `at`, of which `left` >= 1 bytes exist. Returns its length, 1 to 4. For
 * invalid bytes *c is RY_UTF8_BAD, and the result is the number of bytes that a decoder replaces by
 * one U+FFFD: the longest start of a character. */
#define RY_UTF8_BAD UINT32_MAX
static inline size_t ry_utf8_get(const char *at, size_t left, uint32_t *c)
{
    const unsigned char *s = (const unsigned char *)at;
    const unsigned first = s[0];
    *c = first;
    if (first < 0x80) return 1;
    *c = RY_UTF8_BAD;
    if (first < 0xc2 || first > 0xf4) return 1;
    const size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    /* The second byte excludes overlong forms, surrogates and numbers that are too large. */
    unsigned low = 0x80, high = 0xbf;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
    uint32_t bits = first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (i >= left || s[i] < low || s[i] > high) return i;
        bits = bits << 6 | (s[i] & 0x3fu);
        low = 0x80, high = 0xbf;
    }
    *c = bits;
    return length;
}

/* Bytes of text [n] before the first invalid one; n = all is UTF-8. */
static inline size_t ry_utf8_valid(const char *text, size_t n)
{
    for (size_t i = 0, step; i < n; i += step) {
        uint32_t c;
        step = ry_utf8_get(text + i, n - i, &c);
        if (c == RY_UTF8_BAD) return i;
    }
    return n;
}

/* Writes a character and returns its length, at most 4. */
static inline size_t ry_utf8_put(char *out, uint32_t c)
{
    if (c < 0x80) return out[0] = (char)c, 1;
    const size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length; --i;) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(0xf00u >> length | c); /* as many leading one bits as bytes */
    return length;
}

#endif
