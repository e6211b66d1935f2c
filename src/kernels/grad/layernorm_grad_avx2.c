/* layernorm_grad_avx2.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX2
#include "kernels/grad/layernorm_grad_template.h"

void ry_layernorm_grad_init_avx2(ry_grad_kernels *k) { k->layernorm_grad = layernorm_grad; }
