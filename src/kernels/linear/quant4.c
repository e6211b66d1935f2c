/* quant4.c - see quant4.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linear/quant4.h"

#include <math.h>
#include <string.h>

/* To nearest, ties to even, for |x| < 2^22; unlike nearbyintf the compiler makes vectors of it. */
static inline float rounded(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

static float largest(const float *x, size_t n)
{
    float most = 0.0f, probe = 0.0f;
    for (size_t k = 0; k < n; k++) {
        most = fabsf(x[k]) > most ? fabsf(x[k]) : most;
        probe += x[k] * 0.0f;
    }
    return isnan(probe) ? NAN : most;
}

/* ---- weights ------------------------------------------------------------------------------- */

/* w / step as a whole number in -8 .. 7 */
static inline float number(float w, float inverse)
{
    const float v = rounded(w * inverse), low = v > -8.0f ? v : -8.0f;
    return low < 7.0f ? low : 7.0f;
}

/* Squares of what is lost. Eight sums side by side: one chain would be slow. */
static float loss(const float *w, size_t n, float step)
{
    const float inverse = 1.0f / step;
    float sum[8] = {0};
    for (size_t k = 0; k + 8 <= n; k += 8)
        for (size_t i = 0; i < 8; i++) {
            const float gone = w[k + i] - step * number(w[k + i], inverse);
            sum[i] += gone * gone;
        }
    for (size_t k = n / 8 * 8; k < n; k++) {
        const float gone = w[k] - step * number(w[k], inverse);
        sum[0] += gone * gone;
    }
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

/* The step that a group of numbers would have if it were free: the largest of them may become 7 or
 * 8, or be cut a little so that all others are finer. */
static float group_step(const float *w, size_t n, float most)
{
    static const float top[] = {7.0f, 7.5f, 8.0f, 8.8f};
    float best = 0.0f, least = INFINITY;
    for (size_t i = 0; i < sizeof top / sizeof *top; i++) {
        const float lost = loss(w, n, most / top[i]);
        if (lost < least) least = lost, best = most / top[i];
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
        const float its = largest(w + g * RY_GROUP, n);
        if (its >= RY_QUANT4_SMALLEST) step[g] = group_step(w + g * RY_GROUP, n, its);
        widest = step[g] > widest ? step[g] : widest;
    }
    const float scale = widest / 255.0f;
    for (size_t g = 0; g < groups; g++) {
        if (step[g] == 0.0f) continue;
        const float whole = rounded(step[g] / scale);
        step[g] = whole < 1.0f ? 1.0f : whole > 255.0f ? 255.0f : whole;
        const float inverse = 1.0f / (scale * step[g]);
        for (size_t k = g * RY_GROUP; k < n_in && k < (g + 1) * RY_GROUP; k++)
            q[k] = (uint8_t)(number(w[k], inverse) + 8.0f);
    }
    return scale;
}

/* ---- rows ---------------------------------------------------------------------------------- */

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
