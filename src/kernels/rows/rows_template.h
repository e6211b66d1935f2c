/* rows_template.h - LayerNorm, RMSNorm and SwiGLU for any vector width.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/simd.h"

#include "kernels/linear/activation.h" /* its vector functions need simd.h first */

#include <math.h>

RY_INLINE float row_sum(const float *x, size_t n)
{
    vf sum = vf_zero();
    size_t i = 0;
    for (; i + VL <= n; i += VL) sum = vf_add(sum, vf_load(x + i));
    if (i < n) sum = vf_add(sum, vf_load_n(x + i, n - i));
    return vf_sum(sum);
}

/* Sum of (x - mean)^2. A single pass with sum(x^2) - n mean^2 loses digits when the mean is large.
 */
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

static RY_DECL_RMSNORM(rmsnorm)
{
    for (size_t r = 0; r < rows; r++, x += x_row, y += y_row) {
        vf sum = vf_zero();
        for (size_t i = 0; i < n; i += VL) {
            const vf v = vf_load_upto(x + i, n - i);
            sum = vf_fma(v, v, sum);
        }
        const vf scale = vf_set1(1.0f / sqrtf(vf_sum(sum) / (float)n + eps));
        for (size_t i = 0; i < n; i += VL) {
            const vf v = vf_mul(vf_load_upto(x + i, n - i), scale);
            vf_store_upto(y + i, vf_mul(v, vf_load_upto(w + i, n - i)), n - i);
        }
    }
}

static RY_DECL_SWIGLU(swiglu)
{
    for (size_t r = 0; r < rows; r++, x += x_row, y += y_row)
        for (size_t i = 0; i < n; i += VL) {
            const size_t left = n - i;
            const vf gate = vf_silu(vf_load_upto(x + i, left));
            vf_store_upto(y + i, vf_mul(gate, vf_load_upto(x + n + i, left)), left);
        }
}
