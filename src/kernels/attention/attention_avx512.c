/* attention_avx512.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/attention/attention_template.h"

void ry_attention_init_avx512(ry_kernels *k)
{
    k->attention = attention_block;
    k->attention_rows = BLOCK;
}
