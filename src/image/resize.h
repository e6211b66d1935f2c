/* resize.h - Pillow's resampling of 8-bit RGB, bit for bit: one pass across and one down, rounded
 * to bytes between them. Only a window of the result is computed, because a crop follows.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RESIZE_H
#define RY_RESIZE_H

#include "renyi/renyi.h"

/* ---- weights of one axis ------------------------------------------------------------------- */

/* Weights are fixed-point numbers with 22 fractional bits, rounded as in Pillow: a pixel needs 8 of
 * the 32 bits, and 2 are spare because negative weights let sums overshoot. */
#define RY_TAP_BITS 22

/* Each weight is also stored in two parts for 16-bit multipliers: k = hi * 2^15 + lo,
 * 0 <= lo < 2^15. */
#define RY_TAP_LOW_BITS 15

typedef struct ry_taps {
    uint32_t n;       /* outputs */
    uint32_t width;   /* weights stored per output, a multiple of 4, zero from `count` on */
    uint32_t *first;  /* [n] first input of an output */
    uint32_t *count;  /* [n] number of its inputs, >= 1, <= width */
    int32_t *k;       /* [n, width] */
    int16_t *hi, *lo; /* [n, width] */
    void *block;      /* owns all of the above */
} ry_taps;

/* One axis of a resize; outputs [from, from + n) of `out_size` are wanted. */
typedef struct ry_axis {
    uint32_t in_size, out_size; /* >= 1; in_size at most 2^24 */
    uint32_t from, n;           /* n >= 1, from + n <= out_size */
    double origin, span; /* the part [origin, origin + span) of the inputs is resized, as Pillow's
                            `box`; span 0 = all of them */
} ry_axis;

renyi_status ry_taps_new(ry_taps *out, const ry_axis *axis, renyi_interpolation filter,
                         const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
/* Inputs [*first, *last) that any output reads. */
void ry_taps_span(const ry_taps *taps, uint32_t *first, uint32_t *last);
void ry_taps_free(ry_taps *taps, const renyi_allocator *al); /* a zeroed one is allowed */

/* ---- the two passes ------------------------------------------------------------------------ */

/* `rows` rows of 3 * `width` bytes, `stride` bytes apart. */
typedef struct ry_pixels {
    const uint8_t *at;
    size_t stride;
    uint32_t width, rows;
} ry_pixels;

typedef struct ry_resize_kernels {
    /* out [in->rows, 3 * taps->n], rows `out_stride` apart: every row is resized. */
    void (*across)(uint8_t *out, size_t out_stride, const ry_pixels *in, const ry_taps *taps);
    /* out [n_bytes]: weighted sum of the input rows of output `i`; `in` is the first of them. */
    void (*down)(uint8_t *out, const uint8_t *in, size_t stride, size_t n_bytes,
                 const ry_taps *taps, uint32_t i);
} ry_resize_kernels;

extern const ry_resize_kernels ry_resize_scalar, ry_resize_vec8; /* the same bits */

const ry_resize_kernels *ry_resize_best(void); /* the fastest on this machine */

/* The wanted window of the resized image: columns in x, rows in y. */
typedef struct ry_resize_spec {
    ry_axis x, y;
    renyi_interpolation filter;
} ry_resize_spec;

/* Pillow goes across first; since 13.0 it goes down first if the height loses more than twice as
 * many pixels as the width. The order matters: values are rounded to bytes between the passes. */
int ry_resize_down_first(const ry_resize_spec *spec);

/* out: [y.n, out_stride]; x.n pixels of each row are written. */
renyi_status ry_resize(uint8_t *out, size_t out_stride, const ry_pixels *in,
                       const ry_resize_spec *spec, const ry_resize_kernels *kernels,
                       const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

#endif
