/* batch_plan.c - which samples are in which micro-batch, and the order of an epoch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/batch_plan.h"

#include "base/hash.h"

/* ---- random numbers -------------------------------------------------------------------------- */

ry_rng ry_rng_for(uint64_t seed, ry_chance what, uint64_t epoch, uint64_t number)
{
    const uint64_t key[4] = {seed, (uint64_t)what, epoch, number};
    return ry_rng_new(ry_hash(key, sizeof key));
}

/* A Feistel network on an even number of bits is a permutation of 2^bits numbers, whatever its
 * rounds compute; repeating it until the result is below n makes it one of n. */
uint64_t ry_order_at(uint64_t key, uint64_t n, uint64_t i)
{
    enum { ROUNDS = 6 };
    unsigned half = 1;
    while (half < 32 && n > (uint64_t)1 << (2 * half)) half++;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (unsigned round = 0; round < ROUNDS; round++) {
            ry_rng r = ry_rng_new(key + (right << 8 | round));
            const uint64_t next = left ^ (ry_rng_next(&r) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* ---- items ----------------------------------------------------------------------------------- */

static uint32_t pairs_of(uint32_t batch) { return batch / 2 + batch % 2; }

/* Micro-batches rank, rank + n_ranks, ... of a step; at least one item. */
static uint32_t items_of(const ry_plan *p, uint32_t batch)
{
    const uint32_t half = p->micro / 2, micros = (pairs_of(batch) + half - 1) / half;
    const uint32_t mine = micros > p->rank ? (micros - p->rank - 1) / p->n_ranks + 1 : 0;
    return mine ? mine : 1;
}

uint32_t ry_plan_make(ry_plan *p, int keep_last)
{
    p->n_full = (uint32_t)(p->n_images / p->batch);
    p->tail = keep_last ? (uint32_t)(p->n_images % p->batch) : 0;
    p->full_items = items_of(p, p->batch);
    p->tail_items = p->tail ? items_of(p, p->tail) : 0;
    p->n_items = (uint64_t)p->n_full * p->full_items + p->tail_items;
    return p->n_full + (p->tail > 0);
}

ry_plan_item ry_plan_at(const ry_plan *p, uint64_t item)
{
    const uint64_t within = item % p->n_items, full = (uint64_t)p->n_full * p->full_items;
    const int is_tail = within >= full;
    const uint32_t k = (uint32_t)(is_tail ? within - full : within % p->full_items);
    const uint32_t half = p->micro / 2;
    ry_plan_item out = {.epoch = (uint32_t)(item / p->n_items),
                        .step = is_tail ? p->n_full : (uint32_t)(within / p->full_items),
                        .micro = p->rank + k * p->n_ranks,
                        .batch = is_tail ? p->tail : p->batch};
    const uint64_t first = (uint64_t)out.micro * half;
    const uint32_t pairs = pairs_of(out.batch);
    if (first < pairs) {
        out.first_pair = (uint32_t)first;
        out.n_pairs = pairs - out.first_pair < half ? pairs - out.first_pair : half;
        const int has_middle = out.batch % 2 && out.first_pair + out.n_pairs == pairs;
        out.n = 2 * out.n_pairs - (has_middle ? 1 : 0);
    }
    out.last_of_step = k + 1 == (is_tail ? p->tail_items : p->full_items);
    out.last_of_epoch = within + 1 == p->n_items;
    return out;
}

uint64_t ry_plan_find(const ry_plan *p, uint32_t epoch, uint32_t step)
{
    return epoch * p->n_items + (uint64_t)step * p->full_items;
}

uint32_t ry_plan_sample(const ry_plan_item *item, uint32_t row)
{
    if (row < item->n_pairs) return item->first_pair + row;
    return item->batch - 1 - (item->first_pair + (item->n - 1 - row));
}

uint64_t ry_plan_place(const ry_plan *p, const ry_plan_item *item, uint32_t sample)
{
    return (uint64_t)item->step * p->batch + sample;
}

uint64_t ry_plan_image(const ry_plan *p, const ry_plan_item *item, uint32_t sample)
{
    const uint64_t i = ry_plan_place(p, item, sample) / p->repeats;
    if (p->keep_order) return i;
    return ry_order_at(ry_rng_for(p->seed, RY_CHANCE_ORDER, item->epoch, 0).state, p->n_images, i);
}
