/* rows_avx2.c - LayerNorm, RMSNorm and SwiGLU compiled for AVX2.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX2
#include "kernels/rows/rows_template.h"

void ry_rows_init_avx2(ry_kernels *k)
{
    k->layernorm = layernorm;
    k->rmsnorm = rmsnorm;
    k->swiglu = swiglu;
}
