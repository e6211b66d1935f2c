/* select.c - a stable radix sort of the scores, and Algorithm 2 on top of two rankings.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/select.h"

#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 4, BUCKETS = 1 << DIGIT_BITS };

/* A sort key: smaller for better scores, equal for equal scores (-0 and 0 too), the largest for
 * NaN. */
static uint32_t badness(float score)
{
    if (score != score) return UINT32_MAX;
    score += 0.0f; /* -0 becomes 0 */
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    /* Positive floats order as their bits do, negative ones the other way round. */
    return bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;
}

static unsigned digit(uint64_t item, unsigned d)
{
    return (unsigned)(item >> (32 + d * DIGIT_BITS)) & (BUCKETS - 1);
}

/* One stable pass from one half of the scratch to the other. */
static void pass(uint64_t *to, const uint64_t *from, uint32_t n, unsigned d, uint32_t *count)
{
    uint32_t start = 0;
    for (unsigned b = 0; b < BUCKETS; b++) {
        const uint32_t here = count[b];
        count[b] = start;
        start += here;
    }
    for (uint32_t i = 0; i < n; i++) to[count[digit(from[i], d)]++] = from[i];
}

void ry_rank(uint32_t *order, const float *score, uint32_t n, uint64_t *scratch)
{
    uint32_t count[DIGITS][BUCKETS] = {{0}};
    uint64_t *from = scratch, *to = scratch + n;
    for (uint32_t i = 0; i < n; i++) {
        from[i] = (uint64_t)badness(score[i]) << 32 | i;
        for (unsigned d = 0; d < DIGITS; d++) count[d][digit(from[i], d)]++;
    }
    for (unsigned d = 0; d < DIGITS && n; d++) {
        if (count[d][digit(from[0], d)] == n) continue; /* all equal: nothing to move */
        pass(to, from, n, d, count[d]);
        uint64_t *const swap = from;
        from = to;
        to = swap;
    }
    for (uint32_t i = 0; i < n; i++) order[i] = (uint32_t)from[i];
}

void ry_select_correct(uint32_t *kept, uint8_t *taken, const uint32_t *by_class_order,
                       uint32_t by_class, const uint32_t *by_column_order, uint32_t by_column,
                       uint32_t n)
{
    memset(taken, 0, n);
    for (uint32_t i = 0; i < by_class; i++) {
        kept[i] = by_class_order[i];
        taken[kept[i]] = 1;
    }
    uint32_t k = by_class;
    for (uint32_t i = 0; i < n && k < by_class + by_column; i++) {
        const uint32_t j = by_column_order[i];
        if (taken[j]) continue;
        kept[k++] = j;
        taken[j] = 1;
    }
}

void ry_select_ascending(uint32_t *kept, const uint8_t *taken, uint32_t n)
{
    for (uint32_t j = 0, k = 0; j < n; j++)
        if (taken[j]) kept[k++] = j;
}
