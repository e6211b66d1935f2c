/* layernorm_template.h - LayerNorm for any vector width: mean, then the variance of the differences
 * (the one-pass form loses digits when the mean is large), then the scaled row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/simd.h"

#include <math.h>

RY_INLINE float row_sum(const float *x, size_t n)
{
    vf sum = vf_zero();
    size_t i = 0;
    for (; i + VL <= n; i += VL) sum = vf_add(sum, vf_load(x + i));
    if (i < n) sum = vf_add(sum, vf_load_n(x + i, n - i));
    return vf_sum(sum);
}

RY_INLINE float row_square_sum(const float *x, size_t n, float mean)
{
    const vf m = vf_set1(mean);
    vf sum = vf_zero();
    size_t i = 0;
    for (; i + VL <= n; i += VL) {
        const vf d = vf_sub(vf_load(x + i), m);
        sum = vf_fma(d, d, sum);
    }
    float rest = 0.0f;
    for (; i < n; i++) rest += (x[i] - mean) * (x[i] - mean);
    return vf_sum(sum) + rest;
}

static RY_DECL_LAYERNORM(layernorm)
{
    for (size_t r = 0; r < rows; r++, x += x_row, y += y_row) {
        const float mean = row_sum(x, n) / (float)n;
        const float scale = 1.0f / sqrtf(row_square_sum(x, n, mean) / (float)n + eps);
        const vf m = vf_set1(mean), s = vf_set1(scale);
        for (size_t i = 0; i < n; i += VL) {
            const size_t left = n - i;
            const vf v = vf_mul(vf_sub(vf_load_upto(x + i, left), m), s);
            vf_store_upto(y + i, vf_fma(v, vf_load_upto(w + i, left), vf_load_upto(b + i, left)),
                          left);
        }
    }
}
