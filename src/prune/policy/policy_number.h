/* policy_number.h - numbers in policy text: strict, exact, and the same in every locale, which
 * neither strtod nor printf's %g is.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_POLICY_NUMBER_H
#define RY_POLICY_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum { RY_DECIMAL_TEXT = 48 }; /* bytes that a printed decimal needs at most */

/* Digits only. Returns 0 when it is no such number or above max. */
int ry_read_whole(const char *text, size_t len, uint64_t max, uint64_t *out);

/* [-]digits[.digits] or [-].digits: at most 15 digits before the point, 19 behind it, and 17 from
 * the first that is not zero, as many as a program needs to print a double. Correctly rounded.
 * Returns 0 when it is no such number. */
int ry_read_decimal(const char *text, size_t len, double *out);

/* The shortest such text that reads back as x, or "inf"; an x that has none is cut to what has (no
 * number that was read). Returns out. */
const char *ry_print_decimal(char out[RY_DECIMAL_TEXT], double x);

#endif
