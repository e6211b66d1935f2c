/* policy_values.h - reads the value of one key of a policy. The key must have one. Errors are
 * RENYI_ERR_ARG and say what the value must be.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_POLICY_VALUES_H
#define RY_POLICY_VALUES_H

#include "prune/policy/policy_reader.h"

enum { RY_MAX_COUNT = 999999 }; /* of any number that counts something */

/* The error of a value, or of one item of it. */
renyi_status ry_value_bad(ry_key key, const ry_slice *item, renyi_error *err) RENYI_CHECK;

/* A key whose value is one name of its table. */
renyi_status ry_value_word(const ry_key_values *w, ry_key key, int *out,
                           renyi_error *err) RENYI_CHECK;

/* A decimal from `low` to `high`; n may be "inf". */
renyi_status ry_value_number(const ry_key_values *w, ry_key key, double low, double high,
                             double *out, renyi_error *err) RENYI_CHECK;

/* A whole number from `least` on. */
renyi_status ry_value_count(const ry_key_values *w, ry_key key, uint64_t least, uint32_t *out,
                            renyi_error *err) RENYI_CHECK;

/* ---- for policy_lm.c ------------------------------------------------------------------------- */

/* policy_parse.c: layers and budgets into p->cuts, in the order of the layers. */
renyi_status ry_policy_read_cuts(ry_policy *p, const ry_key_values *w,
                                 renyi_error *err) RENYI_CHECK;
/* An error if the user gave a key that the metric does not use. */
renyi_status ry_policy_check_keys(const ry_policy *p, const ry_key_values *w,
                                  renyi_error *err) RENYI_CHECK;

/* policy_check.c: places of a model with so many blocks, for layers=.../12 and layers=all. Layers
 * that the model lacks are an error, but not those of a language model. */
renyi_status ry_policy_resolve_layers(ry_policy *p, uint32_t n_blocks,
                                      renyi_error *err) RENYI_CHECK;

/* policy_lm.c: a rule inside the language model. */
renyi_status ry_policy_read_lm(ry_policy *p, const ry_key_values *w, renyi_error *err) RENYI_CHECK;
renyi_status ry_policy_check_lm(ry_policy *p, const ry_policy_shape *s,
                                renyi_error *err) RENYI_CHECK;

#endif
