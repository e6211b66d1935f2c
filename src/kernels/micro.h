/* micro.h - the inner loop of our own f32 matrix products: a tile of mr rows by nv vectors stays in
 * registers while k runs. Each element is one chain of fused multiply-adds in the order of k, so
 * its bits do not depend on the tile it belongs to. Needs a vector width (simd.h).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MICRO_H
#define RY_MICRO_H

#include "kernels/simd.h"

/* Rows of a register tile: MR x 2 sums, 2 vectors of b and 1 of a fit in 16 registers (AVX2) or 32
 * (AVX-512). NEON: micro_neon.h. */
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

/* What is prefetched into the second-level cache while a tile computes: one line from `next` on for
 * every `every` steps of k (0 = nothing). Many prefetches at once would occupy all buffers in which
 * lines arrive, and the loads of the tile would wait for memory. */
typedef struct ry_ahead {
    const float *next;
    size_t every;
} ry_ahead;

/* acc[i][v] += sum_k a(i,k) * b(k, v*VL + lane). mr and nv are constants at every call. `last` is
 * the number of valid lanes of the last vector (VL = all). */
#if defined(RY_SIMD_VEC8) && defined(__aarch64__)
#include "kernels/micro_neon.h"
#else
/* Every fourth row has a pointer of its own, and the compiler may not derive one from the other:
 * else it keeps an offset for each row, which are more than there are registers. */
RY_INLINE void ry_micro_sum_ahead(const int mr, const int nv, const ry_operands *op,
                                  const size_t last, const ry_ahead ahead, vf acc[RY_MR][2])
{
    const size_t a_row = op->a_row, a_k = op->a_k, b_k = op->b_k;
    const float *b = op->b, *const end = b + op->depth * b_k;
    const float *a0 = op->a, *a4 = a0 + 4 * a_row, *a8 = a4 + 4 * a_row;
    const float *next = ahead.next;

    while (b != end) {
        const float *stop = end;
        if (ahead.every) {
            if ((size_t)(end - b) > ahead.every * b_k) stop = b + ahead.every * b_k;
            __builtin_prefetch(next, 0, 2), next += RY_LINE;
        }
        do {
            vf bv[2];
            RY_UNROLL
            for (int v = 0; v < nv; v++) bv[v] = vf_load_upto(b + v * VL, v == nv - 1 ? last : VL);
            RY_UNROLL
            for (int i = 0; i < mr; i++) {
                const float *four = i < 4 ? a0 : i < 8 ? a4 : a8;
                const vf ai = vf_bcast(four + (size_t)(i % 4) * a_row);
                RY_UNROLL
                for (int v = 0; v < nv; v++) acc[i][v] = vf_fma(ai, bv[v], acc[i][v]);
            }
            a0 += a_k, a4 += a_k, a8 += a_k, b += b_k;
            __asm__("" : "+r"(a0), "+r"(a4), "+r"(a8));
        } while (b != stop);
    }
}
#endif

RY_INLINE void ry_micro_sum(const int mr, const int nv, const ry_operands *op, const size_t last,
                            vf acc[RY_MR][2])
{
    ry_micro_sum_ahead(mr, nv, op, last, (ry_ahead){NULL, 0}, acc);
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
