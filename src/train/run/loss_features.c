/* loss_features.c - see loss_features.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/run/loss_features.h"

#include "model/common/hook.h" /* RY_NO_TOKEN */

#include <math.h>
#include <string.h>

/* A row and its gradient times `scale`; d may be NULL. Returns the sum over elements. */
/* unit: what a difference is multiplied by before it is judged */
static double smooth_l1(const float *s, const float *t, size_t n, double unit, double beta,
                        double scale, float *d)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double e = ((double)s[i] - (double)t[i]) * unit, far = fabs(e);
        const int is_near = far < beta;
        sum += is_near ? 0.5 * e * e / beta : far - 0.5 * beta;
        if (d)
            d[i] = (float)(scale * unit *
                           (is_near   ? e / beta
                            : e > 0.0 ? 1.0
                            : e < 0.0 ? -1.0
                                      : e));
    }
    return sum;
}

static double squares(const float *s, const float *t, size_t n, double unit, double scale, float *d)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double e = ((double)s[i] - (double)t[i]) * unit;
        sum += e * e;
        if (d) d[i] = (float)(2.0 * scale * unit * e);
    }
    return sum;
}

/* 1 / deviation of a row's elements; a row without any counts as it is. */
static double inverse_deviation(const float *t, size_t n)
{
    double mean = 0.0, variance = 0.0;
    for (size_t i = 0; i < n; i++) mean += (double)t[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        variance += ((double)t[i] - mean) * ((double)t[i] - mean) / (double)n;
    return variance > 1e-12 ? 1.0 / sqrt(variance) : 1.0;
}

/* 1 - s t / (|s| |t|); a row of zeros has no direction: 1, without gradient. */
static double cosine(const float *s, const float *t, size_t n, double scale, float *d)
{
    double st = 0.0, ss = 0.0, tt = 0.0;
    for (size_t i = 0; i < n; i++) {
        st += (double)s[i] * (double)t[i];
        ss += (double)s[i] * (double)s[i];
        tt += (double)t[i] * (double)t[i];
    }
    if (ss == 0.0 || tt == 0.0) {
        if (d) memset(d, 0, n * sizeof *d);
        return 1.0;
    }
    const double length = sqrt(ss) * sqrt(tt), similarity = st / length;
    for (size_t i = 0; d && i < n; i++)
        d[i] = (float)(scale * ((double)s[i] * similarity / ss - (double)t[i] / length));
    return 1.0 - similarity;
}

static double row_distance(const ry_feature_spec *spec, const float *s, const float *t, size_t n,
                           double scale, float *d)
{
    const double inverse = 1.0 / (double)n;
    const double unit = spec->relative ? inverse_deviation(t, n) : 1.0;
    switch (spec->distance) {
    case RY_FEATURE_SMOOTH_L1:
        return inverse *
               smooth_l1(s, t, n, unit, spec->beta > 0.0 ? spec->beta : 1.0, scale * inverse, d);
    case RY_FEATURE_MSE: return inverse * squares(s, t, n, unit, scale * inverse, d);
    case RY_FEATURE_COSINE: break;
    }
    return cosine(s, t, n, scale, d);
}

static double image_distance(const ry_feature_spec *spec, const ry_feature_batch *b, size_t image,
                             double scale, float *d)
{
    const size_t n = b->dim;
    const uint32_t *patch = b->patch + image * b->n_rows;
    const float *rows = b->rows + image * b->n_rows * n;
    const float *teacher = b->teacher + image * b->n_patches * n;
    size_t known = 0;
    double sum = 0.0;
    for (uint32_t r = 0; r < b->n_rows; r++) known += patch[r] != RY_NO_TOKEN;
    for (uint32_t r = 0; r < b->n_rows; r++) {
        float *to = d ? d + (image * b->n_rows + r) * n : NULL;
        if (patch[r] != RY_NO_TOKEN)
            sum += row_distance(spec, rows + r * n, teacher + patch[r] * n, n,
                                scale / (double)known, to);
        else if (to)
            memset(to, 0, n * sizeof *to);
    }
    return known ? sum / (double)known : 0.0;
}

double ry_loss_features(const ry_feature_spec *spec, const ry_feature_batch *b, double scale,
                        float *d)
{
    double sum = 0.0;
    for (size_t i = 0; i < b->n; i++) sum += image_distance(spec, b, i, scale, d);
    return sum;
}
