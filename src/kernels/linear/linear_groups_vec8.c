/* linear_groups_vec8.c - the product with weights in groups of 32 with AVX2, or with NEON where
 * dotprod is missing: products of two neighbours are added in 16 bits (vpmaddubsw), and for 4 bits
 * so is a whole group.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_VEC8
#include "kernels/linear/linear_groups_template.h"

const ry_linear_vtable ry_linear_groups_vec8 = RY_GROUPS_VTABLE;
