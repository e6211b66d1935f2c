/* tensor_check.h - is this checkpoint a Vision Transformer that the engine runs, and is it whole?
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TENSOR_CHECK_H
#define RY_TENSOR_CHECK_H

#include "model/common/tensor_names.h"

/* No layout was found: say what was looked for and what is there instead. */
renyi_status ry_vit_not_found(const ry_tensors *set, renyi_error *err);

/* RENYI_ERR_UNSUPPORTED, naming the first tensor that makes it another architecture. */
renyi_status ry_vit_check_family(const ry_vit_naming *n, const ry_tensors *set,
                                 renyi_error *err) RENYI_CHECK;

/* Every tensor against its place: missing, mis-shaped, not of a float type, unknown; all in one
 * message. extents[x] = 0: not known because the tensor that tells it is itself at fault. */
renyi_status ry_vit_check_tensors(const ry_vit_naming *n, const uint64_t extents[RY_X_COUNT],
                                  const ry_tensors *set, renyi_error *err) RENYI_CHECK;

#endif
