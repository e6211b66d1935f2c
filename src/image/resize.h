/* resize.h - Pillow's resampling of 8-bit RGB, bit for bit: one pass across and one down, bytes
 * rounded between. Only a window of the result is computed, because a crop follows.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RESIZE_H
#define RY_RESIZE_H

#include "image/taps.h"
#include "renyi/renyi.h"

/* Pixels as they lie in memory: `rows` of 3 * `width` bytes, `stride` bytes apart. */
typedef struct ry_pixels {
    const uint8_t *at;
    size_t stride;
    uint32_t width, rows;
} ry_pixels;

typedef struct ry_resize_kernels {
    /* out [in->rows, 3 * taps->n], rows `out_stride` apart: every row shrunk or widened. */
    void (*across)(uint8_t *out, size_t out_stride, const ry_pixels *in, const ry_taps *taps);
    /* out [n_bytes]: the weighted sum of the rows that output `i` sees; `in` is the first of them.
     */
    void (*down)(uint8_t *out, const uint8_t *in, size_t stride, size_t n_bytes,
                 const ry_taps *taps, uint32_t i);
} ry_resize_kernels;

extern const ry_resize_kernels ry_resize_scalar, ry_resize_avx2; /* the same bits */

/* The best of this machine. */
const ry_resize_kernels *ry_resize_best(void);

/* The window of the resized picture that is wanted: columns in x, rows in y. */
typedef struct ry_resize_spec {
    ry_axis x, y;
    renyi_interpolation filter;
} ry_resize_spec;

/* out: [y.n, out_stride], x.n pixels of each row are written. */
renyi_status ry_resize(uint8_t *out, size_t out_stride, const ry_pixels *in,
                       const ry_resize_spec *spec, const ry_resize_kernels *kernels,
                       const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

#endif
