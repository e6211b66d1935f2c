/* mask_study_results.c - what a study of masks found: the results part of eval.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/masks/mask_study.h"

#include <math.h>

void renyi_masks_get_info(const renyi_masks *s, renyi_masks_info *out)
{
    *out = s->info;
    out->object = s->info.images ? s->patches[RY_OBJECT].mean : NAN;
    out->background = s->info.images ? s->patches[RY_BACKGROUND].mean : NAN;
    out->left_out = s->info.images ? s->patches[RY_NEITHER].mean : NAN;
}

const char *renyi_masks_metric(const renyi_masks *s, uint32_t metric)
{
    return ry_scores_name(s->scores, metric);
}

const char *renyi_masks_policy(const renyi_masks *s, uint32_t policy)
{
    return renyi_session_policy(s->policies[policy].session);
}

void renyi_masks_get_ranking(const renyi_masks *s, uint32_t metric, uint32_t block,
                             renyi_masks_ranking *out)
{
    const ry_mask_kept *kept = ry_mask_kept_at(s, metric, block);
    ry_moments auc = {0};
    for (size_t i = 0; i < s->info.images; i++)
        ry_moments_add(&auc, ry_mask_auc(s, i, metric)[block]);
    *out = (renyi_masks_ranking){ry_moments_estimate(&auc), ry_moments_estimate(&kept->object),
                                 ry_moments_estimate(&kept->background)};
}

void renyi_masks_get_difference(const renyi_masks *s, uint32_t a, uint32_t b, uint32_t block,
                                renyi_estimate *out)
{
    ry_moments difference = {0};
    for (size_t i = 0; i < s->info.images; i++)
        ry_moments_add(&difference, ry_mask_auc(s, i, b)[block] - ry_mask_auc(s, i, a)[block]);
    *out = ry_moments_estimate(&difference);
}

static renyi_masks_fates fates_of(const ry_moments m[RY_FATES])
{
    return (renyi_masks_fates){.alone = ry_moments_estimate(&m[RY_FATE_ALONE]),
                               .merged = ry_moments_estimate(&m[RY_FATE_MERGED]),
                               .fused = ry_moments_estimate(&m[RY_FATE_FUSED]),
                               .dropped = ry_moments_estimate(&m[RY_FATE_DROPPED])};
}

void renyi_masks_get_survival(const renyi_masks *s, uint32_t policy, uint32_t block,
                              renyi_masks_survival *out)
{
    const ry_mask_fates *b = &s->policies[policy].blocks[block];
    *out = (renyi_masks_survival){b->is_cut, fates_of(b->object), fates_of(b->background)};
}

size_t renyi_masks_failure_count(const renyi_masks *s) { return s->n_failures; }

void renyi_masks_get_failure(const renyi_masks *s, size_t i, renyi_eval_failure *out)
{
    *out = s->failures[i];
}
