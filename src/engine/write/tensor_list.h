/* tensor_list.h - tensors of a checkpoint as callers see them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TENSOR_LIST_H
#define RY_TENSOR_LIST_H

#include "formats/tensor.h"

/* The name is the tensor's own. */
renyi_tensor_info ry_tensor_info(const ry_tensor *t);

#endif
