/* rotary.h - rotary positions of patches (DINOv3): what the configs say of them, and their angles.
 *
 * Queries and keys of a patch are rotated by angles that depend on the centre of the patch, so
 * their products depend on the distance of two patches. Class token and registers are not rotated.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ROTARY_H
#define RY_ROTARY_H

#include "model/common/tensor_names.h"

/* The input side that the configs name, which no tensor tells; else the usual one. */
renyi_status ry_rotary_image_size(uint32_t *out, const ry_vit_config *c, const ry_checkpoint *ckpt,
                                  renyi_error *err) RENYI_CHECK;

/* Reads rope_theta and checks that configs and tensors agree. n_heads must be set. name: of the
 * architecture, or NULL. */
renyi_status ry_rotary_configure(ry_vit_config *c, const ry_tensor_naming *n,
                                 const ry_checkpoint *ckpt, const char *name,
                                 renyi_error *err) RENYI_CHECK;

/* out [side * side, head]: the angles of every patch for ry_rope (kernels/rows/rows.h). Of a head's
 * d/2 pairs the first half turns with the row of the patch, the second with its column:
 *   angle = 2 pi y / theta^(4 k / d),   k = 0 .. d/4 - 1,   y = 2 (row + 0.5) / side - 1
 * in floats, as transformers computes it. */
void ry_rotary_angles(float *out, uint32_t side, size_t head, double theta);

#endif
