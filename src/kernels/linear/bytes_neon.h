/* bytes_neon.h - bytes.h for ARM64: with NEON alone, with dot products of bytes (dotprod), or with
 * those of unsigned by signed bytes and small matrices of them (i8mm), as the file's flags allow.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BYTES_NEON_H
#define RY_BYTES_NEON_H

typedef struct vb {
    int8x16_t lo, hi;
} vb;
typedef struct vi {
    int32x4_t lo, hi;
} vi;

RY_INLINE vb vb_load(const void *p)
{
    return (vb){vld1q_s8((const int8_t *)p), vld1q_s8((const int8_t *)p + 16)};
}
RY_INLINE void vb_store(void *p, vb v)
{
    vst1q_s8((int8_t *)p, v.lo);
    vst1q_s8((int8_t *)p + 16, v.hi);
}
RY_INLINE vb vb_four(const void *four)
{
    int32_t bits;
    memcpy(&bits, four, 4);
    const int8x16_t all = vreinterpretq_s8_s32(vdupq_n_s32(bits));
    return (vb){all, all};
}
RY_INLINE vb vb_low_halves(vb v)
{
    const int8x16_t mask = vdupq_n_s8(15);
    return (vb){vandq_s8(v.lo, mask), vandq_s8(v.hi, mask)};
}
RY_INLINE int8x16_t ry_high_halves(int8x16_t v)
{
    return vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(v), 4));
}
RY_INLINE vb vb_high_halves(vb v) { return (vb){ry_high_halves(v.lo), ry_high_halves(v.hi)}; }
RY_INLINE int16x8_t ry_words_of(vf x)
{
    return vcombine_s16(vmovn_s32(vcvtnq_s32_f32(x.lo)), vmovn_s32(vcvtnq_s32_f32(x.hi)));
}
RY_INLINE vb vb_from_floats(const vf x[4])
{
    return (vb){vcombine_s8(vmovn_s16(ry_words_of(x[0])), vmovn_s16(ry_words_of(x[1]))),
                vcombine_s8(vmovn_s16(ry_words_of(x[2])), vmovn_s16(ry_words_of(x[3])))};
}
RY_INLINE void vb_group_offset(int16_t offset[2], vb bytes)
{
    const int16x8_t pairs = vaddq_s16(vpaddlq_s8(bytes.lo), vpaddlq_s8(bytes.hi));
    const int16x8_t even = vuzp1q_s16(pairs, pairs), odd = vuzp2q_s16(pairs, pairs);
    offset[0] = (int16_t)(-RY_INT4_ZERO * vaddv_s16(vget_low_s16(even)));
    offset[1] = (int16_t)(-RY_INT4_ZERO * vaddv_s16(vget_low_s16(odd)));
}
RY_INLINE vf vb_steps(const uint8_t *eight)
{
    const uint16x8_t words = vmovl_u8(vld1_u8(eight));
    return RY_BOTH(vcvtq_f32_u32(vmovl_u16(vget_low_u16(words))),
                   vcvtq_f32_u32(vmovl_high_u16(words)));
}

RY_INLINE vi vi_zero(void) { return (vi){vdupq_n_s32(0), vdupq_n_s32(0)}; }
RY_INLINE vi vi_load(const int32_t *p) { return (vi){vld1q_s32(p), vld1q_s32(p + 4)}; }
RY_INLINE void vi_store(int32_t *p, vi v)
{
    vst1q_s32(p, v.lo);
    vst1q_s32(p + 4, v.hi);
}

/* Products of neighbours, added in 16 bits: for every output of four, two sums. They fit for
 * factors of -128 .. 127 by -127 .. 127. */
RY_INLINE int16x8_t ry_pairs(int8x16_t x, int8x16_t w)
{
    return vpaddq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(w)), vmull_high_s8(x, w));
}

/* ---- int8 ------------------------------------------------------------------------------------ */

#ifdef __ARM_FEATURE_MATMUL_INT8
enum { RY_INT8_FLIP = 0, RY_INT8_LESS = 0 };
RY_INLINE vi vi_dot4(vi sum, vb x, vb w)
{
    return (vi){vusdotq_s32(sum.lo, vreinterpretq_u8_s8(x.lo), w.lo),
                vusdotq_s32(sum.hi, vreinterpretq_u8_s8(x.hi), w.hi)};
}
#else /* signed bytes only: activations less 128 */
enum { RY_INT8_FLIP = 0x80, RY_INT8_LESS = 128 };
#ifdef __ARM_FEATURE_DOTPROD
RY_INLINE vi vi_dot4(vi sum, vb x, vb w)
{
    return (vi){vdotq_s32(sum.lo, x.lo, w.lo), vdotq_s32(sum.hi, x.hi, w.hi)};
}
#else
RY_INLINE vi vi_dot4(vi sum, vb x, vb w)
{
    return (vi){vpadalq_s16(sum.lo, ry_pairs(x.lo, w.lo)),
                vpadalq_s16(sum.hi, ry_pairs(x.hi, w.hi))};
}
#endif
#endif

/* ---- int4 and Q8_0 --------------------------------------------------------------------------- */

/* Loads after this stay after it: gcc would load all weights of a group first, and run out of
 * registers. */
RY_INLINE void vb_step_done(void) { __asm__ volatile("" ::: "memory"); }

#ifdef __ARM_FEATURE_DOTPROD
typedef vi vg; /* sums of 32 bits */
RY_INLINE vg vg_start(const ry_group *group)
{
    const int32x4_t sum = vdupq_n_s32(group->offset[0] + group->offset[1]);
    return (vg){sum, sum};
}
RY_INLINE vg vg_add(vg sum, vb w, vb x)
{
    return (vg){vdotq_s32(sum.lo, x.lo, w.lo), vdotq_s32(sum.hi, x.hi, w.hi)};
}
RY_INLINE vf vg_sum(vg sum) { return RY_BOTH(vcvtq_f32_s32(sum.lo), vcvtq_f32_s32(sum.hi)); }
RY_INLINE vg vg_zero(void) { return vi_zero(); }
RY_INLINE vg vg_add_signed(vg sum, vb w, vb x) { return vg_add(sum, w, x); }
RY_INLINE vf vg_sum_signed(vg sum) { return vg_sum(sum); }
#else
typedef struct vg { /* two sums of 16 bits for each output */
    int16x8_t lo, hi;
} vg;
RY_INLINE vg vg_start(const ry_group *group)
{
    int32_t both;
    memcpy(&both, group->offset, sizeof both);
    const int16x8_t sum = vreinterpretq_s16_s32(vdupq_n_s32(both));
    return (vg){sum, sum};
}
RY_INLINE vg vg_add(vg sum, vb w, vb x)
{
    sum = (vg){vaddq_s16(sum.lo, ry_pairs(x.lo, w.lo)), vaddq_s16(sum.hi, ry_pairs(x.hi, w.hi))};
    __asm__("" : "+w"(sum.lo), "+w"(sum.hi)); /* see bytes.h */
    return sum;
}
RY_INLINE vf vg_sum(vg sum)
{
    return RY_BOTH(vcvtq_f32_s32(vpaddlq_s16(sum.lo)), vcvtq_f32_s32(vpaddlq_s16(sum.hi)));
}
/* Q8_0: one sum of 32 bits for each output */
RY_INLINE vg vg_zero(void) { return (vg){vdupq_n_s16(0), vdupq_n_s16(0)}; }
RY_INLINE int16x8_t ry_add_pairs(int16x8_t sum, int8x16_t w, int8x16_t x)
{
    return vreinterpretq_s16_s32(vpadalq_s16(vreinterpretq_s32_s16(sum), ry_pairs(w, x)));
}
RY_INLINE vg vg_add_signed(vg sum, vb w, vb x)
{
    return (vg){ry_add_pairs(sum.lo, w.lo, x.lo), ry_add_pairs(sum.hi, w.hi, x.hi)};
}
RY_INLINE vf vg_sum_signed(vg sum)
{
    return RY_BOTH(vcvtq_f32_s32(vreinterpretq_s32_s16(sum.lo)),
                   vcvtq_f32_s32(vreinterpretq_s32_s16(sum.hi)));
}
#endif

#endif
