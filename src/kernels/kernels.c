/* kernels.c - fills the kernel table for a CPU level.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

void ry_kernels_init(ry_kernels *k, renyi_cpu level)
{
    k->level = level;
    ry_layernorm_init(k);
    ry_attention_init(k);
    ry_causal_init(k);
    ry_rmsnorm_init(k);
    ry_swiglu_init(k);
    ry_cached_init(k);
    ry_gram_init(k);
    if (level < RENYI_CPU_AVX2) return;
    ry_layernorm_init_avx2(k);
    ry_attention_init_avx2(k);
    ry_causal_init_avx2(k);
    ry_rmsnorm_init_avx2(k);
    ry_swiglu_init_avx2(k);
    ry_cached_init_avx2(k);
    ry_gram_init_avx2(k);
    if (level < RENYI_CPU_AVX512) return;
    ry_layernorm_init_avx512(k);
    ry_attention_init_avx512(k);
    ry_causal_init_avx512(k);
    ry_rmsnorm_init_avx512(k);
    ry_swiglu_init_avx512(k);
    ry_cached_init_avx512(k);
    ry_gram_init_avx512(k);
}
