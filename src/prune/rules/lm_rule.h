/* lm_rule.h - rules that cut the prefill of a language model: FastV, PyramidDrop, DART and
 * SparseVLM.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LM_RULE_H
#define RY_LM_RULE_H

#include "model/common/llama_cuts.h"
#include "prune/policy/policy_spec.h"

typedef struct ry_lm_rule ry_lm_rule;

/* One cut of the last prefill. */
typedef struct ry_lm_trace {
    uint32_t layer, n_in, n_kept;
    const uint32_t *kept; /* [n_kept] indices among the visual rows that were read, ascending; then
                             RENYI_NONE for each merged row */
    const float *scores;  /* [n_in] of those that arrived, in their order; NULL = none */
} ry_lm_trace;

/* policy: checked against the model, one of these rules; copied. max_context: rows of a
 * sequence at most; dim: width of a row. */
renyi_status ry_lm_rule_new(ry_lm_rule **out, const ry_policy *policy, uint32_t max_context,
                            size_t dim, const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_lm_rule_free(ry_lm_rule *r, const renyi_allocator *al);
size_t ry_lm_rule_bytes(const ry_lm_rule *r);

/* What the plan needs; valid as long as the rule. */
const ry_llama_cuts *ry_lm_rule_cuts(const ry_lm_rule *r);

/* Does the policy fit a feed with so many visual rows and rows after them? */
renyi_status ry_lm_rule_check(const ry_lm_rule *r, uint32_t n_visual, uint32_t n_text,
                              renyi_error *err) RENYI_CHECK;

/* Cut i of the last prefill; 0 if there was none. */
int ry_lm_rule_trace(const ry_lm_rule *r, uint32_t i, ry_lm_trace *out);
void ry_lm_rule_forget(ry_lm_rule *r); /* no prefill yet */

#endif
