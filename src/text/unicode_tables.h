/* unicode_tables.h - the tables of unicode.c, written by tools/make-text-tables.py.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_UNICODE_TABLES_H
#define RY_UNICODE_TABLES_H

#include <stddef.h>
#include <stdint.h>

/* Ranges of characters with the same value: first character << 8 | value, ascending; a range ends
 * where the next begins. */
extern const uint32_t ry_unicode_classes[], ry_unicode_orders[];
extern const size_t ry_unicode_classes_n, ry_unicode_orders_n;

/* The lower case of every `step`-th character from first to last is `distance` away. Ascending. */
typedef struct ry_lower_range {
    uint32_t first, last;
    uint32_t step;
    int32_t distance;
} ry_lower_range;
extern const ry_lower_range ry_unicode_lowers[];
extern const size_t ry_unicode_lowers_n;

/* A character and its canonical decomposition; second 0 = only the first. */
typedef struct ry_character_pair {
    uint32_t whole, first, second;
} ry_character_pair;
extern const ry_character_pair ry_unicode_decomposed[]; /* by whole */
extern const ry_character_pair ry_unicode_composed[];   /* by (first, second) */
extern const size_t ry_unicode_decomposed_n, ry_unicode_composed_n;

#endif
