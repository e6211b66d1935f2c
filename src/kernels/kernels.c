/* kernels.c - fills the kernel tables for a CPU level: forward, backward and optimizer update.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include "base/cpu.h"
#include "kernels/grad/grad.h"
#include "kernels/grad/update.h"

void ry_kernels_init(ry_kernels *k, renyi_cpu level)
{
    k->level = level;
    ry_attention_init_scalar(k);
    ry_rows_init_scalar(k);
    if (level < RY_CPU_VEC8) return;
    ry_attention_init_vec8(k);
    ry_rows_init_vec8(k);
#if defined(__x86_64__)
    if (level < RENYI_CPU_AVX512) return;
    ry_attention_init_avx512(k);
    ry_rows_init_avx512(k);
#endif
}

void ry_grad_kernels_init(ry_grad_kernels *k, renyi_cpu level)
{
    k->level = level;
    ry_grad_init_scalar(k);
    if (level >= RY_CPU_VEC8) ry_grad_init_vec8(k);
#if defined(__x86_64__)
    if (level >= RENYI_CPU_AVX512) ry_grad_init_avx512(k);
#endif
}

void ry_update_kernels_init(ry_update_kernels *k, renyi_cpu level)
{
    ry_update_init_scalar(k);
    if (level >= RY_CPU_VEC8) ry_update_init_vec8(k);
#if defined(__x86_64__)
    if (level >= RENYI_CPU_AVX512) ry_update_init_avx512(k);
#endif
}
