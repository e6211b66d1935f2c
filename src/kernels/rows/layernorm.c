/* layernorm.c - LayerNorm in plain C.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <math.h>

static RY_DECL_LAYERNORM(layernorm)
{
    for (size_t r = 0; r < rows; r++, x += x_row, y += y_row) {
        double sum = 0.0, square = 0.0;
        for (size_t i = 0; i < n; i++) sum += (double)x[i];
        const double mean = sum / (double)n;
        for (size_t i = 0; i < n; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean);
        const double scale = 1.0 / sqrt(square / (double)n + (double)eps);
        for (size_t i = 0; i < n; i++) y[i] = (float)(((double)x[i] - mean) * scale) * w[i] + b[i];
    }
}

void ry_layernorm_init(ry_kernels *k) { k->layernorm = layernorm; }
