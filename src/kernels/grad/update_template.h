/* update_template.h - the optimizer update in plain loops, which the compiler vectorizes for the
 * instructions of the including file. Nothing is contracted or reordered: every width gives the
 * same bits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grad/update.h"

#include <math.h>

/* PyTorch's order of operations (torch.optim.AdamW, one tensor at a time). */
static RY_DECL_ADAMW(adamw)
{
    const ry_adamw c = *a;
    float *restrict to_p = p, *restrict to_m = m, *restrict to_v = v;
    const float *restrict from = grad;
    for (size_t i = 0; i < n; i++) {
        const float g = c.grad_scale * from[i];
        const float m1 = to_m[i] + c.rest1 * (g - to_m[i]);
        const float v1 = c.beta2 * to_v[i] + c.rest2 * g * g;
        const float denominator = sqrtf(v1) / c.correction + c.eps;
        to_m[i] = m1;
        to_v[i] = v1;
        to_p[i] = c.keep * to_p[i] - c.rate * m1 / denominator;
    }
}

static RY_DECL_AVERAGE(average)
{
    float *restrict to = mean;
    const float *restrict from = x;
    for (size_t i = 0; i < n; i++) to[i] += rest * (from[i] - to[i]);
}

/* 16 partial sums, then added in order. */
static RY_DECL_SQUARES(squares)
{
    enum { SUMS = 16 };
    double part[SUMS] = {0}, sum = 0.0;
    size_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (size_t k = 0; k < SUMS; k++) part[k] += (double)x[i + k] * (double)x[i + k];
    for (size_t k = 0; i + k < n; k++) part[k] += (double)x[i + k] * (double)x[i + k];
    for (size_t k = 0; k < SUMS; k++) sum += part[k];
    return sum;
}

static void fill_update_table(ry_update_kernels *k)
{
    k->adamw = adamw;
    k->average = average;
    k->squares = squares;
}
