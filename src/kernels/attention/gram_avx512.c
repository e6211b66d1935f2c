/* gram_avx512.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/attention/gram_template.h"

void ry_gram_init_avx512(ry_kernels *k)
{
    k->gram = gram;
    k->gram_rows = BLOCK;
}
