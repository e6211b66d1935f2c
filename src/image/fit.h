/* fit.h - from an image of any size to the square of pixels that a model reads.
 *
 * The functions take the resize kernels as an argument, so that tests can compare CPU levels.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_FIT_H
#define RY_FIT_H

#include "image/decode.h"
#include "image/resize.h"

/* One axis of the model's square: outputs [axis.from, axis.from + axis.n) of the image resized to
 * axis.out_size, with `pad` pixels of border before them. */
typedef struct ry_placed {
    ry_axis axis;
    uint32_t pad;
} ry_placed;

/* Only the geometry: where the image's pixels are in the square. */
renyi_status ry_fit_place(ry_placed *x, ry_placed *y, uint32_t width, uint32_t height,
                          const renyi_preprocess *spec, renyi_error *err) RENYI_CHECK;

/* The same for width x height decoded pixels that hold `whole`; NULL = they are the whole image. */
renyi_status ry_fit_place_decoded(ry_placed *x, ry_placed *y, uint32_t width, uint32_t height,
                                  const ry_whole *whole, const renyi_preprocess *spec,
                                  renyi_error *err) RENYI_CHECK;
/* Fills the square with the color of the border, if there is one. */
void ry_fit_border(uint8_t *out /* [size, size, 3] */, const ry_placed *x, const ry_placed *y,
                   const renyi_preprocess *spec);

/* Pixels are there and rows do not overlap. */
renyi_status ry_fit_check_image(const renyi_image *image, renyi_error *err) RENYI_CHECK;

/* renyi_image_fit. */
renyi_status ry_fit(uint8_t *out /* [size, size, 3] */, const renyi_image *image,
                    const renyi_preprocess *spec, const ry_resize_kernels *kernels,
                    const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* The same for pixels that hold `whole` at a smaller scale: resized and cropped as the whole image
 * would be. */
renyi_status ry_fit_scaled(uint8_t *out /* [size, size, 3] */, const renyi_image *image,
                           const ry_whole *whole, const renyi_preprocess *spec,
                           const ry_resize_kernels *kernels, const renyi_allocator *al,
                           renyi_error *err) RENYI_CHECK;

/* As in LLaVA: a border of the color int(255 mean) makes the image square, with the image in the
 * middle (an odd pixel goes to the right or bottom); then the square is resized and cropped as
 * `spec` says. The result equals ry_fit of the square, but the square is never stored. */
renyi_status ry_fit_square(uint8_t *out /* [size, size, 3] */, const renyi_image *image,
                           const renyi_preprocess *spec, const ry_resize_kernels *kernels,
                           const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

#endif
