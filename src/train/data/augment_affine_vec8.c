/* augment_affine_vec8.c - ry_op_affine compiled for AVX2 (four doubles in a register) or NEON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/augment_affine_template.h"

void ry_op_affine_vec8(uint8_t *out, const uint8_t *in, ry_op_size size,
                       const ry_op_affine_spec *spec)
{
    transform_affine(out, in, size, spec);
}
