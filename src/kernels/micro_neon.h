/* micro_neon.h - the inner loop of micro.h for NEON, which multiplies a vector by one lane of
 * another: four numbers of operand a are loaded at once, and nothing is broadcast. Along k if they
 * are neighbours there, else along the rows. The sums are those of micro.h, in the same order.
 *
 * 6 x 2 sums of two registers each, 6 vectors of a and half a vector pair of b are 32 registers,
 * all there are; so a half of b is loaded after the last use of the other.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MICRO_NEON_H
#define RY_MICRO_NEON_H

/* acc += a[lane] * b; lane is a constant. In asm, because compilers would broadcast the lane for
 * its two uses, which costs an instruction and a register that is not there. */
#define RY_FMLA(acc, b, a, n) \
    __asm__("fmla %0.4s, %1.4s, %2.s[" #n "]" : "+w"(acc) : "w"(b), "w"(a))
RY_INLINE float32x4_t ry_fma_lane(float32x4_t acc, float32x4_t a, const int lane, float32x4_t b)
{
    switch (lane) {
    case 0: RY_FMLA(acc, b, a, 0); break;
    case 1: RY_FMLA(acc, b, a, 1); break;
    case 2: RY_FMLA(acc, b, a, 2); break;
    default: RY_FMLA(acc, b, a, 3); break;
    }
    return acc;
}

/* acc[mr][v] += a(i, lane of its vector) * b; a vector of a belongs to one row, or to four */
RY_INLINE void ry_micro_rows(const int mr, const int v, const float32x4_t *a, const int lane, vf b,
                             vf acc[RY_MR][2])
{
    RY_UNROLL
    for (int i = 0; i < mr; i++) {
        const float32x4_t ai = lane < 0 ? a[i / 4] : a[i];
        acc[i][v].lo = ry_fma_lane(acc[i][v].lo, ai, lane < 0 ? i % 4 : lane, b.lo);
    }
    RY_UNROLL
    for (int i = 0; i < mr; i++) {
        const float32x4_t ai = lane < 0 ? a[i / 4] : a[i];
        acc[i][v].hi = ry_fma_lane(acc[i][v].hi, ai, lane < 0 ? i % 4 : lane, b.hi);
    }
}

/* vf_load as one instruction; compilers make two of it when registers are scarce. */
RY_INLINE vf ry_load_pair(const float *p)
{
    vf v;
    __asm__("ldp %q0, %q1, %2" : "=w"(v.lo), "=w"(v.hi) : "Q"(*(const float(*)[8])p));
    return v;
}

/* Four steps of k of rows whose a is contiguous along k. */
RY_INLINE void ry_micro_four(const int mr, const int nv, const float *a, size_t a_row,
                             const float *b, size_t b_k, const size_t last, vf acc[RY_MR][2])
{
    float32x4_t four[RY_MR];
    RY_UNROLL
    for (int i = 0; i < mr; i++) four[i] = vld1q_f32(a + (size_t)i * a_row);
    RY_UNROLL
    for (int k = 0; k < 4; k++, b += b_k) {
        RY_UNROLL
        for (int v = 0; v < nv; v++) {
            const int whole = v < nv - 1 || last == VL;
            const vf bv = whole ? ry_load_pair(b + v * VL) : vf_load_upto(b + v * VL, last);
            ry_micro_rows(mr, v, four, k, bv, acc);
            __asm__ volatile("" ::: "memory"); /* the next load stays below */
        }
    }
}

/* One step of k of rows that are neighbours in a (a_row = 1). */
RY_INLINE void ry_micro_column(const int mr, const int nv, const float *a, const float *b,
                               const size_t last, vf acc[RY_MR][2])
{
    float32x4_t rows[2];
    RY_UNROLL
    for (int i = 0; i < mr; i += 4)
        rows[i / 4] = mr - i >= 4 ? vld1q_f32(a + i) : ry_load_below_four(a + i, (size_t)(mr - i));
    RY_UNROLL
    for (int v = 0; v < nv; v++) {
        const int whole = v < nv - 1 || last == VL;
        const vf bv = whole ? ry_load_pair(b + v * VL) : vf_load_upto(b + v * VL, last);
        ry_micro_rows(mr, v, rows, -1, bv, acc);
    }
}

/* One step of k of any rows. */
RY_INLINE void ry_micro_one(const int mr, const int nv, const float *a, size_t a_row,
                            const float *b, const size_t last, vf acc[RY_MR][2])
{
    RY_UNROLL
    for (int v = 0; v < nv; v++) {
        const vf bv = vf_load_upto(b + v * VL, v == nv - 1 ? last : VL);
        RY_UNROLL
        for (int i = 0; i < mr; i++)
            acc[i][v] = vf_fma(vf_bcast(a + (size_t)i * a_row), bv, acc[i][v]);
    }
}

/* See micro.h. */
RY_INLINE void ry_micro_sum_ahead(const int mr, const int nv, const ry_operands *op,
                                  const size_t last, const ry_ahead ahead, vf acc[RY_MR][2])
{
    const size_t a_row = op->a_row, a_k = op->a_k, b_k = op->b_k, depth = op->depth;
    const float *a = op->a, *b = op->b, *next = ahead.next;
    size_t k = 0, due = ahead.every ? 0 : SIZE_MAX; /* the step with the next prefetch */

    if (a_row == 1) {
        for (; k < depth; k++, a += a_k, b += b_k) ry_micro_column(mr, nv, a, b, last, acc);
        return;
    }
    for (; a_k == 1 && k + 4 <= depth; k += 4, a += 4, b += 4 * b_k) {
        for (; due < k + 4; due += ahead.every, next += RY_LINE) __builtin_prefetch(next, 0, 2);
        ry_micro_four(mr, nv, a, a_row, b, b_k, last, acc);
    }
    for (; k < depth; k++, a += a_k, b += b_k) ry_micro_one(mr, nv, a, a_row, b, last, acc);
}

#endif
