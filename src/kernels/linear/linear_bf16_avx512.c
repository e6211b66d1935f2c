/* linear_bf16_avx512.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/linear/linear_bf16_template.h"

const ry_linear_vtable ry_linear_bf16_avx512 = {
    .pack = pack, .reads = 1, .bind = bind, .tiles = tiles, .tile = tile, .row_padding = 16};
