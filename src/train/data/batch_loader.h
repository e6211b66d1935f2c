/* batch_loader.h - prepares micro-batches for training while the model runs.
 *
 * An epoch is one pass over the dataset in an order given by (seed, epoch); a step takes the
 * next `batch` samples of it; mixing pairs sample i of a batch of B with sample B-1-i. A
 * micro-batch of M holds M/2 neighbours and their M/2 mirrors, in the order of the batch, so it is
 * closed under pairing: its row k is mixed with its row n-1-k. Rank r of K gets micro-batches r,
 * r+K, ... of every step.
 *
 * A micro-batch depends only on the seed and (epoch, step, micro), not on threads, ranks, cache or
 * earlier calls.
 *
 * Decoding must not take the cores of the model (as in eval/run/pipeline.h): while the model runs
 * (from the return of ry_loader_next to the next call), only n_workers threads prepare images
 * ahead; when the next micro-batch is not ready, n_threads do, the caller's included.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BATCH_LOADER_H
#define RY_BATCH_LOADER_H

#include "renyi/eval.h"
#include "train/data/augment.h"

typedef struct ry_loader ry_loader;

typedef struct ry_loader_options {
    uint32_t image_size;
    double mean[3], std[3];
    uint64_t seed;
    uint32_t batch;       /* samples of a step, over all ranks */
    uint32_t micro_batch; /* largest number at once; odd is rounded up; 0 = 8 */
    uint32_t repeats;   /* repeated augmentation: every image comes this many times in a row, and an
                           epoch sees only n_images / repeats images; 0 = 1 */
    int keep_last;      /* 1 = an epoch ends with the incomplete batch, 0 = that is left out */
    int keep_order;     /* 1 = images in the order of the dataset, for tests */
    uint32_t n_classes; /* labels must be below */
    double smoothing;   /* of targets: on = 1 - s + s / n_classes, off = s / n_classes */
    ry_augment augment;
    uint32_t n_workers;     /* threads that prepare while the model runs; may be 0 */
    uint32_t n_threads;     /* threads that prepare while it waits, with the caller's; 0 = 1 */
    uint32_t rank, n_ranks; /* n_ranks 0 = 1 */
    uint32_t apply_exif;    /* 1 = rotate images by their EXIF orientation */
    uint64_t cache_bytes; /* most bytes of decoded images to keep, first come; 0 = none. Batches are
                             the same bits */
    renyi_limits limits;  /* of images */
} ry_loader_options;

/* A micro-batch; arrays are valid until the next call of any ry_loader function. */
typedef struct ry_train_batch {
    uint32_t n;          /* samples; 0 = this rank has none in this step (few images, many ranks) */
    const float *chw;    /* [n, 3, size, size] normalized, mixed */
    const float *target; /* [n, n_classes] smoothed, mixed; sums to 1 */
    const uint32_t *label;       /* [n] of the image itself, not of what was mixed in */
    const uint64_t *image;       /* [n] of the dataset */
    const uint64_t *sample;      /* [n] index in the batch, 0 .. batch-1 */
    double lambda;               /* share of the image itself; 1 = not mixed */
    uint32_t batch;              /* samples of this step over all ranks: what a mean loss is over */
    uint32_t epoch, step, micro; /* micro counts all ranks' */
    int last_of_step, last_of_epoch; /* of this rank's share */
} ry_train_batch;

/* Borrows d, copies opt. Threads start here. RENYI_ERR_ARG: options; images without a class or with
 * one beyond n_classes; fewer images than a batch without keep_last. al is called only from the
 * caller's thread; decoded images are allocated by malloc. */
renyi_status ry_loader_new(ry_loader **out, const renyi_dataset *d, const ry_loader_options *opt,
                           const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_loader_free(ry_loader *l); /* waits for the threads; NULL is fine */

uint32_t ry_loader_steps(const ry_loader *l); /* steps of an epoch, at least 1 */

/* The next micro-batch will be the first of this step; step < ry_loader_steps. */
renyi_status ry_loader_seek(ry_loader *l, uint32_t epoch, uint32_t step,
                            renyi_error *err) RENYI_CHECK;

/* The next micro-batch; epochs follow each other without end. An image that cannot be read is an
 * error that names it, at its turn and again until a seek. */
renyi_status ry_loader_next(ry_loader *l, ry_train_batch *out, renyi_error *err) RENYI_CHECK;

/* Sample k of a micro-batch in 8-bit levels: rgb [size, size, 3]. */
void ry_loader_to_rgb(const ry_loader *l, const ry_train_batch *b, uint32_t k, uint8_t *rgb);

typedef struct ry_loader_info {
    uint64_t bytes;       /* that the loader holds in buffers */
    uint64_t cache_bytes; /* and in decoded images */
    uint64_t decoded;     /* images decoded so far; others came from the cache */
    double seconds;       /* work of all threads so far */
} ry_loader_info;
void ry_loader_get_info(ry_loader *l, ry_loader_info *out);

#endif
