/* policy_number.h - numbers in policy text: strict, exact, and the same in every locale, which
 * neither strtod nor printf's %g is. SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PRUNE_POLICY_NUMBER_H
#define RY_PRUNE_POLICY_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum { RY_DECIMAL_TEXT = 40 }; /* bytes that a printed decimal needs at most */

/* Digits only. Returns 0 when it is no such number or above max. */
int ry_read_whole(const char *text, size_t len, uint64_t max, uint64_t *out);

/* [-]digits[.digits], at most 15 digits from the first that is not zero and 15 after the point:
 * then digits / 10^k is one correctly rounded division, the double that the text means. */
int ry_read_decimal(const char *text, size_t len, double *out);

/* The shortest such text that reads back as x; "inf" for infinity. An x that no 15 digits say
 * exactly is rounded. Returns out. */
const char *ry_print_decimal(char out[RY_DECIMAL_TEXT], double x);

#endif
