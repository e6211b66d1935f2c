/* quant.c - 8-bit rows and channels in plain C.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/quant.h"

#include "kernels/linear/epilogue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static ry_quant row_quant(const float *x, size_t n, const ry_quant_range *range)
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

static RY_DECL_QUANTISE(quantise)
{
    for (size_t r = 0; r < rows; r++, x += x_row, q += q_row) {
        par[r] = row_quant(x, n, range);
        const float inverse = par[r].scale > 0.0f ? 1.0f / par[r].scale : 0.0f;
        for (size_t k = 0; k < n; k++) {
            const float v = nearbyintf((x[k] - par[r].low) * inverse);
            q[k] = v > 0.0f ? (uint8_t)(v < 255.0f ? v : 255.0f) : 0; /* NaN: 0 */
        }
    }
}

static RY_DECL_QUANT_FINISH(finish)
{
    for (size_t j = 0; j < n; j++) {
        const float v =
            fmaf((float)sums[j] * row.scale, c->scale[j], fmaf(row.low, c->sum[j], c->bias[j]));
        ry_epilogue_one(epilogue, y + j, v);
    }
}

/* The upper half of a float; half of the lower half's range is added before, and one more if the
 * upper half is odd: ties go to even. */
static uint16_t bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x)) return (uint16_t)(bits >> 16 | 0x40); /* quiet; a payload below may be lost */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static RY_DECL_TO_BF16(to_bf16)
{
    for (size_t r = 0; r < rows; r++, x += x_row, y += y_row)
        for (size_t k = 0; k < n; k++) y[k] = bf16(x[k]);
}

const ry_quant_kernels ry_quant_scalar = {quantise, finish, to_bf16};

static float larger(float a, float b) { return a > b ? a : b; }

/* Below it 127 / x is infinite. */
#define SMALLEST 0x1p-120f

float ry_quant_channel(int8_t *q, const float *w, size_t n_in, int pairs)
{
    float most = 0.0f;
    for (size_t k = 0; k < n_in; k++) most = larger(most, fabsf(w[k]));
    for (size_t k = 0; pairs && k + 1 < n_in; k += 2) {
        most = larger(most, larger(w[k], 0.0f) + larger(w[k + 1], 0.0f));
        most = larger(most, larger(-w[k], 0.0f) + larger(-w[k + 1], 0.0f));
    }
    if (most < SMALLEST) {
        memset(q, 0, n_in);
        return 0.0f;
    }
    const float scale = most / 127.0f, inverse = 127.0f / most;
    for (size_t k = 0; k < n_in; k++) {
        const float v = nearbyintf(w[k] * inverse);
        q[k] = (int8_t)(v < -127.0f ? -127.0f : v > 127.0f ? 127.0f : v);
    }
    return scale;
}

int ry_quant_channel_as(int8_t *q, const float *w, size_t n_in, float scale, int pairs)
{
    const float inverse = scale >= SMALLEST ? 1.0f / scale : 0.0f;
    float most = 0.0f;
    if (inverse == 0.0f) return 0;
    for (size_t k = 0; k < n_in; k++) {
        const float v = nearbyintf(w[k] * inverse);
        most = larger(most, fabsf(v));
        q[k] = (int8_t)(v < -127.0f ? -127.0f : v > 127.0f ? 127.0f : v);
    }
    int fits = most <= 127.0f;
    for (size_t k = 0; pairs && k + 1 < n_in; k += 2) /* 255 x 128 fits in 16 bits */
        fits &= (q[k] ^ q[k + 1]) < 0 || abs(q[k] + q[k + 1]) <= 128;
    return fits;
}
