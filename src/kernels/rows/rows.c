/* rows.c - plain loops that the compiler turns into vectors by itself.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"

#include <math.h>
#include <string.h>

void ry_row_scale(float *y, const float *x, float w, size_t n)
{
    if (w == 1.0f) {
        memmove(y, x, n * sizeof *y); /* they may be the same */
        return;
    }
    for (size_t i = 0; i < n; i++) y[i] = w * x[i];
}

void ry_row_add(float *y, const float *x, float w, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] += w * x[i];
}

/* Sums side by side: one alone would wait for its own last addition. */
enum { SUMS = 16 };

float ry_row_length(const float *x, size_t n)
{
    float sum[SUMS] = {0}, total = 0.0f;
    size_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (size_t k = 0; k < SUMS; k++) sum[k] += x[i + k] * x[i + k];
    for (; i < n; i++) sum[0] += x[i] * x[i];
    for (size_t k = 0; k < SUMS; k++) total += sum[k];
    return sqrtf(total);
}

/* The same for two rows. */
float ry_row_dot(const float *x, const float *y, size_t n)
{
    float sum[SUMS] = {0}, total = 0.0f;
    size_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (size_t k = 0; k < SUMS; k++) sum[k] += x[i + k] * y[i + k];
    for (; i < n; i++) sum[0] += x[i] * y[i];
    for (size_t k = 0; k < SUMS; k++) total += sum[k];
    return total;
}

float ry_row_distance(const float *x, const float *y, size_t n)
{
    float sum[SUMS] = {0}, total = 0.0f;
    size_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (size_t k = 0; k < SUMS; k++) {
            const float d = x[i + k] - y[i + k];
            sum[k] += d * d;
        }
    for (; i < n; i++) sum[0] += (x[i] - y[i]) * (x[i] - y[i]);
    for (size_t k = 0; k < SUMS; k++) total += sum[k];
    return sqrtf(total);
}

float ry_row_dot_i16(const int16_t *x, const float *y, size_t n)
{
    float sum[SUMS] = {0}, total = 0.0f;
    size_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (size_t k = 0; k < SUMS; k++) sum[k] += (float)x[i + k] * y[i + k];
    for (; i < n; i++) sum[0] += (float)x[i] * y[i];
    for (size_t k = 0; k < SUMS; k++) total += sum[k];
    return total;
}

float ry_row_to_i16(int16_t *y, const float *x, size_t n)
{
    float top = 0.0f;
    for (size_t i = 0; i < n; i++) top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
    const float scale = top > 0.0f ? 32767.0f / top : 0.0f;
    for (size_t i = 0; i < n; i++) y[i] = (int16_t)lrintf(x[i] * scale);
    return top / 32767.0f;
}

void ry_row_to_length(float *x, size_t n, double length)
{
    const double is = (double)ry_row_length(x, n);
    if (is > 0.0) ry_row_scale(x, x, (float)(length / is), n);
}
