/* policy_values.h - from the words of a policy to values: what is read alike for every rule.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_POLICY_VALUES_H
#define RY_POLICY_VALUES_H

#include "prune/policy/policy_reader.h"

enum { RY_MAX_COUNT = 999999 };

/* "keep=2: keep is the share ..." */
renyi_status ry_value_bad(ry_key key, const ry_slice *item, renyi_error *err);

/* A key whose value is one word of its table. */
renyi_status ry_value_word(const ry_words *w, ry_key key, int *out, renyi_error *err) RENYI_CHECK;

renyi_status ry_value_number(const ry_words *w, ry_key key, double low, double high, double *out,
                             renyi_error *err) RENYI_CHECK;

/* Keys of the user that the metric or the reduction has no use for are an error. */
renyi_status ry_values_used(const ry_policy *p, const ry_words *w, renyi_error *err) RENYI_CHECK;

/* The words of a rule that acts behind the tower (policy_visual.c). */
renyi_status ry_policy_read_visual(ry_policy *p, const ry_words *w, renyi_error *err) RENYI_CHECK;

#endif
