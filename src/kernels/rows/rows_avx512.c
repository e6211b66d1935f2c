/* rows_avx512.c - LayerNorm, RMSNorm and SwiGLU compiled for AVX-512.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/rows/rows_template.h"

void ry_rows_init_avx512(ry_kernels *k)
{
    k->layernorm = layernorm;
    k->rmsnorm = rmsnorm;
    k->swiglu = swiglu;
}
