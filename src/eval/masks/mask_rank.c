/* mask_rank.c - how well scores tell the patches of the object from those of the background.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/masks/mask.h"
#include "prune/rules/select.h"

#include <math.h>

static int is_tie(float a, float b) { return a == b || (isnan(a) && isnan(b)); }

/* From best to worst, ties together: every object wins against the background below it and half
 * against that beside it. Counted twice, so that halves are whole. */
static double area(const float *score, const uint8_t *sides, const uint32_t *order, uint32_t n)
{
    uint64_t wins2 = 0, objects = 0, backgrounds = 0;
    for (uint32_t i = 0; i < n;) {
        uint64_t here[3] = {0, 0, 0};
        const float s = score[order[i]];
        for (; i < n && is_tie(score[order[i]], s); i++) here[sides[order[i]]]++;
        /* Objects above or beside these backgrounds. */
        wins2 += here[RY_BACKGROUND] * (2 * objects + here[RY_OBJECT]);
        objects += here[RY_OBJECT];
        backgrounds += here[RY_BACKGROUND];
    }
    return (double)wins2 / (2.0 * (double)objects * (double)backgrounds);
}

void ry_mask_rank(ry_ranked *out, const float *score, const uint8_t *sides, uint32_t n,
                  uint32_t n_kept, uint32_t *order, uint64_t *scratch)
{
    double all[3] = {0, 0, 0}, kept[3] = {0, 0, 0};
    ry_rank(order, score, n, scratch);
    for (uint32_t i = 0; i < n; i++) {
        all[sides[order[i]]]++;
        if (i < n_kept) kept[sides[order[i]]]++;
    }
    out->auc = area(score, sides, order, n);
    out->kept_object = kept[RY_OBJECT] / all[RY_OBJECT];
    out->kept_background = kept[RY_BACKGROUND] / all[RY_BACKGROUND];
}
