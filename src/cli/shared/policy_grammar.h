/* policy_grammar.h - the rules and keys of a policy text in a few words each, for people.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The library alone reads policies; tests/cli/prune.sh checks that every key it prints is here.
 */
#ifndef RENYI_POLICY_GRAMMAR_H
#define RENYI_POLICY_GRAMMAR_H

typedef struct policy_word {
    const char *name, *takes, *about;
} policy_word;

extern const policy_word policy_rules[]; /* ends with a NULL name; `takes` unused */
extern const policy_word policy_keys[];  /* ends with a NULL name */

#endif
