/* swiglu_template.h - the gated activation for any vector width.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/simd.h"

#include "kernels/linear/activation.h" /* its vector forms: after simd.h */

static RY_DECL_SWIGLU(swiglu)
{
    for (size_t r = 0; r < rows; r++, x += x_row, y += y_row)
        for (size_t i = 0; i < n; i += VL) {
            const size_t left = n - i;
            const vf gate = vf_silu(vf_load_upto(x + i, left));
            vf_store_upto(y + i, vf_mul(gate, vf_load_upto(x + n + i, left)), left);
        }
}
