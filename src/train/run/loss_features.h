/* loss_features.h - how far the patch tokens of a student are from a teacher's of the same patch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LOSS_FEATURES_H
#define RY_LOSS_FEATURES_H

#include <stddef.h>
#include <stdint.h>

typedef enum ry_feature_distance {
    RY_FEATURE_SMOOTH_L1, /* d^2 / (2 beta) below beta, |d| - beta / 2 above; mean over elements */
    RY_FEATURE_MSE,       /* d^2; mean over elements */
    RY_FEATURE_COSINE     /* 1 - cosine of the rows; mean over rows */
} ry_feature_distance;

typedef struct ry_feature_batch {
    uint32_t n, n_rows, n_patches, dim;
    const float *rows;     /* [n, n_rows, dim] the student's, projected */
    const uint32_t *patch; /* [n, n_rows] < n_patches, or RY_NO_TOKEN: a row that is left out (fused
                              or merged) */
    const float *teacher;  /* [n, n_patches, dim] */
} ry_feature_batch;

typedef struct ry_feature_spec {
    ry_feature_distance distance;
    double beta;  /* of smooth-L1; 0 = 1, PyTorch's */
    int relative; /* differences are in deviations of the teacher's row, not cosine's */
} ry_feature_spec;

/* Sum over images of each image's mean over its rows that stand for one patch (none: 0). Writes
 * scale * gradient to d [n, n_rows, dim], zeros for the other rows; NULL = not wanted. The weight
 * of this loss goes into scale, and what is returned has to be multiplied with it. */
double ry_loss_features(const ry_feature_spec *spec, const ry_feature_batch *b, double scale,
                        float *d);

#endif
