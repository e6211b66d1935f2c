/* settings_number.c - numbers as text, the same in every locale: JSON's, by jansson.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/settings/settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DIGITS = 60, FEWEST = 6, MOST = 17 }; /* 17 digits bring every double back */

int ry_number_read(const char *text, size_t length, double *out)
{
    char json[MOST_DIGITS + 4] = "";
    json_error_t unused;
    const int negative = length && text[0] == '-';
    text += negative;
    length -= (size_t)negative;
    if (!length || length > MOST_DIGITS || !strchr(".0123456789", text[0])) return 0;
    /* JSON has neither ".5" nor "007" */
    const int bare = text[0] == '.';
    while (length > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9') text++, length--;
    snprintf(json, sizeof json, "%s%.*s", bare ? "0" : "", (int)length, text);
    json_t *number = json_loads(json, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &unused);
    const int ok = json_is_real(number) && isfinite(json_real_value(number));
    if (ok) *out = negative ? -json_real_value(number) : json_real_value(number);
    json_decref(number);
    return ok;
}

static size_t print_with(char out[RY_NUMBER_TEXT], double x, size_t digits)
{
    json_t *number = json_real(x);
    const size_t n = number ? json_dumpb(number, out, RY_NUMBER_TEXT - 1,
                                         JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits))
                            : 0;
    json_decref(number);
    out[n < RY_NUMBER_TEXT ? n : 0] = '\0';
    return n;
}

const char *ry_number_print(char out[RY_NUMBER_TEXT], double x)
{
    double back = 0;
    if (!isfinite(x)) {
        snprintf(out, RY_NUMBER_TEXT, "%s", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return out;
    }
    for (size_t digits = FEWEST; digits <= MOST; digits++) {
        const size_t n = print_with(out, x, digits);
        if (n > 2 && n < RY_NUMBER_TEXT && strcmp(out + n - 2, ".0") == 0) out[n - 2] = '\0';
        if (ry_number_read(out, strlen(out), &back) && back == x) break;
    }
    return out;
}
