/* layernorm_grad.c - the backward pass of LayerNorm in plain C, and the sums that every level
 * shares. With z = (x - mean) / s, s = sqrt(var + eps), and e = dy w:
 * dx = (e - mean(e) - z mean(e z)) / s, dw = sum dy z, db = sum dy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grad/grad.h"

#include <math.h>
#include <string.h>

size_t ry_layernorm_grad_blocks(size_t rows)
{
    return (rows + RY_LAYERNORM_GRAD_ROWS - 1) / RY_LAYERNORM_GRAD_ROWS;
}

void ry_layernorm_grad_sum(float *dw, float *db, const float *parts, size_t n_blocks, size_t n)
{
    for (size_t side = 0; side < 2; side++) {
        float *to = side ? db : dw;
        for (size_t i = 0; i < n; i++) {
            double sum = 0.0;
            for (size_t b = 0; b < n_blocks; b++) sum += (double)parts[(b * 2 + side) * n + i];
            to[i] += (float)sum;
        }
    }
}

static void row_grad(const ry_layernorm_grad *g, size_t r, float *dw, float *db)
{
    const float *x = g->x + r * g->x_row, *dy = g->dy + r * g->dy_row;
    float *dx = g->dx + r * g->dx_row;
    const double n = (double)g->n;
    double mean = 0.0, square = 0.0, e_mean = 0.0, ez_mean = 0.0;

    for (size_t i = 0; i < g->n; i++) mean += (double)x[i] / n;
    for (size_t i = 0; i < g->n; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean);
    const double scale = 1.0 / sqrt(square / n + (double)g->eps);
    for (size_t i = 0; i < g->n; i++) {
        const double e = (double)dy[i] * (double)g->w[i], z = ((double)x[i] - mean) * scale;
        e_mean += e / n;
        ez_mean += e * z / n;
        dw[i] += (float)((double)dy[i] * z);
        db[i] += dy[i];
    }
    for (size_t i = 0; i < g->n; i++) {
        const double e = (double)dy[i] * (double)g->w[i], z = ((double)x[i] - mean) * scale;
        dx[i] += (float)((e - e_mean - z * ez_mean) * scale);
    }
}

static RY_DECL_LAYERNORM_GRAD(layernorm_grad)
{
    const size_t first = block * RY_LAYERNORM_GRAD_ROWS;
    float *dw = g->parts + block * 2 * g->n, *db = dw + g->n;
    memset(dw, 0, 2 * g->n * sizeof(float));
    for (size_t r = first; r < g->rows && r < first + RY_LAYERNORM_GRAD_ROWS; r++)
        row_grad(g, r, dw, db);
}

void ry_layernorm_grad_init(ry_grad_kernels *k) { k->layernorm_grad = layernorm_grad; }
