/* simd_neon.h - the vector operations of simd.h for NEON. A vector of 8 floats is two registers, so
 * that panels, tiles and the order of sums are those of AVX2: every operation here gives the bits
 * of its twin there. Included by simd.h alone.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SIMD_NEON_H
#define RY_SIMD_NEON_H

#include <arm_neon.h>

#define VL 8
typedef struct vf {
    float32x4_t lo, hi;
} vf;
#define RY_BOTH(expr_lo, expr_hi) ((vf){expr_lo, expr_hi})

RY_INLINE vf vf_load(const float *p) { return RY_BOTH(vld1q_f32(p), vld1q_f32(p + 4)); }
RY_INLINE void vf_store(float *p, vf v)
{
    vst1q_f32(p, v.lo);
    vst1q_f32(p + 4, v.hi);
}
RY_INLINE vf vf_set1(float x) { return RY_BOTH(vdupq_n_f32(x), vdupq_n_f32(x)); }
RY_INLINE vf vf_bcast(const float *p) { return vf_set1(*p); }
RY_INLINE vf vf_add(vf a, vf b) { return RY_BOTH(vaddq_f32(a.lo, b.lo), vaddq_f32(a.hi, b.hi)); }
RY_INLINE vf vf_sub(vf a, vf b) { return RY_BOTH(vsubq_f32(a.lo, b.lo), vsubq_f32(a.hi, b.hi)); }
RY_INLINE vf vf_mul(vf a, vf b) { return RY_BOTH(vmulq_f32(a.lo, b.lo), vmulq_f32(a.hi, b.hi)); }
RY_INLINE vf vf_div(vf a, vf b) { return RY_BOTH(vdivq_f32(a.lo, b.lo), vdivq_f32(a.hi, b.hi)); }
/* The second operand if one is NaN, as on x86; fmax and fmin would return NaN. */
RY_INLINE vf vf_max(vf a, vf b)
{
    return RY_BOTH(vbslq_f32(vcgtq_f32(a.lo, b.lo), a.lo, b.lo),
                   vbslq_f32(vcgtq_f32(a.hi, b.hi), a.hi, b.hi));
}
RY_INLINE vf vf_min(vf a, vf b)
{
    return RY_BOTH(vbslq_f32(vcltq_f32(a.lo, b.lo), a.lo, b.lo),
                   vbslq_f32(vcltq_f32(a.hi, b.hi), a.hi, b.hi));
}
RY_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return RY_BOTH(vfmaq_f32(c.lo, a.lo, b.lo), vfmaq_f32(c.hi, a.hi, b.hi));
}
RY_INLINE vf vf_round(vf a) { return RY_BOTH(vrndnq_f32(a.lo), vrndnq_f32(a.hi)); }
/* 2^n for whole n in [-126, 127] */
RY_INLINE float32x4_t ry_pow2_of_four(float32x4_t n)
{
    const int32x4_t e = vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127));
    return vreinterpretq_f32_s32(vshlq_n_s32(e, 23));
}
RY_INLINE vf vf_pow2(vf n) { return RY_BOTH(ry_pow2_of_four(n.lo), ry_pow2_of_four(n.hi)); }
RY_INLINE vf vf_from_i32(const int32_t *p)
{
    return RY_BOTH(vcvtq_f32_s32(vld1q_s32(p)), vcvtq_f32_s32(vld1q_s32(p + 4)));
}
/* VL numbers of bfloat16, which is the upper half of a float */
RY_INLINE vf vf_from_bf16(const uint16_t *p)
{
    const uint16x8_t half = vld1q_u16(p);
    return RY_BOTH(vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(half), 16)),
                   vreinterpretq_f32_u32(vshll_high_n_u16(half, 16)));
}
/* The first n <= VL lanes as bytes; they hold whole numbers in 0 .. 255. */
RY_INLINE void vf_store_u8(uint8_t *p, vf v, size_t n)
{
    const uint16x8_t words =
        vcombine_u16(vmovn_u32(vcvtq_u32_f32(v.lo)), vmovn_u32(vcvtq_u32_f32(v.hi)));
    const uint64_t bytes = vget_lane_u64(vreinterpret_u64_u8(vmovn_u16(words)), 0);
    __builtin_memcpy(p, &bytes, n);
}
/* VL half floats (base/half.h) */
RY_INLINE vf vf_load_half(const uint16_t *p)
{
    const float16x8_t half = vreinterpretq_f16_u16(vld1q_u16(p));
    return RY_BOTH(vcvt_f32_f16(vget_low_f16(half)), vcvt_high_f32_f16(half));
}
RY_INLINE void vf_store_half(uint16_t *p, vf v)
{
    vst1q_u16(p, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(v.lo), v.hi)));
}
/* Only the first n < VL lanes touch memory; the others read as 0. NEON has no masks: four lanes,
 * two and one. */
RY_INLINE float32x4_t ry_load_below_four(const float *p, size_t n)
{
    float32x4_t v = vdupq_n_f32(0.0f);
    if (n & 2) v = vcombine_f32(vld1_f32(p), vdup_n_f32(0.0f));
    if (n == 1) v = vld1q_lane_f32(p, v, 0);
    if (n == 3) v = vld1q_lane_f32(p + 2, v, 2);
    return v;
}
RY_INLINE void ry_store_below_four(float *p, float32x4_t v, size_t n)
{
    if (n & 2) vst1_f32(p, vget_low_f32(v));
    if (n == 1) vst1q_lane_f32(p, v, 0);
    if (n == 3) vst1q_lane_f32(p + 2, v, 2);
}
RY_INLINE vf vf_load_n(const float *p, size_t n)
{
    if (n < 4) return RY_BOTH(ry_load_below_four(p, n), vdupq_n_f32(0.0f));
    return RY_BOTH(vld1q_f32(p), ry_load_below_four(p + 4, n - 4));
}
RY_INLINE void vf_store_n(float *p, vf v, size_t n)
{
    if (n >= 4) vst1q_f32(p, v.lo);
    if (n >= 4)
        ry_store_below_four(p + 4, v.hi, n - 4);
    else
        ry_store_below_four(p, v.lo, n);
}
/* Transposes a 4 x 4 matrix. */
RY_INLINE void ry_transpose_four(float32x4_t *a, float32x4_t *b, float32x4_t *c, float32x4_t *d)
{
    const float32x4_t ab0 = vtrn1q_f32(*a, *b), ab1 = vtrn2q_f32(*a, *b);
    const float32x4_t cd0 = vtrn1q_f32(*c, *d), cd1 = vtrn2q_f32(*c, *d);
    *a = vcombine_f32(vget_low_f32(ab0), vget_low_f32(cd0));
    *b = vcombine_f32(vget_low_f32(ab1), vget_low_f32(cd1));
    *c = vcombine_f32(vget_high_f32(ab0), vget_high_f32(cd0));
    *d = vcombine_f32(vget_high_f32(ab1), vget_high_f32(cd1));
}
/* Transposes a VL x VL matrix: its quarters, and the two beside the diagonal change places. */
RY_INLINE void vf_transpose(vf r[VL])
{
    ry_transpose_four(&r[0].lo, &r[1].lo, &r[2].lo, &r[3].lo);
    ry_transpose_four(&r[0].hi, &r[1].hi, &r[2].hi, &r[3].hi);
    ry_transpose_four(&r[4].lo, &r[5].lo, &r[6].lo, &r[7].lo);
    ry_transpose_four(&r[4].hi, &r[5].hi, &r[6].hi, &r[7].hi);
    RY_UNROLL
    for (int i = 0; i < 4; i++) {
        const float32x4_t t = r[i].hi;
        r[i].hi = r[4 + i].lo;
        r[4 + i].lo = t;
    }
}
/* x = m * 2^e with m in [sqrt(1/2), sqrt(2)), for normal x > 0; returns m. See AVX2. */
RY_INLINE float32x4_t ry_split_four(float32x4_t x, float32x4_t *e)
{
    const int32x4_t bits = vreinterpretq_s32_f32(x);
    const int32x4_t n = vshrq_n_s32(vsubq_s32(bits, vdupq_n_s32(0x3f3504f3)), 23);
    *e = vcvtq_f32_s32(n);
    return vreinterpretq_f32_s32(vsubq_s32(bits, vshlq_n_s32(n, 23)));
}
RY_INLINE vf vf_split(vf x, vf *e)
{
    const float32x4_t lo = ry_split_four(x.lo, &e->lo);
    return RY_BOTH(lo, ry_split_four(x.hi, &e->hi));
}

#endif
