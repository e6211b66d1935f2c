/* quant.c - numbers of 8 and 4 bits in plain C: rows of activations and channels of weights.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linear/quant.h"

#include "kernels/linear/epilogue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- int8: rows ------------------------------------------------------------------------------ */

/* scale and low of a row; the probe 0 * x is NaN if a number is not finite */
static ry_quant row_range(const float *x, size_t n, const ry_quant_range *range)
{
    float low = INFINITY, high = -INFINITY, probe = 0.0f;
    for (size_t k = 0; k < n; k++) {
        low = x[k] < low ? x[k] : low;
        high = x[k] > high ? x[k] : high;
        probe += x[k] * 0.0f;
    }
    if (isnan(probe)) return (ry_quant){NAN, NAN};
    if (range) low = range->low, high = range->high;
    return (ry_quant){(high - low) / 255.0f, low};
}

static RY_DECL_QUANTIZE(quantize_rows)
{
    for (size_t r = 0; r < rows; r++, x += x_row, q += q_row) {
        par[r] = row_range(x, n, range);
        const float inverse = par[r].scale > 0.0f ? 1.0f / par[r].scale : 0.0f;
        for (size_t k = 0; k < n; k++) {
            const float v = nearbyintf((x[k] - par[r].low) * inverse);
            q[k] = v > 0.0f ? (uint8_t)(v < 255.0f ? v : 255.0f) : 0; /* NaN: 0 */
        }
    }
}

static RY_DECL_QUANT_FINISH(finish_sums)
{
    for (size_t j = 0; j < n; j++) {
        const float v =
            fmaf((float)sums[j] * row.scale, c->scale[j], fmaf(row.low, c->sum[j], c->bias[j]));
        ry_epilogue_one(epilogue, y + j, v);
    }
}

/* The upper half of a float. Adding 0x7fff, or 0x8000 if the upper half is odd, rounds to nearest,
 * ties to even. */
static uint16_t round_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x)) return (uint16_t)(bits >> 16 | 0x40); /* a quiet NaN */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static RY_DECL_TO_BF16(to_bf16)
{
    for (size_t r = 0; r < rows; r++, x += x_row, y += y_row)
        for (size_t k = 0; k < n; k++) y[k] = round_to_bf16(x[k]);
}

const ry_quant_kernels ry_quant_scalar = {quantize_rows, finish_sums, to_bf16};

/* ---- int8: weights --------------------------------------------------------------------------- */

/* To nearest, ties to even, for |x| < 2^22; others stay large. Unlike nearbyintf the compiler
 * vectorizes it. */
static inline float rounded(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

static inline float larger(float a, float b) { return a > b ? a : b; }

/* 127 / x is infinite below it. */
#define SMALLEST 0x1p-120f

/* The largest |w|, in eight partial results, because one chain would be slow. */
static float largest_weight(const float *w, size_t n)
{
    float most[8] = {0};
    for (size_t k = 0; k + 8 <= n; k += 8)
        for (size_t i = 0; i < 8; i++) most[i] = larger(most[i], fabsf(w[k + i]));
    for (size_t k = n / 8 * 8; k < n; k++) most[0] = larger(most[0], fabsf(w[k]));
    for (size_t i = 1; i < 8; i++) most[0] = larger(most[0], most[i]);
    return most[0];
}

static inline int8_t int8_number(float v)
{
    return (int8_t)(v < -127.0f ? -127.0f : v > 127.0f ? 127.0f : v);
}

float ry_quant_channel(int8_t *q, const float *w, size_t n_in, int pairs)
{
    float most = largest_weight(w, n_in);
    for (size_t k = 0; pairs && k + 1 < n_in; k += 2) {
        most = larger(most, larger(w[k], 0.0f) + larger(w[k + 1], 0.0f));
        most = larger(most, larger(-w[k], 0.0f) + larger(-w[k + 1], 0.0f));
    }
    if (most < SMALLEST) {
        memset(q, 0, n_in);
        return 0.0f;
    }
    const float scale = most / 127.0f, inverse = 127.0f / most;
    for (size_t k = 0; k < n_in; k++) q[k] = int8_number(rounded(w[k] * inverse));
    return scale;
}

int ry_quant_channel_as(int8_t *q, const float *w, size_t n_in, float scale, int pairs)
{
    const float inverse = scale >= SMALLEST ? 1.0f / scale : 0.0f;
    if (inverse == 0.0f) return 0;
    for (size_t k = 0; k < n_in; k++) q[k] = int8_number(rounded(w[k] * inverse));
    int fits = rounded(largest_weight(w, n_in) * inverse) <= 127.0f;
    for (size_t k = 0; pairs && k + 1 < n_in; k += 2) /* 255 x 128 fits in 16 bits */
        fits &= (q[k] ^ q[k + 1]) < 0 || abs(q[k] + q[k + 1]) <= 128;
    return fits;
}

/* ---- int4: weights --------------------------------------------------------------------------- */

/* The largest |x|, or NaN if one is NaN or infinite. */
static float largest(const float *x, size_t n)
{
    float most = 0.0f, probe = 0.0f;
    for (size_t k = 0; k < n; k++) {
        most = fabsf(x[k]) > most ? fabsf(x[k]) : most;
        probe += x[k] * 0.0f;
    }
    return isnan(probe) ? NAN : most;
}

/* w / step as a whole number in -8 .. 7 */
static inline float int4_number(float w, float inverse)
{
    const float v = rounded(w * inverse), low = v > -8.0f ? v : -8.0f;
    return low < 7.0f ? low : 7.0f;
}

/* Sum of squared errors with this step, in eight partial sums, because one chain would be slow. */
static float squared_error(const float *w, size_t n, float step)
{
    const float inverse = 1.0f / step;
    float sum[8] = {0};
    for (size_t k = 0; k + 8 <= n; k += 8)
        for (size_t i = 0; i < 8; i++) {
            const float error = w[k + i] - step * int4_number(w[k + i], inverse);
            sum[i] += error * error;
        }
    for (size_t k = n / 8 * 8; k < n; k++) {
        const float error = w[k] - step * int4_number(w[k], inverse);
        sum[0] += error * error;
    }
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

/* The best step of a group before it is rounded to a byte: the largest number may become 7 or 8, or
 * be clipped a little so that all others are finer. */
static float group_step(const float *w, size_t n, float most)
{
    static const float top[] = {7.0f, 7.5f, 8.0f, 8.8f};
    float best = 0.0f, least_error = INFINITY;
    for (size_t i = 0; i < sizeof top / sizeof *top; i++) {
        const float lost = squared_error(w, n, most / top[i]);
        if (lost < least_error) least_error = lost, best = most / top[i];
    }
    return best;
}

float ry_quant4_channel(uint8_t *q, float *step, const float *w, size_t n_in)
{
    const size_t groups = (n_in + RY_GROUP - 1) / RY_GROUP;
    const float most = largest(w, n_in);
    float widest = 0.0f;
    memset(q, RY_INT4_ZERO, n_in);
    memset(step, 0, groups * sizeof *step);
    if (isnan(most)) return NAN;
    if (most < RY_QUANT4_SMALLEST) return 0.0f;
    for (size_t g = 0; g < groups; g++) {
        const size_t n = n_in - g * RY_GROUP < RY_GROUP ? n_in - g * RY_GROUP : RY_GROUP;
        const float group_most = largest(w + g * RY_GROUP, n);
        if (group_most >= RY_QUANT4_SMALLEST) step[g] = group_step(w + g * RY_GROUP, n, group_most);
        widest = step[g] > widest ? step[g] : widest;
    }
    const float scale = widest / 255.0f;
    for (size_t g = 0; g < groups; g++) {
        if (step[g] == 0.0f) continue;
        const float whole = rounded(step[g] / scale);
        step[g] = whole < 1.0f ? 1.0f : whole > 255.0f ? 255.0f : whole;
        const float inverse = 1.0f / (scale * step[g]);
        for (size_t k = g * RY_GROUP; k < n_in && k < (g + 1) * RY_GROUP; k++)
            q[k] = (uint8_t)(int4_number(w[k], inverse) + 8.0f);
    }
    return scale;
}

/* ---- int4: rows ------------------------------------------------------------------------------ */

static void row_group(ry_group *group, int8_t *q, const float *x, size_t n)
{
    const float most = largest(x, n);
    int sum[2] = {0, 0};
    memset(q, 0, RY_GROUP);
    *group = (ry_group){.step = isnan(most) ? NAN : most / 127.0f};
    if (!(most >= RY_QUANT4_SMALLEST)) return;
    const float inverse = 127.0f / most;
    for (size_t k = 0; k < n; k++) {
        q[k] = (int8_t)rounded(x[k] * inverse);
        sum[k / 2 % 2] += q[k];
    }
    for (int i = 0; i < 2; i++) group->offset[i] = (int16_t)(-RY_INT4_ZERO * sum[i]);
}

void ry_quant4_row(ry_group *groups, int8_t *q, const float *x, size_t n_in, size_t depth)
{
    for (size_t k = 0; k < depth; k += RY_GROUP) {
        const size_t left = n_in > k ? n_in - k : 0;
        row_group(groups + k / RY_GROUP, q + k, left ? x + k : x,
                  left < RY_GROUP ? left : RY_GROUP);
    }
}
