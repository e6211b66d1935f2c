/* loss.h - losses of a student: cross entropy with labels or a teacher, distance of tokens.
 *
 * Cross entropies return the SUM of the samples' losses in double and ADD scale * gradient to d
 * (NULL = not wanted): zero d before. With scale = 1 / batch the gradients of a batch's
 * micro-batches add up to those of the mean. A logit that is NaN or +infinity gives a NaN loss and
 * NaN gradients.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LOSS_H
#define RY_LOSS_H

#include <stddef.h>
#include <stdint.h>

/* Logits of one head: [n, n_classes] dense. */
typedef struct ry_logits {
    const float *rows;
    uint32_t n, n_classes; /* n_classes >= 1 */
} ry_logits;

/* -sum target log softmax; target [n, n_classes]: smoothed, mixed, of any sum. */
double ry_loss_soft(const ry_logits *z, const float *target, double scale, float *d);

/* Cross entropy with labels [n] < n_classes; smoothing e: 1 - e + e / C at the label, e / C
 * elsewhere. */
double ry_loss_label(const ry_logits *z, const uint32_t *label, double smoothing, double scale,
                     float *d);

/* T^2 KL(softmax(teacher / T) | softmax(z / T)), summed over classes (Hinton's; DeiT's published
 * code divides it by the number of classes too). teacher: [n, n_classes] logits. */
double ry_loss_teacher_soft(const ry_logits *z, const float *teacher, double temperature,
                            double scale, float *d);

/* Cross entropy with the teacher's best class; equal logits: the lower one. A teacher's NaN gives
 * a NaN loss. */
double ry_loss_teacher_hard(const ry_logits *z, const float *teacher, double scale, float *d);

/* ---- the loss of a model --------------------------------------------------------------------- */

typedef enum ry_distil { RY_DISTIL_NONE, RY_DISTIL_SOFT, RY_DISTIL_HARD } ry_distil;

typedef struct ry_loss_spec {
    ry_distil distil;
    double alpha;       /* (1 - alpha) * labels + alpha * teacher; 0 is as without a teacher */
    double temperature; /* of soft distillation */
} ry_loss_spec;

/* One micro-batch. With two heads (a distilled DeiT) the labels teach the first and the teacher the
 * second; without a teacher the labels teach the mean of both, which is the output of the model. */
typedef struct ry_loss_batch {
    uint32_t n, n_classes;
    const float *logits;      /* [n, n_classes] */
    const float *logits_dist; /* the same of the second head, or NULL */
    const float *target;      /* [n, n_classes] */
    const float *teacher;     /* [n, n_classes] logits; unused without distillation */
} ry_loss_batch;

typedef struct ry_loss_sum {
    double total;           /* what is minimized: the two below, weighted */
    double labels, teacher; /* sums over samples, without weights */
} ry_loss_sum;

/* Writes (not adds) d and, with a second head, d_dist: [n, n_classes]; NULL = none wanted. */
ry_loss_sum ry_loss(const ry_loss_spec *spec, const ry_loss_batch *b, double scale, float *d,
                    float *d_dist);

/* ---- distance of patch tokens ---------------------------------------------------------------- */

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
    int relative; /* 1 = differences in standard deviations of the teacher's row; not for cosine */
} ry_feature_spec;

/* Sum over images of each image's mean over its rows that are one patch (none: 0). Writes
 * scale * gradient to d [n, n_rows, dim], zeros for the other rows; NULL = not wanted. Include the
 * weight of this loss in scale, and multiply the returned sum by it. */
double ry_loss_features(const ry_feature_spec *spec, const ry_feature_batch *b, double scale,
                        float *d);

#endif
