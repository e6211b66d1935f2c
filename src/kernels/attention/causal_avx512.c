/* causal_avx512.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/attention/causal_template.h"

void ry_causal_init_avx512(ry_kernels *k) { k->causal = causal_text; }
