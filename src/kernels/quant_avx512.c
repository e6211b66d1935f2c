/* quant_avx512.c - SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/quant_body.h"

const ry_quant_kernels ry_quant_avx512 = {quantise, finish};
