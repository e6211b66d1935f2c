/* next_token.h - chooses the token that follows from logits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_NEXT_TOKEN_H
#define RY_NEXT_TOKEN_H

#include "renyi/renyi.h"

typedef struct ry_choice {
    double temperature; /* 0 = greedy */
    double top_p;       /* above 0, at most 1 */
    uint64_t seed, k;   /* uses number k of SplitMix64 from this seed */
} ry_choice;

/* Greedy: the largest logit; of equal ones the lowest id. Else a token drawn with probability
 * exp(logit / temperature) from the smallest set of most probable tokens that together have at
 * least top_p of the probability; equal ones rank by id. order: [vocab] scratch, unused when
 * greedy. A logit that is NaN or +inf: RENYI_ERR_FORMAT. */
renyi_status ry_next_token(int32_t *out, const float *logits, uint32_t vocab, const ry_choice *how,
                           uint32_t *order, renyi_error *err) RENYI_CHECK;

#endif
