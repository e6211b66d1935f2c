/* linear_int8_i8mm.c - the 8-bit product for ARM64 with i8mm.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_VEC8
#include "kernels/linear/linear_int8_template.h"

const ry_linear_vtable ry_linear_int8_i8mm = RY_INT8_VTABLE;
