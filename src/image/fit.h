/* fit.h - renyi_image_fit with the kernels named, so that tests can compare CPU levels.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_FIT_H
#define RY_FIT_H

#include "image/resize.h"

/* Where one axis of the model's square comes from: outputs [axis.from, axis.from + axis.n) of the
 * picture resized to axis.out_size, `pad` pixels of border before them. */
typedef struct ry_placed {
    ry_axis axis;
    uint32_t pad;
} ry_placed;

/* The geometry alone, for whoever must find a photo's pixels again in the square. */
renyi_status ry_fit_place(ry_placed *x, ry_placed *y, uint32_t width, uint32_t height,
                          const renyi_preprocess *spec, renyi_error *err) RENYI_CHECK;

renyi_status ry_fit(uint8_t *out /* [size, size, 3] */, const renyi_image *image,
                    const renyi_preprocess *spec, const ry_resize_kernels *kernels,
                    const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

#endif
