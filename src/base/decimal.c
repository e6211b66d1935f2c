/* decimal.c - reads and prints decimal numbers exactly, in every locale. Only integers are used: a
 * decimal is digits / 10^k, and both the ratio and the product with a double's mantissa fit into
 * 128 bits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/decimal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

__extension__ typedef unsigned __int128 wide;

enum { BEFORE = 15, BEHIND = 19, DIGITS = 17 };

static uint64_t power_of_ten(unsigned k)
{
    uint64_t x = 1;
    while (k--) x *= 10; /* 10^19 < 2^64 */
    return x;
}

int ry_read_whole(const char *text, size_t len, uint64_t max, uint64_t *out)
{
    uint64_t x = 0;
    if (!len) return 0;
    for (size_t i = 0; i < len; i++) {
        const unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9 || digit > max || x > (max - digit) / 10) return 0;
        x = x * 10 + digit;
    }
    *out = x;
    return 1;
}

/* digits / 10^behind, rounded once; digits < 10^17 < 2^57, and 10^behind, 2^64 at most, is a double
 * because its odd part 5^behind is below 2^45. */
static double ratio(uint64_t digits, unsigned behind)
{
    enum { SHIFT = 70 };
    const uint64_t unit = power_of_ten(behind);
    if (digits < 1ull << 53) return (double)digits / (double)unit;
    /* The result is at least 2^59, so its last bit is below the bits of a double. Setting it for a
     * remainder keeps the conversion from rounding a false tie. */
    const wide whole = (wide)digits << SHIFT;
    return ldexp((double)(whole / unit | (whole % unit != 0)), -SHIFT);
}

int ry_read_decimal(const char *text, size_t len, double *out)
{
    const int negative = len && text[0] == '-';
    uint64_t digits = 0;
    unsigned significant = 0, before = 0, behind = 0;
    int point = 0;

    for (size_t i = (size_t)negative; i < len; i++) {
        if (text[i] == '.' && !point && i + 1 < len) { /* ".7" is a number, "7." is not */
            point = 1;
            continue;
        }
        const unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9) return 0;
        significant += significant || digit;
        *(point ? &behind : &before) += 1;
        if (significant > DIGITS || before > BEFORE || behind > BEHIND) return 0;
        digits = digits * 10 + digit;
    }
    if (!before && !behind) return 0;
    *out = negative && digits ? -ratio(digits, behind) : ratio(digits, behind);
    return 1;
}

/* x * 10^k to the nearest integer, exactly; 0 < x < 10^15, so the exponent is negative. */
static wide scaled(double x, unsigned k)
{
    int exponent;
    const wide mantissa = (wide)ldexp(frexp(x, &exponent), 53);
    const int shift = 53 - exponent; /* x = mantissa / 2^shift */
    if (shift > 126) return 0;
    return (mantissa * power_of_ten(k) + ((wide)1 << (shift - 1))) >> shift;
}

const char *ry_print_decimal(char out[RY_DECIMAL_TEXT], double x)
{
    const double size = fmin(fabs(x), 1e15 - 1);
    const wide most = power_of_ten(DIGITS) - 1;
    uint64_t digits = 0;
    unsigned behind = 0;

    if (!isfinite(x)) {
        snprintf(out, RY_DECIMAL_TEXT, "%s", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return out;
    }
    for (unsigned k = 0; size > 0 && k <= BEHIND; k++) {
        const wide all = scaled(size, k);
        if (all > most) break;
        digits = (uint64_t)all;
        behind = k;
        if (ratio(digits, k) == size) break;
    }
    const uint64_t unit = power_of_ten(behind);
    const char *sign = x < 0 ? "-" : "";
    if (behind)
        snprintf(out, RY_DECIMAL_TEXT, "%s%" PRIu64 ".%0*" PRIu64, sign, digits / unit, (int)behind,
                 digits % unit);
    else
        snprintf(out, RY_DECIMAL_TEXT, "%s%" PRIu64, sign, digits);
    return out;
}
