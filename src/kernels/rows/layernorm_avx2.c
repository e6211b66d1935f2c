/* layernorm_avx2.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX2
#include "kernels/rows/layernorm_template.h"

void ry_layernorm_init_avx2(ry_kernels *k) { k->layernorm = layernorm; }
