/* mask_fate.c - follows the patches of a picture through the cuts of a run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/masks/mask.h"

#include <string.h>

void ry_fate_begin(uint8_t *fate, uint32_t *row, uint32_t n, uint32_t n_prefix)
{
    for (uint32_t p = 0; p < n; p++) {
        fate[p] = RY_FATE_ALONE;
        row[p] = n_prefix + p;
    }
}

static ry_fate fate_in(const renyi_cut *cut, uint32_t row, const uint32_t *members)
{
    if (row == RENYI_NONE) return RY_FATE_DROPPED;
    const uint32_t source = cut->source[row];
    if (source == RENYI_NONE || cut->position[source] == RENYI_FUSED) return RY_FATE_FUSED;
    return members[row] > 1 || row < cut->n_prefix ? RY_FATE_MERGED : RY_FATE_ALONE;
}

void ry_fate_cut(uint8_t *fate, uint32_t *row, uint32_t n, const renyi_cut *cut, uint32_t *members)
{
    memset(members, 0, cut->n_out * sizeof *members);
    for (uint32_t p = 0; p < n; p++) {
        if (row[p] == RENYI_NONE) continue;
        row[p] = cut->target[row[p]];
        if (row[p] != RENYI_NONE) members[row[p]]++;
    }
    for (uint32_t p = 0; p < n; p++) fate[p] = (uint8_t)fate_in(cut, row[p], members);
}
