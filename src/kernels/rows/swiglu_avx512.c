/* swiglu_avx512.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/rows/swiglu_template.h"

void ry_swiglu_init_avx512(ry_kernels *k) { k->swiglu = swiglu; }
