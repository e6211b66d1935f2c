/* rows_scalar.c - row arithmetic in plain C: the helpers of rows.h, rotary positions, and the
 * scalar level of LayerNorm, RMSNorm and SwiGLU, which specifies the vector levels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/linear/activation.h"
#include "kernels/rows/rows.h"

#include <math.h>
#include <string.h>

/* ---- helpers: plain loops that the compiler vectorizes --------------------------------------- */

void ry_row_scale(float *y, const float *x, float w, size_t n)
{
    if (w == 1.0f) {
        memmove(y, x, n * sizeof *y); /* x and y may be the same */
        return;
    }
    for (size_t i = 0; i < n; i++) y[i] = w * x[i];
}

void ry_row_add(float *y, const float *x, float w, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] += w * x[i];
}

/* Independent partial sums: a single one would wait for its previous addition. */
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

double ry_row_dot_double(const float *x, const float *y, size_t n)
{
    double sum[4] = {0.0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++) sum[k] += (double)x[i + k] * (double)y[i + k];
    for (; i < n; i++) sum[0] += (double)x[i] * (double)y[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
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

/* ---- rotary positions: plain C is enough, a row costs no more than one row of a product -------
 */

void ry_rope_angles(float *angles, size_t position, size_t head, double theta)
{
    const size_t half = head / 2;
    for (size_t i = 0; i < half; i++) {
        const float frequency = (float)(1.0 / pow(theta, 2.0 * (double)i / (double)head));
        const float angle = (float)position * frequency;
        angles[i] = (float)cos((double)angle);
        angles[half + i] = (float)sin((double)angle);
    }
}

void ry_rope(float *x, size_t n_heads, size_t head, const float *angles)
{
    const size_t half = head / 2;
    const float *cosine = angles, *sine = angles + half;
    for (size_t h = 0; h < n_heads; h++, x += head)
        for (size_t i = 0; i < half; i++) {
            const float a = x[i], b = x[half + i];
            x[i] = a * cosine[i] - b * sine[i];
            x[half + i] = b * cosine[i] + a * sine[i];
        }
}

/* ---- the scalar level, with sums in double --------------------------------------------------- */

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

static RY_DECL_RMSNORM(rmsnorm)
{
    for (size_t r = 0; r < rows; r++, x += x_row, y += y_row) {
        double square = 0.0;
        for (size_t i = 0; i < n; i++) square += (double)x[i] * (double)x[i];
        const double scale = 1.0 / sqrt(square / (double)n + (double)eps);
        for (size_t i = 0; i < n; i++) y[i] = (float)((double)x[i] * scale) * w[i];
    }
}

static RY_DECL_SWIGLU(swiglu)
{
    for (size_t r = 0; r < rows; r++, x += x_row, y += y_row)
        for (size_t i = 0; i < n; i++) y[i] = ry_silu(x[i]) * x[n + i];
}

void ry_rows_init_scalar(ry_kernels *k)
{
    k->layernorm = layernorm;
    k->rmsnorm = rmsnorm;
    k->swiglu = swiglu;
}
