/* fit_rows.h - fits an image whose rows come one after the other, so that it is never stored: a
 * photo of 12 megapixels takes 36 MB, more than the caches hold. The bits are those of ry_fit.
 *
 * Call order: begin, crop, put (any number of times), end; free in any case.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_FIT_ROWS_H
#define RY_FIT_ROWS_H

#include "image/fit.h"

struct ry_fit_rows {
    uint8_t *out; /* [size, size, 3]; this and the next three are set by the caller */
    const renyi_preprocess *spec;
    const ry_resize_kernels *kernels;
    const renyi_allocator *al;
    uint32_t left, width, top, rows; /* columns and rows of the image that are read */
    uint32_t full_width, full_height;
    ry_placed x, y;
    ry_taps right, down;
    uint8_t *between; /* [rows, stride]: resized across */
    size_t stride;
    int is_done;
};

/* Of an image of width x height decoded pixels, which hold `whole` if that is not NULL. *can = 0:
 * it must be fitted as a whole (a side that keeps its size, or a resize that goes down first). */
renyi_status ry_fit_rows_begin(ry_fit_rows *f, uint32_t width, uint32_t height,
                               const ry_whole *whole, int *can, renyi_error *err) RENYI_CHECK;
/* Rows will begin with this column, at most `left`. */
void ry_fit_rows_crop(ry_fit_rows *f, uint32_t first_column);
/* Rows [first, first + n) of the image; those that are not read are ignored. */
void ry_fit_rows_put(ry_fit_rows *f, const ry_pixels *in, uint32_t first);
void ry_fit_rows_end(ry_fit_rows *f);
void ry_fit_rows_free(ry_fit_rows *f); /* a zeroed one is allowed */

#endif
