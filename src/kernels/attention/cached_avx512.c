/* cached_avx512.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/attention/cached_template.h"

void ry_cached_init_avx512(ry_kernels *k)
{
    k->cached = cached;
    k->cache_row = cache_row;
}
