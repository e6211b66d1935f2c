/* policy_api.h - a policy text made ready for one encoder: read, checked, and as a token hook.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_POLICY_API_H
#define RY_POLICY_API_H

#include "model/vit/vit.h"
#include "prune/rules/pruner.h"

/* Reads text (NULL = "none") and checks it against an encoder with these patches. */
renyi_status ry_policy_for(ry_policy *out, const char *text, const ry_vit_config *config,
                           uint32_t n_patches, renyi_error *err) RENYI_CHECK;

/* The same for a tower whose rows go to a language model. */
renyi_status ry_policy_for_visual(ry_policy *out, const char *text, const ry_vit_config *config,
                                  uint32_t n_patches, renyi_error *err) RENYI_CHECK;

/* The pruner of a checked policy; *out is NULL for "none" and for rules
 * behind the tower. max_batch 0 = only for counting. */
renyi_status ry_policy_pruner(ry_pruner **out, const ry_policy *policy, const ry_vit_config *config,
                              uint32_t n_patches, uint32_t max_batch, renyi_cpu level,
                              const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

#endif
