/* linear_int8_vec8.c - the 8-bit product for x86 without VNNI, and for ARM64 without dotprod.
 *
 * vpmaddubsw of AVX2 multiplies unsigned by signed bytes and adds pairs of products in 16 bits.
 * Weights are scaled so that no pair can overflow (quant.h), so every sum is exact. A product of 32
 * bits takes two instructions on the ports of two FMAs for 32 numbers, where those make 16; sums of
 * 16 bits (int8_words.h) take about three quarters of the time.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_VEC8
#include "kernels/linear/linear_int8_template.h"

const ry_linear_vtable ry_linear_int8_vec8 = RY_INT8_VTABLE;
