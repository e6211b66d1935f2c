/* rows_vec8.c - LayerNorm, RMSNorm and SwiGLU with vectors of 8 floats: AVX2 or NEON.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_VEC8
#include "kernels/rows/rows_template.h"

void ry_rows_init_vec8(ry_kernels *k)
{
    k->layernorm = layernorm;
    k->rmsnorm = rmsnorm;
    k->swiglu = swiglu;
}
