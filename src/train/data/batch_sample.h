/* batch_sample.h - one pair of samples from their files to mixed tensors and targets; what a
 * thread of the loader does with a piece of work.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BATCH_SAMPLE_H
#define RY_BATCH_SAMPLE_H

#include "renyi/eval.h"
#include "train/data/batch_loader.h"
#include "train/data/batch_plan.h"
#include "train/data/image_cache.h"

/* What all pairs share; read-only but for the cache, which has its own lock. */
typedef struct ry_sampler {
    const renyi_dataset *data;
    ry_loader_options o; /* limits filled in */
    ry_plan plan;
    ry_augment_target target;
    ry_cache *cache; /* NULL = none */
} ry_sampler;

/* Where the rows of a micro-batch go. */
typedef struct ry_sample_rows {
    float *chw;       /* [M, 3, size, size] */
    float *target;    /* [M, n_classes] */
    uint32_t *label;  /* [M] */
    uint64_t *photo;  /* [M] */
    uint64_t *sample; /* [M] */
} ry_sample_rows;

/* The mixing of the item's step, the same for all of its micro-batches. */
double ry_sampler_lambda(const ry_sampler *s, const ry_plan_item *item);

/* Rows k and n-1-k of the item, k < n_pairs. Any thread; heap: the C library's. *decoded grows by
 * the photos that were not in the cache. The message names the photo. */
renyi_status ry_sampler_pair(const ry_sampler *s, const ry_plan_item *item, uint32_t k,
                             const ry_sample_rows *rows, uint32_t *decoded,
                             renyi_error *err) RENYI_CHECK;

/* Ask the system for the files of that pair. */
void ry_sampler_prefetch(const ry_sampler *s, const ry_plan_item *item, uint32_t k);

#endif
