/* taps.h - the weights of one axis of a resize: which inputs an output sees and how much of each.
 * Fixed point with 22 fractional bits, rounded as Pillow rounds them, so that sums have its bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TAPS_H
#define RY_TAPS_H

#include "renyi/renyi.h"

/* 8 bits of pixel and 2 of head room (weights may be negative and overshoot) leave 22 of 32. */
#define RY_TAP_BITS 22

/* Each weight is also stored split for 16-bit multipliers: k = hi * 2^15 + lo, 0 <= lo < 2^15. */
#define RY_TAP_LOW_BITS 15

typedef struct ry_taps {
    uint32_t n;       /* outputs */
    uint32_t width;   /* weights stored per output, a multiple of 4, zero behind `count` */
    uint32_t *first;  /* [n] first input */
    uint32_t *count;  /* [n] number of inputs, >= 1, <= width */
    int32_t *k;       /* [n, width] */
    int16_t *hi, *lo; /* [n, width] */
    void *block;      /* owns all of the above */
} ry_taps;

/* One axis of a resize; outputs [from, from + n) of `out_size` are wanted. */
typedef struct ry_axis {
    uint32_t in_size, out_size; /* >= 1; in_size at most 2^24 */
    uint32_t from, n;           /* n >= 1, from + n <= out_size */
} ry_axis;

renyi_status ry_taps_new(ry_taps *out, const ry_axis *axis, renyi_interpolation filter,
                         const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_taps_free(ry_taps *taps, const renyi_allocator *al); /* a zeroed one is fine */

#endif
