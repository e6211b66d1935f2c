/* own_rules.h - rules of the caller's own in a run: what they are shown, their answers checked, and
 * their faults, one per image.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_OWN_RULES_H
#define RY_OWN_RULES_H

#include "prune/rules/rule.h"

/* What a pruner keeps for one image. Only the thread that decides for the image uses it. */
struct ry_own_image {
    renyi_error fault; /* code RENYI_OK = none */
    int32_t *position; /* [2 tokens] patch of each token that enters the next cut; scratch */
};

renyi_status ry_own_new(ry_pruner *p, const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_own_free(ry_pruner *p, const renyi_allocator *al);

/* Adds what the rule reads of a block. */
void ry_own_needs(const ry_pruner *p, ry_block_needs *needs);

/* The scores of a rule that scores; all 0 if it fails. */
void ry_own_score(const ry_pruner *p, const ry_block_view *view, float *score);

/* After the decision: the positions of the rows that the next cut gets. */
void ry_own_follow(const ry_pruner *p, const ry_block_view *view, const ry_cut *cut);

#endif
