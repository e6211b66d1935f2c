/* quant_template.h - rows of 8-bit activations, and the epilogue of their integer sums, for any
 * vector width.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd.h"

#include "kernels/linear/epilogue.h"
#include "kernels/linear/quant.h"

#include <math.h>

RY_INLINE float lanes_min(vf v)
{
    float f[VL];
    vf_store(f, v);
    for (int i = 1; i < VL; i++) f[0] = f[i] < f[0] ? f[i] : f[0];
    return f[0];
}

/* scale and low of a row. The probe, the sum of 0 * x, is NaN if a number is not finite. */
RY_INLINE ry_quant row_range(const float *x, size_t n, const ry_quant_range *range)
{
    vf low = vf_set1(INFINITY), high = vf_set1(INFINITY),
       probe = vf_zero(); /* high: the least -x */
    size_t k = 0;
    for (; k + VL <= n; k += VL) {
        const vf v = vf_load(x + k);
        low = vf_min(low, v);
        high = vf_min(high, vf_sub(vf_zero(), v));
        probe = vf_fma(v, vf_zero(), probe);
    }
    float least = lanes_min(low), most = -lanes_min(high), bad = vf_sum(probe);
    for (; k < n; k++) {
        least = x[k] < least ? x[k] : least;
        most = x[k] > most ? x[k] : most;
        bad += x[k] * 0.0f;
    }
    if (isnan(bad)) return (ry_quant){NAN, NAN};
    if (range) least = range->low, most = range->high;
    return (ry_quant){(most - least) / 255.0f, least};
}

static RY_DECL_QUANTIZE(quantize_rows)
{
    const vf top = vf_set1(255.0f);
    for (size_t r = 0; r < rows; r++, x += x_row, q += q_row) {
        par[r] = row_range(x, n, range);
        const float inverse = par[r].scale > 0.0f ? 1.0f / par[r].scale : 0.0f;
        const vf low = vf_set1(par[r].low), factor = vf_set1(inverse);
        for (size_t k = 0; k < n; k += VL) {
            const size_t left = n - k;
            const vf v = vf_mul(vf_sub(vf_load_upto(x + k, left), low), factor);
            /* in this order NaN becomes 0 */
            const vf bounded = vf_min(vf_max(vf_round(v), vf_zero()), top);
            vf_store_u8(q + k, bounded, left < VL ? left : VL);
        }
    }
}

static RY_DECL_QUANT_FINISH(finish_sums)
{
    const vf scale = vf_set1(row.scale), low = vf_set1(row.low);
    for (size_t j = 0; j < n; j += VL) {
        const size_t left = n - j;
        const vf fixed = vf_fma(low, vf_load(c->sum + j), vf_load(c->bias + j));
        const vf sum = vf_mul(vf_from_i32(sums + j), scale);
        ry_epilogue_store(epilogue, y + j, vf_fma(sum, vf_load(c->scale + j), fixed), left);
    }
}
