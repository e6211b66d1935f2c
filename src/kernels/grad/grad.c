/* grad.c - fills the table of backward kernels for a CPU level.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grad/grad.h"

void ry_grad_kernels_init(ry_grad_kernels *k, renyi_cpu level)
{
    k->level = level;
    ry_outer_init(k);
    ry_attention_grad_init(k);
    ry_layernorm_grad_init(k);
    ry_activation_grad_init(k);
    if (level < RENYI_CPU_AVX2) return;
    ry_outer_init_avx2(k);
    ry_attention_grad_init_avx2(k);
    ry_layernorm_grad_init_avx2(k);
    ry_activation_grad_init_avx2(k);
    if (level < RENYI_CPU_AVX512) return;
    ry_outer_init_avx512(k);
    ry_attention_grad_init_avx512(k);
    ry_layernorm_grad_init_avx512(k);
    ry_activation_grad_init_avx512(k);
}
