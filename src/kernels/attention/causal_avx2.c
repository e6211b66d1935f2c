/* causal_avx2.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX2
#include "kernels/attention/causal_template.h"

void ry_causal_init_avx2(ry_kernels *k) { k->causal = causal_text; }
