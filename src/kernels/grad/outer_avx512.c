/* outer_avx512.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/grad/outer_template.h"

void ry_outer_init_avx512(ry_grad_kernels *k) { k->outer = outer; }
