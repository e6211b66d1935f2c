/* simd.h - the few vector operations our kernels use, so that one template serves every vector
 * width. A file defines RY_SIMD_VEC8 (AVX2 or NEON, the same bits), RY_SIMD_AVX512 or RY_SIMD_EMU16
 * before it includes this.
 * EMU16 is the width of AVX-512 in plain C: tests use it to run the 16-lane templates on machines
 * without the instructions. Everything is static inline, because a file built with ISA flags must
 * not define functions that the linker could use elsewhere.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SIMD_H
#define RY_SIMD_H

#include <stddef.h>
#include <stdint.h>

#if defined(RY_SIMD_EMU16) /* unrolled it would take minutes to compile */
#define RY_INLINE static inline __attribute__((unused))
#define RY_UNROLL
#else
#define RY_INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__)
#define RY_UNROLL _Pragma("clang loop unroll(full)")
#else
#define RY_UNROLL _Pragma("GCC unroll 32")
#endif
#endif

#if defined(RY_SIMD_VEC8) && defined(__aarch64__)
#include "kernels/simd_neon.h"

#elif defined(RY_SIMD_VEC8)
#include <immintrin.h>
#define VL 8
typedef __m256 vf;

RY_INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
RY_INLINE void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
RY_INLINE vf vf_set1(float x) { return _mm256_set1_ps(x); }
RY_INLINE vf vf_bcast(const float *p) { return _mm256_broadcast_ss(p); }
RY_INLINE vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
RY_INLINE vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
RY_INLINE vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
RY_INLINE vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
RY_INLINE vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
RY_INLINE vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
RY_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
RY_INLINE vf vf_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* 2^n for whole n in [-126, 127] */
RY_INLINE vf vf_pow2(vf n)
{
    const __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
}
RY_INLINE __m256i vf_mask(size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}
RY_INLINE vf vf_from_i32(const int32_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)p));
}
/* VL numbers of bfloat16, which is the upper half of a float */
RY_INLINE vf vf_from_bf16(const uint16_t *p)
{
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
/* The first n <= VL lanes as bytes; they hold whole numbers in 0 .. 255. */
RY_INLINE void vf_store_u8(uint8_t *p, vf v, size_t n)
{
    const __m256i i = _mm256_cvtps_epi32(v);
    const __m128i w = _mm_packus_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
    const uint64_t bytes = (uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(w, w));
    __builtin_memcpy(p, &bytes, n);
}
/* VL half floats (base/half.h) */
RY_INLINE vf vf_load_half(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
RY_INLINE void vf_store_half(uint16_t *p, vf v)
{
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
/* Only the first n < VL lanes touch memory; the others read as 0. */
RY_INLINE vf vf_load_n(const float *p, size_t n) { return _mm256_maskload_ps(p, vf_mask(n)); }
RY_INLINE void vf_store_n(float *p, vf v, size_t n) { _mm256_maskstore_ps(p, vf_mask(n), v); }
/* Transposes a VL x VL matrix. Four rows at a time are interleaved within 128-bit parts, then the
 * parts are put in order. */
RY_INLINE void vf_transpose(vf r[VL])
{
    vf t[VL];
    RY_UNROLL
    for (int g = 0; g < VL; g += 4) {
        const vf a = _mm256_unpacklo_ps(r[g], r[g + 1]), b = _mm256_unpackhi_ps(r[g], r[g + 1]);
        const vf c = _mm256_unpacklo_ps(r[g + 2], r[g + 3]),
                 d = _mm256_unpackhi_ps(r[g + 2], r[g + 3]);
        t[g] = _mm256_shuffle_ps(a, c, 0x44), t[g + 1] = _mm256_shuffle_ps(a, c, 0xee);
        t[g + 2] = _mm256_shuffle_ps(b, d, 0x44), t[g + 3] = _mm256_shuffle_ps(b, d, 0xee);
    }
    RY_UNROLL
    for (int c = 0; c < 4; c++) {
        r[c] = _mm256_permute2f128_ps(t[c], t[4 + c], 0x20);
        r[4 + c] = _mm256_permute2f128_ps(t[c], t[4 + c], 0x31);
    }
}
/* x = m * 2^e with m in [sqrt(1/2), sqrt(2)), for normal x > 0; returns m. 0x3f3504f3 is sqrt(1/2):
 * the difference of the bits carries into the exponent exactly where m would reach sqrt(2). */
RY_INLINE vf vf_split(vf x, vf *e)
{
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i n = _mm256_srai_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3)), 23);
    *e = _mm256_cvtepi32_ps(n);
    return _mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(n, 23)));
}

#elif defined(RY_SIMD_AVX512)
#include <immintrin.h>
#define VL 16
typedef __m512 vf;

RY_INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
RY_INLINE void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
RY_INLINE vf vf_set1(float x) { return _mm512_set1_ps(x); }
RY_INLINE vf vf_bcast(const float *p) { return _mm512_set1_ps(*p); }
RY_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
RY_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
RY_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
RY_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
RY_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
RY_INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
RY_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
RY_INLINE vf vf_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
RY_INLINE vf vf_pow2(vf n)
{
    const __m512i e = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(e, 23));
}
RY_INLINE vf vf_from_i32(const int32_t *p) { return _mm512_cvtepi32_ps(_mm512_loadu_si512(p)); }
RY_INLINE vf vf_from_bf16(const uint16_t *p)
{
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
RY_INLINE void vf_store_u8(uint8_t *p, vf v, size_t n)
{
    const __m128i bytes = _mm512_cvtusepi32_epi8(_mm512_cvtps_epi32(v));
    __builtin_memcpy(p, &bytes, n);
}
RY_INLINE vf vf_load_half(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
RY_INLINE void vf_store_half(uint16_t *p, vf v)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
RY_INLINE vf vf_load_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
}
RY_INLINE void vf_store_n(float *p, vf v, size_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), v);
}
RY_INLINE void vf_transpose(vf r[VL])
{
    vf t[VL];
    RY_UNROLL
    for (int g = 0; g < VL; g += 4) {
        const vf a = _mm512_unpacklo_ps(r[g], r[g + 1]), b = _mm512_unpackhi_ps(r[g], r[g + 1]);
        const vf c = _mm512_unpacklo_ps(r[g + 2], r[g + 3]),
                 d = _mm512_unpackhi_ps(r[g + 2], r[g + 3]);
        t[g] = _mm512_shuffle_ps(a, c, 0x44), t[g + 1] = _mm512_shuffle_ps(a, c, 0xee);
        t[g + 2] = _mm512_shuffle_ps(b, d, 0x44), t[g + 3] = _mm512_shuffle_ps(b, d, 0xee);
    }
    RY_UNROLL
    for (int c = 0; c < 4; c++) { /* 0x88 takes the even quarters of both, 0xdd the odd ones */
        const vf even0 = _mm512_shuffle_f32x4(t[c], t[4 + c], 0x88),
                 even1 = _mm512_shuffle_f32x4(t[8 + c], t[12 + c], 0x88),
                 odd0 = _mm512_shuffle_f32x4(t[c], t[4 + c], 0xdd),
                 odd1 = _mm512_shuffle_f32x4(t[8 + c], t[12 + c], 0xdd);
        r[c] = _mm512_shuffle_f32x4(even0, even1, 0x88);
        r[4 + c] = _mm512_shuffle_f32x4(odd0, odd1, 0x88);
        r[8 + c] = _mm512_shuffle_f32x4(even0, even1, 0xdd);
        r[12 + c] = _mm512_shuffle_f32x4(odd0, odd1, 0xdd);
    }
}
RY_INLINE vf vf_split(vf x, vf *e)
{
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i n = _mm512_srai_epi32(_mm512_sub_epi32(bits, _mm512_set1_epi32(0x3f3504f3)), 23);
    *e = _mm512_cvtepi32_ps(n);
    return _mm512_castsi512_ps(_mm512_sub_epi32(bits, _mm512_slli_epi32(n, 23)));
}

#elif defined(RY_SIMD_EMU16)
#include "base/half.h"

#include <math.h>
#include <string.h>
#define VL 16
typedef struct vf {
    float f[VL];
} vf;
#define RY_LANES(expr)                                 \
    do {                                               \
        vf r_;                                         \
        for (int i = 0; i < VL; i++) r_.f[i] = (expr); \
        return r_;                                     \
    } while (0)

RY_INLINE vf vf_load(const float *p) { RY_LANES(p[i]); }
RY_INLINE void vf_store(float *p, vf v) { memcpy(p, v.f, sizeof v.f); }
RY_INLINE vf vf_set1(float x) { RY_LANES(x); }
RY_INLINE vf vf_bcast(const float *p) { RY_LANES(*p); }
RY_INLINE vf vf_add(vf a, vf b) { RY_LANES(a.f[i] + b.f[i]); }
RY_INLINE vf vf_sub(vf a, vf b) { RY_LANES(a.f[i] - b.f[i]); }
RY_INLINE vf vf_mul(vf a, vf b) { RY_LANES(a.f[i] * b.f[i]); }
RY_INLINE vf vf_div(vf a, vf b) { RY_LANES(a.f[i] / b.f[i]); }
RY_INLINE vf vf_max(vf a, vf b) { RY_LANES(a.f[i] > b.f[i] ? a.f[i] : b.f[i]); }
RY_INLINE vf vf_min(vf a, vf b) { RY_LANES(a.f[i] < b.f[i] ? a.f[i] : b.f[i]); }
RY_INLINE vf vf_fma(vf a, vf b, vf c) { RY_LANES(fmaf(a.f[i], b.f[i], c.f[i])); }
RY_INLINE vf vf_round(vf a) { RY_LANES(nearbyintf(a.f[i])); }
RY_INLINE vf vf_pow2(vf n) { RY_LANES(ldexpf(1.0f, (int)n.f[i])); }
RY_INLINE vf vf_from_i32(const int32_t *p) { RY_LANES((float)p[i]); }
RY_INLINE vf vf_from_bf16(const uint16_t *p)
{
    vf r;
    for (int i = 0; i < VL; i++) {
        const uint32_t bits = (uint32_t)p[i] << 16;
        memcpy(&r.f[i], &bits, sizeof bits);
    }
    return r;
}
RY_INLINE void vf_store_u8(uint8_t *p, vf v, size_t n)
{
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)v.f[i];
}
RY_INLINE vf vf_load_half(const uint16_t *p) { RY_LANES(ry_half_to_float(p[i])); }
RY_INLINE void vf_store_half(uint16_t *p, vf v)
{
    for (int i = 0; i < VL; i++) p[i] = ry_half_of(v.f[i]);
}
RY_INLINE vf vf_load_n(const float *p, size_t n) { RY_LANES((size_t)i < n ? p[i] : 0.0f); }
RY_INLINE void vf_store_n(float *p, vf v, size_t n) { memcpy(p, v.f, n * sizeof(float)); }
RY_INLINE void vf_transpose(vf r[VL])
{
    for (int i = 0; i < VL; i++)
        for (int j = 0; j < i; j++) {
            const float t = r[i].f[j];
            r[i].f[j] = r[j].f[i];
            r[j].f[i] = t;
        }
}
RY_INLINE vf vf_split(vf x, vf *e)
{
    for (int i = 0; i < VL; i++) {
        int n;
        const float m = frexpf(x.f[i], &n); /* in [1/2, 1) */
        const int low = m < 0.70710678f;
        x.f[i] = low ? 2.0f * m : m;
        e->f[i] = (float)(n - low);
    }
    return x;
}

#else
#error "define RY_SIMD_VEC8, RY_SIMD_AVX512 or RY_SIMD_EMU16"
#endif

RY_INLINE vf vf_zero(void) { return vf_set1(0.0f); }

/* Load or store the first min(left, VL) lanes. */
RY_INLINE vf vf_load_upto(const float *p, size_t left)
{
    return left >= VL ? vf_load(p) : vf_load_n(p, left);
}
RY_INLINE void vf_store_upto(float *p, vf v, size_t left)
{
    if (left >= VL)
        vf_store(p, v);
    else
        vf_store_n(p, v, left);
}

/* Sum of all lanes, always in the same order: lanes i and i + VL/2, then i and i + VL/4, ... */
RY_INLINE float vf_sum(vf v)
{
    float f[VL];
    vf_store(f, v);
    for (int half = VL / 2; half; half /= 2)
        for (int i = 0; i < half; i++) f[i] += f[i + half];
    return f[0];
}

/* e^x for x <= 88; below -87 the result is that of -87, about 1e-38. Cody-Waite reduction to
 * |r| <= ln2/2, then a minimax polynomial of degree 6 (error 3e-9 before rounding). */
RY_INLINE vf vf_exp(vf x)
{
    x = vf_max(x, vf_set1(-87.0f));
    const vf n = vf_round(vf_mul(x, vf_set1(1.44269504f)));
    vf r = vf_fma(n, vf_set1(-0.693359375f), x);
    r = vf_fma(n, vf_set1(2.12194440e-4f), r);
    vf p = vf_set1(1.3814599e-3f);
    p = vf_fma(p, r, vf_set1(8.36871723e-3f));
    p = vf_fma(p, r, vf_set1(4.16683881e-2f));
    p = vf_fma(p, r, vf_set1(1.66665206e-1f));
    p = vf_fma(p, r, vf_set1(0.499999934f));
    p = vf_fma(p, r, vf_set1(1.0f));
    p = vf_fma(p, r, vf_set1(1.0f));
    return vf_mul(p, vf_pow2(n));
}

/* log x for normal x > 0, within 2 ulp or so: 2 artanh(s) with s = (m - 1) / (m + 1), |s| <= 0.172;
 * the series up to s^9 has an error of 2e-9. */
RY_INLINE vf vf_log(vf x)
{
    vf e;
    const vf m = vf_split(x, &e);
    const vf s = vf_div(vf_sub(m, vf_set1(1.0f)), vf_add(m, vf_set1(1.0f))), z = vf_mul(s, s);
    vf p = vf_set1(2.0f / 9.0f);
    p = vf_fma(p, z, vf_set1(2.0f / 7.0f));
    p = vf_fma(p, z, vf_set1(2.0f / 5.0f));
    p = vf_fma(p, z, vf_set1(2.0f / 3.0f));
    p = vf_fma(p, vf_mul(z, s), vf_fma(e, vf_set1(-2.12194440e-4f), vf_add(s, s)));
    return vf_fma(e, vf_set1(0.693359375f), p);
}

#endif
