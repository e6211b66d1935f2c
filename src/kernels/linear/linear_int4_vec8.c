/* linear_int4_vec8.c - the 4-bit product with AVX2, or with NEON where dotprod is missing: products
 * of two neighbours are added in 16 bits (vpmaddubsw), and so is a whole group of 32 inputs.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_VEC8
#include "kernels/linear/linear_int4_template.h"

const ry_linear_vtable ry_linear_int4_vec8 = RY_INT4_VTABLE;
