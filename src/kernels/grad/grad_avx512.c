/* grad_avx512.c - the backward kernels and the optimizer update compiled for AVX-512.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/grad/activation_grad_template.h"
#include "kernels/grad/attention_grad_template.h"
#include "kernels/grad/layernorm_grad_template.h"
#include "kernels/grad/outer_template.h"
#include "kernels/grad/update_template.h"

void ry_grad_init_avx512(ry_grad_kernels *k)
{
    k->outer = outer;
    k->attention_grad = attention_grad;
    k->attention_mean = attention_mean;
    k->layernorm_grad = layernorm_grad;
    k->gelu = gelu;
    k->gelu_grad = gelu_grad;
    k->quick_gelu = quick_gelu;
    k->quick_gelu_grad = quick_gelu_grad;
    k->gelu_tanh = gelu_tanh;
    k->gelu_tanh_grad = gelu_tanh_grad;
    k->swiglu_grad = swiglu_grad;
}

void ry_update_init_avx512(ry_update_kernels *k) { fill_update_table(k); }
