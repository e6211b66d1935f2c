/* rule_list.h - rules of the caller's own: the list that a model holds and that policies are read
 * with.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RULE_LIST_H
#define RY_RULE_LIST_H

#include "renyi/renyi.h"

enum { RY_OWN_NAME = 32, RY_MAX_OWN_RULES = 64 };

/* Never moves, so policies and sessions point to it. */
typedef struct ry_own_rule {
    renyi_rule rule; /* its name is `name`, its order never 0 */
    const struct ry_own_rule *next;
    char name[RY_OWN_NAME + 1];
} ry_own_rule;

/* A zeroed struct is an empty list. */
typedef struct ry_own_rules {
    const ry_own_rule *first;
    const ry_own_rule *borrowed; /* from here on the rules belong to another list; NULL = to none */
    uint32_t count;
} ry_own_rules;

/* Checks a rule and adds a copy. */
renyi_status ry_own_rules_add(ry_own_rules *list, const renyi_rule *rule, const renyi_allocator *al,
                              renyi_error *err) RENYI_CHECK;
void ry_own_rules_free(ry_own_rules *list, const renyi_allocator *al);

/* A list that begins with the rules of `from`, which must outlive it. */
ry_own_rules ry_own_rules_borrow(const ry_own_rules *from);

/* The rule of this name, or NULL; `word` need not end with a NUL. list may be NULL. */
const ry_own_rule *ry_own_rules_find(const ry_own_rules *list, const char *word, size_t len);

#endif
