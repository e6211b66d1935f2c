/* utf8.h - one character at a time, strictly: no surrogates, no overlong forms, nothing beyond
 * U+10FFFF.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_UTF8_H
#define RY_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { RY_REPLACEMENT = 0xfffd };

/* Reads the character at `at`, where `left` >= 1 bytes are. Returns its bytes, 1 to 4. At bytes
 * that make no character *c is RY_UTF8_BAD, and what is returned is as much of them as could have
 * begun one: what a decoder replaces by one U+FFFD. */
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
    /* The second byte is where overlong forms, surrogates and too large numbers show. */
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

/* Bytes of text [n] before the first that make no character; n = all is UTF-8. */
static inline size_t ry_utf8_valid(const char *text, size_t n)
{
    for (size_t i = 0, step; i < n; i += step) {
        uint32_t c;
        step = ry_utf8_get(text + i, n - i, &c);
        if (c == RY_UTF8_BAD) return i;
    }
    return n;
}

/* Writes a character (at most 4 bytes) and returns its bytes. */
static inline size_t ry_utf8_put(char *out, uint32_t c)
{
    if (c < 0x80) return out[0] = (char)c, 1;
    const size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length; --i;) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(0xf00u >> length | c); /* as many leading ones as there are bytes */
    return length;
}

#endif
