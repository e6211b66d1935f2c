/* dart.h - DART (Wen et al. 2025): keeps the visual rows that are least like a few pivots.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_DART_H
#define RY_DART_H

#include "model/common/llama_cuts.h"
#include "prune/policy/policy_spec.h"

/* Memory for a choice in a context of V rows. */
typedef struct ry_dart_scratch {
    uint32_t *order; /* [V] */
    uint64_t *rank;  /* [2V] */
    float *score;    /* [V] */
    uint32_t *list;  /* [V] */
    uint32_t *pivot; /* [V] */
    uint8_t *chosen; /* [V] */
} ry_dart_scratch;

/* taken: [n_visual], 1 for the rows that stay. share: rows that each pivot takes. v->key_sizes must
 * be set. Returns how many stay. */
uint32_t ry_dart_choose(const ry_dart_scratch *h, const ry_policy *p, const ry_llama_view *v,
                        uint32_t share, uint8_t *taken);

#endif
