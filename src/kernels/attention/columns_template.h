/* columns_template.h - the column sums of a block of attention for any vector width; part of
 * attention_template.h. The matrix a [N, width] is transposed: a column is one of its rows, and its
 * lanes are the queries. VL columns are summed at a time: their vectors are transposed in registers
 * and added, which gives the sum over the lanes of each. The softmax leaves no NaN in a.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ATTENTION_COLUMNS_H
#define RY_ATTENTION_COLUMNS_H

#include "kernels/attention/column_stat.h"
#include "kernels/simd.h"

#include <float.h>

typedef struct column_view {
    const float *a;      /* [N, nv * VL]; lanes that do not count are 0 */
    const float *weight; /* [nv * VL] how often each lane counts */
    size_t n_tokens;
    float order; /* for LOOP_NORM */
} column_view;

/* What a loop over the columns computes: w (N a)^power for 1 to 4, or another statistic. */
enum { LOOP_POWER_4 = 4, LOOP_TOP, LOOP_NORM, LOOP_LOG };

/* Sum over the lanes of s[i], in lane i. */
RY_INLINE vf sum_lanes(vf s[VL])
{
    vf_transpose(s);
    RY_UNROLL
    for (int half = VL / 2; half; half /= 2) RY_UNROLL
    for (int i = 0; i < half; i++) s[i] = vf_add(s[i], s[i + half]);
    return s[0];
}

/* Largest lane of s[i], in lane i. */
RY_INLINE vf top_lanes(vf s[VL])
{
    vf_transpose(s);
    RY_UNROLL
    for (int half = VL / 2; half; half /= 2) RY_UNROLL
    for (int i = 0; i < half; i++) s[i] = vf_max(s[i], s[i + half]);
    return s[0];
}

/* Row of column j + i; columns past the end repeat the last one. */
RY_INLINE const float *column_at(const int nv, const column_view *c, size_t j, int i)
{
    const size_t at = j + (size_t)i < c->n_tokens ? j + (size_t)i : c->n_tokens - 1;
    return c->a + at * (size_t)nv * VL;
}

/* Largest entries of columns j .. j+VL. */
RY_INLINE vf column_tops(const int nv, const column_view *c, size_t j)
{
    vf s[VL];
    RY_UNROLL
    for (int i = 0; i < VL; i++) {
        const float *a = column_at(nv, c, j, i);
        s[i] = nv == 2 ? vf_max(vf_load(a), vf_load(a + VL)) : vf_load(a);
    }
    return top_lanes(s);
}

/* sum += w (N a)^power of one vector */
RY_INLINE vf add_power(const int power, vf a, vf w, vf scale, vf sum)
{
    const vf x = vf_mul(a, scale), wx = vf_mul(x, w), x2 = vf_mul(x, x);
    switch (power) {
    case 1: return vf_add(sum, wx);
    case 2: return vf_fma(wx, x, sum);
    case 3: return vf_fma(wx, x2, sum);
    default: return vf_fma(vf_mul(wx, x), x2, sum);
    }
}

/* sum += w a log a; 0 log 0 = 0 */
RY_INLINE vf add_log(vf a, vf w, vf sum)
{
    return vf_fma(vf_mul(a, w), vf_log(vf_max(a, vf_set1(FLT_MIN))), sum);
}

/* Sums of columns j .. j+VL. */
RY_INLINE vf column_sums(const int loop, const int nv, const column_view *c, size_t j)
{
    const vf scale = vf_set1((float)c->n_tokens);
    vf s[VL];
    RY_UNROLL
    for (int i = 0; i < VL; i++) {
        const float *a = column_at(nv, c, j, i);
        s[i] = vf_zero();
        RY_UNROLL
        for (int v = 0; v < nv; v++) {
            const vf x = vf_load(a + v * VL), w = vf_load(c->weight + v * VL);
            s[i] = loop == LOOP_LOG ? add_log(x, w, s[i]) : add_power(loop, x, w, scale, s[i]);
        }
    }
    return sum_lanes(s);
}

/* Norms of columns j .. j+VL: (sum w a^n)^(1/n) as top * (sum w (a/top)^n)^(1/n), so that no order
 * is too large. Floats are precise enough for these powers: the terms that matter are near 1. Not
 * unrolled, because it is long. */
RY_INLINE vf column_norms(const int nv, const column_view *c, size_t j)
{
    const vf top = column_tops(nv, c, j), n = vf_set1(c->order), tiny = vf_set1(FLT_MIN);
    float inverse[VL];
    vf s[VL];
    vf_store(inverse, vf_div(vf_set1(1.0f), vf_max(top, tiny)));
    for (int i = 0; i < VL; i++) {
        const float *a = column_at(nv, c, j, i);
        s[i] = vf_zero();
        for (int v = 0; v < nv; v++) {
            const vf x = vf_mul(vf_load(a + v * VL), vf_bcast(inverse + i));
            const vf in_range = vf_min(vf_max(x, tiny), vf_set1(1.0f));
            const vf power = vf_exp(vf_mul(n, vf_log(in_range)));
            s[i] = vf_fma(vf_load(c->weight + v * VL), power, s[i]);
        }
    }
    const vf sum = vf_max(sum_lanes(s), tiny);
    return vf_mul(top, vf_exp(vf_div(vf_log(sum), n)));
}

/* part[N] of this block */
RY_INLINE void columns_loop(const int loop, const int nv, const column_view *c, double *part)
{
    float lanes[VL];
    for (size_t j = 0; j < c->n_tokens; j += VL) {
        const size_t left = c->n_tokens - j < VL ? c->n_tokens - j : VL;
        vf_store(lanes, loop == LOOP_TOP    ? column_tops(nv, c, j)
                        : loop == LOOP_NORM ? column_norms(nv, c, j)
                                            : column_sums(loop, nv, c, j));
        for (size_t i = 0; i < left; i++) part[j + i] = (double)lanes[i];
    }
}

RY_INLINE void columns_of_width(const int nv, const column_view *c, int loop, double *part)
{
    switch (loop) {
    case 1: columns_loop(1, nv, c, part); break;
    case 2: columns_loop(2, nv, c, part); break;
    case 3: columns_loop(3, nv, c, part); break;
    case 4: columns_loop(4, nv, c, part); break;
    case LOOP_TOP: columns_loop(LOOP_TOP, nv, c, part); break;
    case LOOP_NORM: columns_loop(LOOP_NORM, nv, c, part); break;
    default: columns_loop(LOOP_LOG, nv, c, part);
    }
}

static void columns_of_loop(const column_view *c, size_t width, int loop, double *part)
{
    if (width == VL)
        columns_of_width(1, c, loop, part);
    else
        columns_of_width(2, c, loop, part);
}

static int loop_of(const ry_column_spec *spec)
{
    switch (ry_column_stat_of(spec)) {
    case RY_STAT_POWER: return (int)spec->order;
    case RY_STAT_TOP: return LOOP_TOP;
    case RY_STAT_NORM: return LOOP_NORM;
    default: return LOOP_LOG;
    }
}

#endif
