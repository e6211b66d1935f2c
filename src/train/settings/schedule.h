/* schedule.h - learning rate, keep rate and stochastic depth over a run. Pure functions of the
 * position in the run, so that a resumed run needs no saved state for them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SCHEDULE_H
#define RY_SCHEDULE_H

#include <stdint.h>

/* A position in a run. */
typedef struct ry_moment {
    uint32_t epoch;
    uint32_t step, steps; /* of the epoch: step < steps */
} ry_moment;

typedef enum ry_lr_shape {
    RY_LR_COSINE,  /* min + (peak - min)(1 + cos(pi t / epochs)) / 2 */
    RY_LR_LINEAR,  /* a straight line from peak to min */
    RY_LR_CONSTANT /* peak */
} ry_lr_shape;

typedef enum ry_lr_tick {
    RY_LR_PER_STEP,      /* t = epoch + step / steps: smooth */
    RY_LR_PER_EPOCH,     /* t = epoch */
    RY_LR_PER_EPOCH_LATE /* t = the epoch just finished, as DeiT and EViT step their scheduler:
                            epochs 0 and 1 both have t = 0 */
} ry_lr_tick;

typedef struct ry_lr_schedule {
    ry_lr_shape shape;
    ry_lr_tick tick;
    double peak, min;
    double epochs;        /* where the shape reaches min; it stays there */
    double warmup_epochs; /* t below it: a straight line from warmup_lr to peak. As in timm the
                             shape goes on below it and is entered at t = warmup_epochs */
    double warmup_lr;
    int warmup_prefix; /* 1 = the shape begins after the warm-up and is shorter by it: no jump at
                          its end */
} ry_lr_schedule;

double ry_lr_at(const ry_lr_schedule *s, ry_moment now);

/* lr for a batch of 512, as DeiT scales it: lr * batch / 512. */
double ry_lr_for_batch(double lr, uint32_t batch);

/* Keep rate of all cuts (EViT): 1 before epoch `start`, `keep` from start + epochs on, half a
 * cosine between, step by step. */
typedef struct ry_keep_schedule {
    double keep;
    uint32_t start, epochs; /* 0, 0 = keep from the first step */
} ry_keep_schedule;

double ry_keep_at(const ry_keep_schedule *s, ry_moment now);

/* Stochastic depth of block i of L, linear over depth as in timm: rate * i / (L - 1). */
double ry_drop_path_rate(double rate, uint32_t block, uint32_t n_blocks);

/* Draws the factor of every residual branch: 0 with the block's probability, else 1 / (1 - it).
 * branch: [2 * n_blocks, n]; row 2 * i is the attention of block i, 2 * i + 1 its MLP. `sample`
 * [n]: indices in the batch of this step (ry_train_batch.sample): a factor depends only on seed,
 * epoch, step, index, block and branch. */
typedef struct ry_drop_path {
    double rate; /* of the last block; [0, 1) */
    uint32_t n_blocks;
    uint64_t seed;
} ry_drop_path;

void ry_drop_path_draw(const ry_drop_path *d, ry_moment now, const uint64_t *sample, uint32_t n,
                       float *branch);

#endif
