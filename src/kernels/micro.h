/* micro.h - the inner loop of our own f32 matrix products: a tile of mr rows by nv vectors stays in
 * registers while k runs. Each element is one chain of fused multiply-adds in the order of k, so
 * its bits do not depend on the tile it belongs to. Needs a vector width (simd.h).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MICRO_H
#define RY_MICRO_H

#include "kernels/simd.h"

/* Rows of a register tile: MR x 2 sums, 2 vectors of b and 1 of a fit in 16 registers (AVX2) or 32
 * (AVX-512). */
#if VL == 8
#define RY_MR 6
#else
#define RY_MR 12
#endif

enum { RY_LINE = 16 }; /* floats of a cache line */

/* The operands of a tile: a(i, k) = a[i*a_row + k*a_k], b(k, lane) = b[k*b_k + lane]. */
typedef struct ry_operands {
    const float *a;
    size_t a_row, a_k;
    const float *b;
    size_t b_k;
    size_t depth;
} ry_operands;

/* acc[i][v] += sum_k a(i,k) * b(k, v*VL + lane). mr and nv are constants at every call. `last` is
 * the number of valid lanes of the last vector (VL = all). */
RY_INLINE void ry_micro_sum(const int mr, const int nv, const ry_operands *op, const size_t last,
                            vf acc[RY_MR][2])
{
    const float *a = op->a, *b = op->b;
    const size_t a_row = op->a_row, a_k = op->a_k, b_k = op->b_k;

    for (size_t k = 0; k < op->depth; k++, a += a_k, b += b_k) {
        vf bv[2];
        RY_UNROLL
        for (int v = 0; v < nv; v++) bv[v] = vf_load_upto(b + v * VL, v == nv - 1 ? last : VL);
        RY_UNROLL
        for (int i = 0; i < mr; i++) {
            const vf ai = vf_bcast(a + (size_t)i * a_row);
            RY_UNROLL
            for (int v = 0; v < nv; v++) acc[i][v] = vf_fma(ai, bv[v], acc[i][v]);
        }
    }
}

/* to[k * width + i] = rows[i][k] * scale: `width` rows, a multiple of VL, become the lanes of
 * operand b. */
RY_INLINE void ry_micro_pack(float *to, size_t width, const float *const *rows, size_t depth,
                             float scale)
{
    const vf factor = vf_set1(scale);
    for (size_t lane = 0; lane < width; lane += VL)
        for (size_t k = 0; k < depth; k += VL) {
            const size_t left = depth - k < VL ? depth - k : VL;
            vf r[VL];
            RY_UNROLL
            for (int i = 0; i < VL; i++)
                r[i] = vf_mul(vf_load_upto(rows[lane + (size_t)i] + k, left), factor);
            vf_transpose(r);
            RY_UNROLL
            for (int i = 0; i < VL; i++)
                if ((size_t)i < left) vf_store(to + (k + (size_t)i) * width + lane, r[i]);
        }
}

#endif
