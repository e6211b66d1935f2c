/* outer_avx512.c - SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/outer_body.h"

void ry_outer_init_avx512(ry_grad_kernels *k) { k->outer = outer; }
