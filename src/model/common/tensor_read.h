/* tensor_read.h - one tensor of a model's checkpoint as floats.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TENSOR_READ_H
#define RY_TENSOR_READ_H

#include "formats/tensor.h"

/* out: [elements of t]; 8-bit weights times their scales. NaN and infinity are errors that name
 * tensor and element. */
renyi_status ry_vit_read(float *out, const ry_tensor *t, const ry_tensors *set,
                         renyi_error *err) RENYI_CHECK;

#endif
