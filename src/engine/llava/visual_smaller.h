/* visual_smaller.h - the visual side of a LLaVA for smaller images: the same weights, fewer
 * patches.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_SMALLER_H
#define RY_VISUAL_SMALLER_H

#include "model/llava/visual.h"

/* *out borrows everything from `from` but the positions of its grid * grid patches, which are
 * resampled as a model that is opened for images of this size does it. On success *positions is
 * owned by the caller (ry_free). */
renyi_status ry_visual_smaller(ry_visual *out, float **positions, const ry_visual *from,
                               uint32_t grid, const renyi_allocator *al,
                               renyi_error *err) RENYI_CHECK;

#endif
