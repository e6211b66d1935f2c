/* attention_avx512.c - the attention kernels and the Gram matrix compiled for AVX-512.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/attention/attention_template.h"
#include "kernels/attention/cached_template.h"
#include "kernels/attention/causal_template.h"
#include "kernels/attention/gram_template.h"

void ry_attention_init_avx512(ry_kernels *k)
{
    k->attention = attention_block;
    k->attention_rows = ATTENTION_ROWS;
    k->causal = causal_text;
    k->cached = cached;
    k->cached_look = cached_look;
    k->cache_row = cache_row;
    k->gram = gram;
    k->gram_rows = GRAM_ROWS;
}
