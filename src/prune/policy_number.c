/* policy_number.c - see policy_number.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/policy_number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { DIGITS = 15 }; /* 10^15 < 2^53, and 10^22 is the last power of ten that is a double */

static double power_of_ten(unsigned k)
{
    double x = 1;
    while (k--) x *= 10; /* exact up to 10^22 */
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

int ry_read_decimal(const char *text, size_t len, double *out)
{
    const int negative = len && text[0] == '-';
    uint64_t digits = 0;
    unsigned significant = 0, after = 0, seen = 0;
    int point = 0;

    for (size_t i = (size_t)negative; i < len; i++) {
        if (text[i] == '.' && !point && i + 1 < len) { /* ".7" is a number, "7." is not */
            point = 1;
            continue;
        }
        const unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9) return 0;
        if (significant || digit) significant++;
        after += (unsigned)point;
        if (significant > DIGITS || after > DIGITS) return 0;
        digits = digits * 10 + digit;
        seen++;
    }
    if (!seen) return 0;
    const double x = (double)digits / power_of_ten(after);
    *out = negative && digits ? -x : x;
    return 1;
}

const char *ry_print_decimal(char out[RY_DECIMAL_TEXT], double x)
{
    const char *sign = x < 0 ? "-" : "";
    const double size = fabs(x), most = power_of_ten(DIGITS) - 1;
    double digits = 0;
    unsigned after = 0;

    if (!isfinite(x)) {
        snprintf(out, RY_DECIMAL_TEXT, "%s", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return out;
    }
    for (unsigned k = 0; k <= DIGITS; k++) {
        const double all = nearbyint(size * power_of_ten(k));
        if (all > most && k) break;
        digits = all > most ? most : all;
        after = k;
        if (digits / power_of_ten(k) == size) break;
    }
    const uint64_t unit = (uint64_t)power_of_ten(after), all = (uint64_t)digits;
    if (after)
        snprintf(out, RY_DECIMAL_TEXT, "%s%" PRIu64 ".%0*" PRIu64, sign, all / unit, (int)after,
                 all % unit);
    else
        snprintf(out, RY_DECIMAL_TEXT, "%s%" PRIu64, sign, all);
    return out;
}
