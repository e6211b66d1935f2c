/* unicode.c - classes of characters and lower case.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/unicode.h"

#include "text/unicode_tables.h"

/* Value of the stretch that holds c; the first begins at 0. */
static uint32_t value_at(const uint32_t *stretches, size_t n, uint32_t c)
{
    size_t low = 0, high = n;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (stretches[middle] >> 8 <= c)
            low = middle;
        else
            high = middle;
    }
    return stretches[low] & 0xff;
}

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

/* Does the sigma at i end a word: something cased before it, nothing cased behind it? */
static int is_final(const uint32_t *text, size_t n, size_t i)
{
    size_t before = i, behind = i + 1;
    while (before && ry_unicode_class(text[before - 1]) & RY_IGNORED) before--;
    if (!before || !(ry_unicode_class(text[before - 1]) & RY_CASED)) return 0;
    while (behind < n && ry_unicode_class(text[behind]) & RY_IGNORED) behind++;
    return behind == n || !(ry_unicode_class(text[behind]) & RY_CASED);
}

size_t ry_unicode_lower(const uint32_t *text, size_t n, uint32_t *out)
{
    enum { CAPITAL_SIGMA = 0x3a3, FINAL_SIGMA = 0x3c2, DOTTED_I = 0x130, DOT_ABOVE = 0x307 };
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == CAPITAL_SIGMA && is_final(text, n, i)) {
            out[m++] = FINAL_SIGMA;
        } else if (text[i] == DOTTED_I) { /* the only one that becomes two */
            out[m++] = 'i';
            out[m++] = DOT_ABOVE;
        } else {
            out[m++] = lower_of(text[i]);
        }
    }
    return m;
}
