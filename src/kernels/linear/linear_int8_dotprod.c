/* linear_int8_dotprod.c - the 8-bit product for ARM64 with dotprod.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_VEC8
#include "kernels/linear/linear_int8_template.h"

const ry_linear_vtable ry_linear_int8_dotprod = RY_INT8_VTABLE;
