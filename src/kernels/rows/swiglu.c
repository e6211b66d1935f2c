/* swiglu.c - the gated activation of Llama's MLP in plain C.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/linear/activation.h"

static RY_DECL_SWIGLU(swiglu)
{
    for (size_t r = 0; r < rows; r++, x += x_row, y += y_row)
        for (size_t i = 0; i < n; i++) y[i] = ry_silu(x[i]) * x[n + i];
}

void ry_swiglu_init(ry_kernels *k) { k->swiglu = swiglu; }
