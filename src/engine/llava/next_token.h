/* next_token.h - from logits to the token that follows.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_NEXT_TOKEN_H
#define RY_NEXT_TOKEN_H

#include "renyi/renyi.h"

typedef struct ry_choice {
    double temperature; /* 0 = greedy */
    double top_p;       /* above 0, at most 1 */
    uint64_t seed, k;   /* number k of SplitMix64 from this seed is drawn */
} ry_choice;

/* Greedy: the largest logit, of equals the lowest id. Else a token by its probability
 * exp(logit / temperature) among the fewest of the most probable that have top_p of all of it
 * together, the one that reaches it included; equal ones rank by id.
 * order: [vocab] scratch, not looked at when greedy. A logit that is NaN or +inf: RENYI_ERR_FORMAT.
 */
renyi_status ry_next_token(int32_t *out, const float *logits, uint32_t vocab, const ry_choice *how,
                           uint32_t *order, renyi_error *err) RENYI_CHECK;

#endif
