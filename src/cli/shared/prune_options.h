/* prune_options.h - the pruning options that verbs share, and the policy texts they mean.
 * SPDX-License-Identifier: Apache-2.0
 *
 * --prune takes a policy text, the name of a preset, or a rule alone. The other options (--keep,
 * --layers, ...) have the names of the keys of a policy: they are appended to the text, and only
 * the library parses the result.
 */
#ifndef RENYI_PRUNE_OPTIONS_H
#define RENYI_PRUNE_OPTIONS_H

#include "cli/kit/options.h"

#include "renyi/renyi.h"

typedef struct prune_options {
    cli_strings policies; /* each --prune */
    const char *keep, *layers, *metric, *n, *c, *p, *r, *tokens;
    int fuse;
} prune_options;

/* The rows of an option table that fill `o`, a prune_options *. */
/* clang-format off */
#define PRUNE_OPTION_ROWS(o) \
    {"prune", 0, OPTION_STRINGS, &(o)->policies, "POLICY", \
     "drop tokens by a policy, preset or rule ('renyi policies')", 0, 0}, \
    {"keep", 0, OPTION_STRING, &(o)->keep, "R", \
     "share of the patch tokens KEPT by each cut, 0 < R <= 1", 0, 0}, \
    {"tokens", 0, OPTION_STRING, &(o)->tokens, "N", \
     "patch tokens KEPT by each cut, as a number", 0, 0}, \
    {"p", 'p', OPTION_STRING, &(o)->p, "N", \
     "patch tokens REMOVED by each cut; alone: naive", 0, 0}, \
    {"r", 0, OPTION_STRING, &(o)->r, "N", \
     "tokens REMOVED by merging in each block; alone: tome", 0, 0}, \
    {"layers", 0, OPTION_STRING, &(o)->layers, "L,...", \
     "blocks that cut, from 0: 3,6,9 or '(3, 6, 9)'", 0, 0}, \
    {"metric", 0, OPTION_STRING, &(o)->metric, "M", \
     "what ranks the tokens: cls, col, correct, ...", 0, 0}, \
    {"n", 0, OPTION_STRING, &(o)->n, "N", \
     "order of the column norm, N >= 1 or inf", 0, 0}, \
    {"c", 0, OPTION_STRING, &(o)->c, "C", \
     "share of the kept that the column norm chooses, 0 to 1 (metric=correct)", 0, 0}, \
    {"fuse", 0, OPTION_FLAG, &(o)->fuse, "", \
     "fuse the removed tokens into one", 0, 0}
/* clang-format on */

/* The policies of the command line, as typed, into the empty list `texts`: every --prune with the
 * other options appended; without --prune, the rule that those options belong to; "none" without
 * any. Each is parsed here, so that wrong usage shows before a model is loaded. CLI_OK, or another
 * exit code after reporting. */
int prune_policies(const char *verb, const prune_options *o, cli_strings *texts);

/* The same for verbs with one policy; *text is owned. */
int prune_policy(const char *verb, const prune_options *o, char **text);

/* The policy in full, with every default; `full` may be NULL. With a model its layers and counts
 * are checked, too. CLI_OK; CLI_USAGE or CLI_FAILED after reporting. */
int prune_check(const char *verb, const char *text, const renyi_model *model, char *full);
/* Reports an error of the library that a policy caused; returns the exit code. */
int prune_error(const char *verb, const char *text, const renyi_error *err);
void prune_options_free(prune_options *o);

#endif
