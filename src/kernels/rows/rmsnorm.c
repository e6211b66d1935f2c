/* rmsnorm.c - RMSNorm in plain C.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <math.h>

static RY_DECL_RMSNORM(rmsnorm)
{
    for (size_t r = 0; r < rows; r++, x += x_row, y += y_row) {
        double square = 0.0;
        for (size_t i = 0; i < n; i++) square += (double)x[i] * (double)x[i];
        const double scale = 1.0 / sqrt(square / (double)n + (double)eps);
        for (size_t i = 0; i < n; i++) y[i] = (float)((double)x[i] * scale) * w[i];
    }
}

void ry_rmsnorm_init(ry_kernels *k) { k->rmsnorm = rmsnorm; }
