/* grid.h - the state of a grid (renyi_grid), and how a policy text with alternatives becomes
 * policies.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_GRID_H
#define RY_GRID_H

#include "eval/data/text_lines.h"
#include "prune/policy/policy_keys.h"
#include "renyi/sweep.h"

enum {
    RY_GRID_MODELS = 256,
    RY_GRID_SIZES = 64,
    RY_GRID_DTYPES = 8,
    RY_GRID_POLICIES = 4096, /* combinations, before equal ones are removed */
    RY_GRID_WORDS = 32       /* of a policy text */
};

struct renyi_grid {
    renyi_allocator al;
    ry_pool pool;
    const ry_own_rules *own; /* of renyi_grid_options.rules_of, while it is read; NULL = none */
    uint32_t n_models, n_sizes, n_dtypes, n_policies;
    uint32_t n_combinations; /* tried so far */
    const char *models[RY_GRID_MODELS];
    uint32_t sizes[RY_GRID_SIZES];
    renyi_dtype dtypes[RY_GRID_DTYPES];
    const char *policies[RY_GRID_POLICIES];
};

/* One word of a policy text: "keep=0.5|0.7", or "fuse|drop" without a name. */
typedef struct ry_grid_word {
    ry_text name, values; /* values: alternatives, separated by '|' */
    ry_key key;           /* RY_N_KEYS = not a key of the policy grammar */
    int is_used;          /* by at least one combination */
} ry_grid_word;

/* ---- grid.c -------------------------------------------------------------------------------- */

/* Cuts the next word off *rest; empty at the end. Blanks in parentheses are part of a word. */
ry_text ry_grid_next_word(ry_text *rest);

/* The number of alternatives in "a|b|c", and the i-th of them. */
size_t ry_grid_alternatives(ry_text values);
ry_text ry_grid_alternative(ry_text values, size_t i);

/* Key of the policy grammar with this name; RY_N_KEYS = none. */
ry_key ry_grid_key(ry_text name);

/* Adds every combination of `rule` (the name of a rule or preset) with those words that it takes.
 */
renyi_status ry_grid_expand(renyi_grid *g, ry_text rule, ry_grid_word *words, size_t n_words,
                            renyi_error *err) RENYI_CHECK;

/* Adds the policies of a whole policy text with alternatives, also for the rule. */
renyi_status ry_grid_policy(renyi_grid *g, ry_text text, renyi_error *err) RENYI_CHECK;

/* ---- grid_spec.c --------------------------------------------------------------------------- */

/* Fills the lists of a grid from the options and the bytes of a file; `name` is for messages. bytes
 * NULL = no file. */
renyi_status ry_grid_read(renyi_grid *g, const renyi_grid_options *o, const char *name,
                          const void *bytes, size_t size, renyi_error *err) RENYI_CHECK;

#endif
