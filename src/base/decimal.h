/* decimal.h - decimal numbers as text: strict, exact and the same in every locale. strtod and
 * printf's %g depend on the locale.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_DECIMAL_H
#define RY_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

enum { RY_DECIMAL_TEXT = 48 }; /* bytes that a printed decimal needs at most */

/* Digits only. Returns 0 if the text is anything else or the number is above max. */
int ry_read_whole(const char *text, size_t len, uint64_t max, uint64_t *out);

/* [-]digits[.digits] or [-].digits: at most 15 digits before the point, 19 after it, and 17 from
 * the first non-zero digit, as many as are needed to print a double. Correctly rounded. Returns 0
 * if the text is anything else. */
int ry_read_decimal(const char *text, size_t len, double *out);

/* The shortest such text that reads back as x, or "inf", "-inf", "nan". Numbers outside this format
 * are truncated; a number that ry_read_decimal returned never is. Returns out. */
const char *ry_print_decimal(char out[RY_DECIMAL_TEXT], double x);

#endif
