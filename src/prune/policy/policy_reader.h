/* policy_reader.h - a policy text split into its rule and the value of each key. Checks which
 * keys exist and which exclude each other, not what values mean.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_POLICY_READER_H
#define RY_POLICY_READER_H

#include "prune/policy/policy_keys.h"

/* Where a value comes from; a higher one overrides a lower one. */
typedef enum ry_origin { RY_FROM_DEFAULT, RY_FROM_PRESET, RY_FROM_USER } ry_origin;

/* Part of the text; not ended by a NUL. */
typedef struct ry_slice {
    const char *at; /* NULL = not given */
    size_t len;
    int64_t offset; /* in the text of the user */
} ry_slice;

typedef struct ry_key_values {
    ry_rule rule;
    const ry_own_rule *own; /* the caller's own rule, or NULL */
    struct {
        ry_slice value;
        ry_origin origin;
    } given[RY_N_KEYS];
} ry_key_values;

/* Every key that the rule takes has a value afterwards, except all but one of the budgets. own:
 * further rules, of a model; NULL = no model. */
renyi_status ry_key_values_read(ry_key_values *out, const char *text, const ry_own_rules *own,
                                renyi_error *err) RENYI_CHECK;

static inline const ry_slice *ry_key_value(const ry_key_values *w, ry_key k)
{
    return w->given[k].value.at ? &w->given[k].value : NULL;
}

/* The items of "a,b" or "(a, b)"; RENYI_ERR_ARG for none, an empty one or more than RY_MAX_CUTS. */
typedef struct ry_items {
    size_t count;
    ry_slice item[RY_MAX_CUTS];
} ry_items;
renyi_status ry_items_read(ry_items *out, ry_key key, const ry_slice *value,
                           renyi_error *err) RENYI_CHECK;

/* A slice in a message: "%.*s" with RY_SHOW(slice); long ones are cut. */
#define RY_SHOW(s) (int)((s)->len < 40 ? (s)->len : 40), (s)->at

#endif
