/* mix.h - mixup and cutmix of pairs, and the targets that go with them; timm's Mixup in its "batch"
 * mode: one draw a batch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MIX_H
#define RY_MIX_H

#include "train/data/augment.h"

typedef struct ry_mix {
    double lambda; /* share of its own picture that a sample keeps; 1 = nothing is mixed */
    int is_cut;    /* the box comes from the partner; else all pixels are weighted */
    uint32_t top, bottom, left, right; /* rows [top, bottom), columns [left, right) */
} ry_mix;

/* Of one batch of pictures of this side. */
ry_mix ry_mix_draw(const ry_augment *a, uint32_t size, ry_rng *rng);

/* Mix two pictures [3, size, size] with each other. */
void ry_mix_pair(float *a, float *b, uint32_t size, const ry_mix *mix);

/* target [n_classes]: smoothed one-hot of `label` times lambda and of `partner` times the rest. */
typedef struct ry_mix_labels {
    uint32_t label, partner, n_classes;
    double smoothing, lambda;
} ry_mix_labels;
void ry_mix_target(float *target, const ry_mix_labels *labels);

double ry_rng_beta(ry_rng *rng, double alpha); /* Beta(alpha, alpha), alpha > 0 */

#endif
