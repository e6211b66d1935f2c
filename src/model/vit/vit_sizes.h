/* vit_sizes.h - the sizes of a model from the shapes of its tensors; between vit_config.c and
 * vit_sizes.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VIT_SIZES_H
#define RY_VIT_SIZES_H

#include "model/common/tensor_names.h"

enum { RY_MAX_DIM = 1 << 16 };

/* Everything that the tensors alone say; all of them are in their place afterwards. */
renyi_status ry_vit_sizes(ry_vit_config *c, ry_vit_naming *n, uint64_t *n_positions,
                          const ry_tensors *set, renyi_error *err) RENYI_CHECK;

/* `wanted` 0 = the size that the positions were made for. Sets *native to that size. */
renyi_status ry_vit_image_size(ry_vit_config *c, uint64_t n_positions, uint32_t wanted,
                               uint32_t *native, renyi_error *err) RENYI_CHECK;

#endif
