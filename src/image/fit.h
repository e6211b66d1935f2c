/* fit.h - renyi_image_fit with the kernels named, so that tests can compare CPU levels.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_IMAGE_FIT_H
#define RY_IMAGE_FIT_H

#include "image/resize.h"

renyi_status ry_fit(uint8_t *out /* [size, size, 3] */, const renyi_image *image,
                    const renyi_preprocess *spec, const ry_resize_kernels *kernels,
                    const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

#endif
