/* square.h - a photo with a border of one colour that makes it square, fitted to the model's side.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SQUARE_H
#define RY_SQUARE_H

#include "image/resize.h"

/* As LLaVA does it: the border is int(255 mean) of spec, the photo lies in the middle (an odd pixel
 * goes behind it), then the square is resized and cropped as spec says. The same bytes as ry_fit
 * gives for the square, which is never stored. out: [size, size, 3]. */
renyi_status ry_fit_square(uint8_t *out, const renyi_image *image, const renyi_preprocess *spec,
                           const ry_resize_kernels *kernels, const renyi_allocator *al,
                           renyi_error *err) RENYI_CHECK;

#endif
