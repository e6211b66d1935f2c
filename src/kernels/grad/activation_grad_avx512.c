/* activation_grad_avx512.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/grad/activation_grad_template.h"

void ry_activation_grad_init_avx512(ry_grad_kernels *k)
{
    k->gelu = gelu;
    k->gelu_grad = gelu_grad;
    k->quick_gelu = quick_gelu;
    k->quick_gelu_grad = quick_gelu_grad;
}
