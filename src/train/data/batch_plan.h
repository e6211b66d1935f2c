/* batch_plan.h - which samples are in which micro-batch: arithmetic without state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BATCH_PLAN_H
#define RY_BATCH_PLAN_H

#include "base/rng.h"

#include <stdint.h>

/* Uses of random numbers in the loader; a generator is keyed by seed, use, epoch and a number. */
typedef enum ry_chance { RY_CHANCE_ORDER = 1, RY_CHANCE_SAMPLE = 2, RY_CHANCE_MIX = 3 } ry_chance;
ry_rng ry_rng_for(uint64_t seed, ry_chance what, uint64_t epoch, uint64_t number);

/* Element i < n of the permutation of 0 .. n-1 given by `key`. Needs no memory. */
uint64_t ry_order_at(uint64_t key, uint64_t n, uint64_t i);

/* A rank's share of an epoch is a list of items: its micro-batches, or one empty item for a step in
 * which it has none. Items count on over epochs: item / n_items is the epoch. */
typedef struct ry_plan {
    uint64_t n_images, seed;
    uint32_t batch, micro, repeats, rank, n_ranks; /* micro is even */
    int keep_order;
    uint32_t n_full;                 /* steps of `batch` samples */
    uint32_t tail;                   /* samples of the incomplete step at the end; 0 = none */
    uint32_t full_items, tail_items; /* of such a step, for this rank */
    uint64_t n_items;                /* of an epoch */
} ry_plan;

/* Fills the fields from n_full on; returns the steps of an epoch. */
uint32_t ry_plan_make(ry_plan *p, int keep_last);

typedef struct ry_plan_item {
    uint32_t epoch, step, micro;
    uint32_t batch;      /* samples of the step */
    uint32_t first_pair; /* pair i is samples i and batch-1-i */
    uint32_t n_pairs, n; /* n: samples; the middle of an odd batch is a pair of one */
    int last_of_step, last_of_epoch;
} ry_plan_item;

ry_plan_item ry_plan_at(const ry_plan *p, uint64_t item);
uint64_t ry_plan_find(const ry_plan *p, uint32_t epoch, uint32_t step); /* first item of a step */

/* Sample of row `row` < n of the item; its index in the epoch; and its image in the dataset. */
uint32_t ry_plan_sample(const ry_plan_item *item, uint32_t row);
uint64_t ry_plan_place(const ry_plan *p, const ry_plan_item *item, uint32_t sample);
uint64_t ry_plan_image(const ry_plan *p, const ry_plan_item *item, uint32_t sample);

#endif
