/* policy_keys.h - the rules, keys and values of the policy grammar in tables, which parsing,
 * printing and error messages share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_POLICY_KEYS_H
#define RY_POLICY_KEYS_H

#include "prune/policy/policy_spec.h"

/* In the order in which a policy is printed. */
typedef enum ry_key {
    RY_KEY_KEEP, /* the first five are budgets: a policy has one of them */
    RY_KEY_P,
    RY_KEY_TOKENS,
    RY_KEY_R,
    RY_KEY_DROP,
    RY_KEY_INFLECTION,
    RY_KEY_PLUS,
    RY_KEY_IMPORTANT,
    RY_KEY_CONTEXTUAL,
    RY_KEY_CLASS_TOKEN,
    RY_KEY_ANCHORS,
    RY_KEY_BLOCK,
    RY_KEY_LAYERS,
    RY_KEY_LAYER,
    RY_KEY_ALPHA,
    RY_KEY_OMEGA,
    RY_KEY_BETA,
    RY_KEY_MEMORY,
    RY_KEY_LENGTH,
    RY_KEY_COL,
    RY_KEY_TEMPERATURE,
    RY_KEY_LIKENESS,
    RY_KEY_METRIC,
    RY_KEY_N,
    RY_KEY_ROWS,
    RY_KEY_C,
    RY_KEY_ROUNDING,
    RY_KEY_HEADS,
    RY_KEY_CLASS_ROW,
    RY_KEY_REGISTERS,
    RY_KEY_DIAGONAL,
    RY_KEY_SEED,
    RY_KEY_REDUCE,
    RY_KEY_WEIGHTS,
    RY_KEY_AT,
    RY_KEY_ORDER,
    RY_KEY_START,
    RY_KEY_LEVELS,
    RY_KEY_NEIGHBOURS,
    RY_KEY_ROUND,
    RY_KEY_RESIDUAL,
    RY_KEY_BUDGET, /* the next two: base and tiles of a LLaVA-NeXT */
    RY_KEY_NEWLINES,
    RY_KEY_PIVOTS,
    RY_KEY_TEXT_PIVOTS,
    RY_KEY_RECYCLE,
    RY_KEY_MEMBERS,
    RY_KEY_POSITIONS,
    RY_N_KEYS
} ry_key;

/* residual=auto is replaced when read: position with metric=correct, else score. */
enum { RY_RESIDUAL_AUTO = 2 };

typedef struct ry_name {
    const char *name;
    int value;
} ry_name;

typedef struct ry_key_info {
    const char *name;
    uint32_t rules;       /* bit 1 << ry_rule for each rule that takes the key */
    uint32_t metrics;     /* bit 1 << ry_metric for each metric that uses it; 0 = any */
    const ry_name *names; /* the values, if they are names; ends with a NULL name */
    const char *takes;    /* what the value must be, for messages */
} ry_key_info;

extern const ry_key_info ry_keys[RY_N_KEYS];
extern const ry_name ry_rule_names[]; /* ends with a NULL name */

static inline int ry_key_is_budget(ry_key k) { return k <= RY_KEY_DROP; }
static inline int ry_key_for_rule(ry_key k, ry_rule r) { return (int)(ry_keys[k].rules >> r & 1u); }
static inline int ry_key_for_metric(ry_key k, ry_metric m)
{
    return !ry_keys[k].metrics || (ry_keys[k].metrics >> m & 1u);
}

/* Does this policy use the key, which its rule takes? */
static inline int ry_key_is_used(ry_key k, const ry_policy *p)
{
    if (k == RY_KEY_N && p->own) return ry_policy_own_needs(p, RENYI_NEED_COLUMNS);
    return ry_key_for_metric(k, p->metric);
}

/* The entry with this name, or NULL; `word` need not end with a NUL. */
const ry_name *ry_name_find(const ry_name *names, const char *word, size_t len);

/* The name of a value; never NULL for a value of the table. */
const char *ry_name_of(const ry_name *names, int value);

/* Adds ", name" to a list, cut off at `size`. */
void ry_name_add(char *out, size_t size, const char *name);

/* "cls, col, correct" of the entries whose bit is in `mask`, cut off at `size`. */
void ry_name_list(char *out, size_t size, const ry_name *names, uint32_t mask);

/* The name of a policy's rule; own: the caller's, or NULL. */
const char *ry_rule_name(ry_rule rule, const ry_own_rule *own);

/* "keep, tokens, layers, ..." that a rule takes. */
void ry_key_list(char *out, size_t size, ry_rule rule);

/* Finds the name that a misspelt word probably means: offer all candidates, then read the hint. */
typedef struct ry_nearest {
    const char *best;
    size_t distance;
    char hint[64];
} ry_nearest;
void ry_nearest_offer(ry_nearest *n, const char *word, size_t len, const char *candidate);

/* " (did you mean keep?)", or "" when no candidate is close. */
const char *ry_nearest_hint(ry_nearest *n);

#endif
