/* rmsnorm_template.h - RMSNorm for any vector width.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/simd.h"

#include <math.h>

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
