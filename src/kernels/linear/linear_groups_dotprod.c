/* linear_groups_dotprod.c - the product with weights in groups of 32 for ARM64 with dotprod.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_VEC8
#include "kernels/linear/linear_groups_template.h"

const ry_linear_vtable ry_linear_groups_dotprod = RY_GROUPS_VTABLE;
