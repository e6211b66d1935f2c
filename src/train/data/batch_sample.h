/* batch_sample.h - one pair of samples, from their files to mixed tensors and targets: the unit of
 * work of the loader's threads. Also the cache of decoded images, and mixup and cutmix.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BATCH_SAMPLE_H
#define RY_BATCH_SAMPLE_H

#include "renyi/eval.h"
#include "renyi/renyi.h"
#include "train/data/augment.h"
#include "train/data/batch_loader.h"
#include "train/data/batch_plan.h"

/* ---- cache of decoded images ----------------------------------------------------------------- */

typedef struct ry_cache ry_cache;

/* Decoded images in memory, up to a number of bytes. Nothing is evicted, so an image that was found
 * may be read without a lock. For images 0 .. n-1. */
renyi_status ry_cache_new(ry_cache **out, uint64_t n, uint64_t max_bytes, const renyi_allocator *al,
                          renyi_error *err) RENYI_CHECK;
void ry_cache_free(ry_cache *c); /* NULL is fine, here and below: nothing is ever kept */

/* 1 = *out is image i, borrowed until the cache is freed. */
int ry_cache_find(ry_cache *c, uint64_t i, renyi_image *out);

/* 1 = the cache now owns the pixels (allocated by malloc); 0 = it is full, or another thread was
 * first. */
int ry_cache_keep(ry_cache *c, uint64_t i, const renyi_image *image);

uint64_t ry_cache_bytes(ry_cache *c);

/* ---- mixup and cutmix ------------------------------------------------------------------------ */

typedef struct ry_mix {
    double lambda; /* share of its own image that a sample keeps; 1 = not mixed */
    int is_cut;    /* the box comes from the partner; else all pixels are weighted */
    uint32_t top, bottom, left, right; /* rows [top, bottom), columns [left, right) */
} ry_mix;

/* timm's Mixup in "batch" mode: one draw for a batch of images of this side. */
ry_mix ry_mix_draw(const ry_augment *a, uint32_t size, ry_rng *rng);

/* Mix two images [3, size, size] with each other. */
void ry_mix_pair(float *a, float *b, uint32_t size, const ry_mix *mix);

/* target [n_classes]: smoothed one-hot of `label` times lambda and of `partner` times the rest. */
typedef struct ry_mix_labels {
    uint32_t label, partner, n_classes;
    double smoothing, lambda;
} ry_mix_labels;
void ry_mix_target(float *target, const ry_mix_labels *labels);

double ry_rng_beta(ry_rng *rng, double alpha); /* Beta(alpha, alpha), alpha > 0 */

/* ---- samples --------------------------------------------------------------------------------- */

/* Shared by all pairs; read-only except the cache, which has its own lock. */
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
    uint64_t *image;  /* [M] */
    uint64_t *sample; /* [M] */
} ry_sample_rows;

/* The mixing of the item's step, the same for all of its micro-batches. */
double ry_sampler_lambda(const ry_sampler *s, const ry_plan_item *item);

/* Rows k and n-1-k of the item, k < n_pairs. Any thread; allocates by malloc.
 * Adds to *decoded the images that were not in the cache. Error messages name the image. */
renyi_status ry_sampler_pair(const ry_sampler *s, const ry_plan_item *item, uint32_t k,
                             const ry_sample_rows *rows, uint32_t *decoded,
                             renyi_error *err) RENYI_CHECK;

/* Asks the system to read the files of that pair ahead. */
void ry_sampler_prefetch(const ry_sampler *s, const ry_plan_item *item, uint32_t k);

#endif
