/* gram_avx2.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX2
#include "kernels/attention/gram_template.h"

void ry_gram_init_avx2(ry_kernels *k)
{
    k->gram = gram;
    k->gram_rows = BLOCK;
}
