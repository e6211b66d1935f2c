/* number.c - decimal numbers without the locale's help.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/markup.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static size_t digits_of(char *out, uint64_t v, int at_least)
{
    char reversed[24];
    size_t n = 0;
    while (v || (int)n < at_least) {
        reversed[n++] = (char)('0' + v % 10);
        v /= 10;
    }
    for (size_t i = 0; i < n; i++) out[i] = reversed[n - 1 - i];
    return n;
}

size_t ry_number(char out[RY_NUMBER_MAX], double v, int decimals)
{
    static const double tens[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    static const uint64_t whole_tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    size_t n = 0;
    assert(decimals >= 0 && decimals <= 6);
    if (!isfinite(v)) {
        memcpy(out, "\xe2\x80\x93", 3);
        return 3;
    }
    const double scaled = fabs(v) * tens[decimals];
    if (!(scaled < 9e15)) /* no decimals are left to show; "%.0f" prints no separator */
        return (size_t)snprintf(out, RY_NUMBER_MAX, "%.0f", v);
    const uint64_t units = (uint64_t)rint(scaled);
    if (v < 0 && units) out[n++] = '-';
    n += digits_of(out + n, units / whole_tens[decimals], 1);
    if (decimals) {
        out[n++] = '.';
        n += digits_of(out + n, units % whole_tens[decimals], decimals);
    }
    return n;
}
