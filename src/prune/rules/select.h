/* select.h - exact ranking and choosing, given scores: larger first, equal scores to the lower
 * index, NaN last. Integers only from here on: the same scores give the same choice on every
 * machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SELECT_H
#define RY_SELECT_H

#include <stdint.h>

/* order[0 .. n) = the indices 0 .. n-1 from the best score to the worst.
 * O(n), no allocation; scratch: [2n]. */
void ry_rank(uint32_t *order, const float *score, uint32_t n, uint64_t *scratch);

/* Algorithm 2 of the paper: the by_class best of by_class_order, then the by_column best of
 * by_column_order that are not among them. kept: [by_class + by_column], in this order;
 * taken: [n], 1 for what is kept. by_class + by_column <= n; an order with count 0 may be NULL,
 * so a plain top-k has by_class = 0. */
void ry_select_correct(uint32_t *kept, uint8_t *taken, const uint32_t *by_class_order,
                       uint32_t by_class, const uint32_t *by_column_order, uint32_t by_column,
                       uint32_t n);

/* The indices whose taken[] is set, ascending. */
void ry_select_ascending(uint32_t *kept, const uint8_t *taken, uint32_t n);

#endif
