/* linear_int4_dotprod.c - the 4-bit product for ARM64 with dotprod.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_VEC8
#include "kernels/linear/linear_int4_template.h"

const ry_linear_vtable ry_linear_int4_dotprod = RY_INT4_VTABLE;
