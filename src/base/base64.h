/* base64.h - decodes base64 (RFC 4648).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BASE64_H
#define RY_BASE64_H

#include <stddef.h>
#include <stdint.h>

static inline int ry_base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* `out` has space for n / 4 * 3 + 3 bytes. Line ends are skipped; padding may be missing, but
 * nothing may follow it. Returns 1 and *size, or 0 if the text is not base64. */
static inline int ry_base64_decode(const char *text, size_t n, unsigned char *out, size_t *size)
{
    uint32_t bits = 0;
    unsigned n_digits = 0;
    size_t i = 0;
    *size = 0;
    for (; i < n && text[i] != '='; i++) {
        const int digit = ry_base64_digit(text[i]);
        if (text[i] == '\n' || text[i] == '\r') continue;
        if (digit < 0) return 0;
        bits = bits << 6 | (uint32_t)digit;
        if (n_digits++ % 4 == 0) continue;
        out[(*size)++] = (unsigned char)(bits >> (6 - 2 * ((n_digits - 1) % 4)));
    }
    for (; i < n; i++)
        if (text[i] != '=' && text[i] != '\n' && text[i] != '\r') return 0;
    return n_digits % 4 != 1;
}

#endif
