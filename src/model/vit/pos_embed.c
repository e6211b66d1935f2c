/* pos_embed.c - bicubic resampling of a square grid of vectors, as two products with one small
 * matrix R [n_out, n_in]: rows first, then columns.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/pos_embed.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

/* Keys' cubic convolution kernel with free parameter a. */
static double cubic(double x, double a)
{
    x = fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
    return 0.0;
}

/* Positions are floats below, because torch's are: in double they would differ from it by more than
 * all other rounding together. */

/* Row `o` of R for the antialiased filter: taps outside the grid are left out and the rest is
 * brought back to a sum of 1. */
static void antialias_row(float *row, uint32_t o, uint32_t n_out, uint32_t n_in)
{
    const float scale = (float)n_in / (float)n_out;
    const double widen = scale > 1.0f ? scale : 1.0;
    const double centre = scale * ((float)o + 0.5f), support = 2.0 * widen;
    const double first = floor(centre - support + 0.5), end = floor(centre + support + 0.5);
    const uint32_t from = first > 0.0 ? (uint32_t)first : 0;
    const uint32_t to = end < n_in ? (uint32_t)end : n_in;
    double sum = 0.0;
    for (uint32_t i = from; i < to; i++) sum += cubic((i + 0.5 - centre) / widen, -0.5);
    for (uint32_t i = from; i < to; i++)
        row[i] = (float)(cubic((i + 0.5 - centre) / widen, -0.5) / sum);
}

/* Row `o` of R for the plain filter: a tap outside the grid reads the edge. */
static void plain_row(float *row, uint32_t o, uint32_t n_out, uint32_t n_in)
{
    const float scale = (float)n_in / (float)n_out;
    const double at = scale * ((float)o + 0.5f) - 0.5f, base = floor(at);
    for (int tap = -1; tap <= 2; tap++) {
        const double i = fmin(fmax(base + tap, 0.0), (double)n_in - 1.0);
        row[(uint32_t)i] += (float)cubic(at - (base + tap), -0.75);
    }
}

static void fill_matrix(float *r, uint32_t n_out, uint32_t n_in, ry_pos_filter filter)
{
    memset(r, 0, (size_t)n_out * n_in * sizeof *r);
    for (uint32_t o = 0; o < n_out; o++) {
        float *row = r + (size_t)o * n_in;
        if (filter == RY_POS_ANTIALIAS)
            antialias_row(row, o, n_out, n_in);
        else
            plain_row(row, o, n_out, n_in);
    }
}

/* out[o] = sum_i R[o, i] in[i] over vectors of `width` floats; vectors lie width apart. */
static void apply(float *out, const float *in, const float *r, uint32_t n_out, uint32_t n_in,
                  size_t width)
{
    for (uint32_t o = 0; o < n_out; o++) {
        float *y = out + o * width;
        memset(y, 0, width * sizeof *y);
        for (uint32_t i = 0; i < n_in; i++) {
            const float w = r[(size_t)o * n_in + i];
            const float *x = in + i * width;
            if (w == 0.0f) continue;
            for (size_t k = 0; k < width; k++) y[k] += w * x[k];
        }
    }
}

renyi_status ry_pos_embed_resample(float *out, uint32_t n_out, const float *in, uint32_t n_in,
                                   uint32_t dim, ry_pos_filter filter, const renyi_allocator *al,
                                   renyi_error *err)
{
    if (n_out == n_in) {
        memcpy(out, in, (size_t)n_in * n_in * dim * sizeof *out);
        return RENYI_OK;
    }
    /* R, then the grid after the columns were resampled: [n_in, n_out, dim]. */
    const size_t matrix = (size_t)n_out * n_in, half = matrix * dim;
    float *r = ry_alloc(al, matrix + half, sizeof *r);
    if (!r) return ry_fail_nomem(err, (matrix + half) * sizeof *r);
    float *mid = r + matrix;
    fill_matrix(r, n_out, n_in, filter);
    for (uint32_t y = 0; y < n_in; y++)
        apply(mid + (size_t)y * n_out * dim, in + (size_t)y * n_in * dim, r, n_out, n_in, dim);
    apply(out, mid, r, n_out, n_in, (size_t)n_out * dim);
    ry_free(al, r);
    return RENYI_OK;
}
