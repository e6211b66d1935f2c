/* cascade.h - two policies for one image: the second runs only if the first is not sure.
 *
 *   cascade(POLICY -> POLICY if margin < M) combine=second
 *
 * The margin is the difference of the two largest logits of the first pass. A program that takes
 * cascades reads every policy text with ry_cascade_parse; the others use ry_policy_parse, which
 * refuses cascades.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CASCADE_H
#define RY_CASCADE_H

#include "prune/policy/policy_spec.h"

/* What an image gets that needed both passes. */
typedef enum ry_combine {
    RY_COMBINE_SECOND, /* the logits of the second pass */
    RY_COMBINE_MEAN    /* the mean of the logits of both */
} ry_combine;

typedef struct ry_cascade {
    int is_cascade;  /* 0: `first` is the whole policy, the rest is zero */
    ry_policy first; /* runs for every image */
    ry_policy second;
    double margin; /* images whose margin is not at least this large run again; finite, >= 0 */
    ry_combine combine;
} ry_cascade;

/* Reads a policy or a cascade. own: rules of a model; NULL = no model. RENYI_ERR_ARG names the
 * place in the text. */
renyi_status ry_cascade_parse(ry_cascade *out, const char *text, const ry_own_rules *own,
                              renyi_error *err) RENYI_CHECK;

/* In full; parses back to the same struct. */
void ry_cascade_print(char out[RY_MAX_POLICY_TEXT], const ry_cascade *c);

/* ry_policy_check of both policies. */
renyi_status ry_cascade_check(ry_cascade *c, const ry_policy_shape *shape,
                              renyi_error *err) RENYI_CHECK;

/* Does this text begin like a cascade, or with the name of a preset that is one? */
int ry_is_cascade(const char *text);

#endif
