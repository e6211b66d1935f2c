/* bytes.h - vectors of bytes for the products of 8 and 4 bits (AVX2; ARM64 in bytes_neon.h).
 *
 *   vb   32 bytes: four numbers for each of 8 outputs
 *   vi   8 sums of 32 bits
 *   vg   sums of a group of 32 inputs: 32 bits; of int4 they may be kept in 16 bits
 *
 * Integer sums are exact, so every version of these functions gives the same bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BYTES_H
#define RY_BYTES_H

#include "kernels/simd.h"

#include "kernels/linear/quant.h"

#include <string.h>

#if defined(__aarch64__)
#include "kernels/linear/bytes_neon.h"
#else
typedef __m256i vb, vi, vg;

RY_INLINE vb vb_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
RY_INLINE void vb_store(void *p, vb v) { _mm256_storeu_si256((__m256i *)p, v); }
/* The same four bytes for every output. */
RY_INLINE vb vb_four(const void *four)
{
    int32_t bits;
    memcpy(&bits, four, 4);
    return _mm256_set1_epi32(bits);
}
RY_INLINE vb vb_low_halves(vb v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
RY_INLINE vb vb_high_halves(vb v) { return vb_low_halves(_mm256_srli_epi16(v, 4)); }
/* The numbers of four vectors, which are whole and fit in a signed byte. */
RY_INLINE vb vb_from_floats(const vf x[4])
{
    __m256i n[4];
    RY_UNROLL
    for (int i = 0; i < 4; i++) n[i] = _mm256_cvtps_epi32(x[i]);
    /* packing works within 128-bit halves: fours of bytes come in the order 0 2 4 6 1 3 5 7 */
    const __m256i mixed =
        _mm256_packs_epi16(_mm256_packs_epi32(n[0], n[1]), _mm256_packs_epi32(n[2], n[3]));
    return _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
/* -8 times the sum of the bytes 0 and 1 of every four, and of 2 and 3 (ry_group) */
RY_INLINE void vb_group_offset(int16_t offset[2], vb bytes)
{
    /* 8 times pairs of neighbours, then the sum of the eight fours */
    __m256i sum = _mm256_maddubs_epi16(_mm256_set1_epi8(RY_INT4_ZERO), bytes);
    sum = _mm256_add_epi16(sum, _mm256_permute4x64_epi64(sum, 0x4e));
    sum = _mm256_add_epi16(sum, _mm256_shuffle_epi32(sum, 0x4e));
    sum = _mm256_add_epi16(sum, _mm256_shuffle_epi32(sum, 0xb1));
    const int32_t pair = _mm256_cvtsi256_si32(_mm256_sub_epi16(_mm256_setzero_si256(), sum));
    memcpy(offset, &pair, sizeof pair);
}
/* 8 steps of int4 as floats */
RY_INLINE vf vb_steps(const uint8_t *eight)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)eight)));
}

RY_INLINE vi vi_zero(void) { return _mm256_setzero_si256(); }
RY_INLINE vi vi_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
RY_INLINE void vi_store(int32_t *p, vi v) { _mm256_storeu_si256((__m256i *)p, v); }

/* ---- int8: activations as unsigned bytes, weights in which two neighbours are bounded (quant.h) -
 */

/* What the bytes of activations are xored with so that vi_dot4 can read them, and the number that
 * this subtracts from each. */
enum { RY_INT8_FLIP = 0, RY_INT8_LESS = 0 };

#define RY_INT8_WORDS /* int8_words.h is faster than vi_dot4 */

/* sum += products of the four bytes of each output */
RY_INLINE vi vi_dot4(vi sum, vb x, vb w)
{
    const __m256i pairs = _mm256_maddubs_epi16(x, w);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* ---- int4: weights 0 .. 15, activations as signed bytes -------------------------------------- */

RY_INLINE void vb_step_done(void) {} /* between steps of k; ARM64 needs it */
RY_INLINE vg vg_start(const ry_group *group) { return vb_four(group->offset); }
/* Adds products of neighbours in 16 bits. The asm keeps the compiler from reordering: it would keep
 * all products of a group to add them as a tree, and run out of registers. */
RY_INLINE vg vg_add(vg sum, vb w, vb x)
{
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, x));
    __asm__("" : "+x"(sum));
    return sum;
}
RY_INLINE vf vg_sum(vg pairs)
{
    return _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* ---- Q8_0: weights -128 .. 127, activations -127 .. 127 -------------------------------------- */

RY_INLINE vg vg_zero(void) { return _mm256_setzero_si256(); }
/* The sign of w moves to x: 2 x 128 x 127 fits in 16 bits. */
RY_INLINE vg vg_add_signed(vg sum, vb w, vb x)
{
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
RY_INLINE vf vg_sum_signed(vg sum) { return _mm256_cvtepi32_ps(sum); }
#endif

#endif
