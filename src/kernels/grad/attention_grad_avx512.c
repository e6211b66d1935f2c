/* attention_grad_avx512.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/grad/attention_grad_template.h"

void ry_attention_grad_init_avx512(ry_grad_kernels *k)
{
    k->attention_grad = attention_grad;
    k->attention_mean = attention_mean;
}
