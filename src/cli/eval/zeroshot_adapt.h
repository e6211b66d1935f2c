/* zeroshot_adapt.h - --adapt: policies that learn from the photos on the way (TCA).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_ZEROSHOT_ADAPT_H
#define RENYI_ZEROSHOT_ADAPT_H

#include "cli/kit/options.h"

#include "renyi/clip.h"
#include "renyi/eval.h"
#include <jansson.h>

typedef struct adapt_arguments {
    const char *text;  /* "tca size=3 ..."; NULL = nothing adapts */
    const char *state; /* file that it is loaded from, if it is there, and saved to */
    int in_order;      /* photos as they are listed, not shuffled */
} adapt_arguments;

/* Rows of an option table that fill `a`, an adapt_arguments *. */
/* clang-format off */
#define ADAPT_OPTION_ROWS(a) \
    {"adapt", 0, OPTION_STRING, &(a)->text, "tca", "learn on the way, without labels: 'tca size=3 scale=0.1 lambda=3 beta=5'", 0, 0}, \
    {"adapt-state", 0, OPTION_STRING, &(a)->state, "FILE", "what was learnt: go on from FILE, if it is there, and write it", 0, 0}, \
    {"in-order", 0, OPTION_FLAG, &(a)->in_order, "", "with --adapt: photos as they are listed, not shuffled", 0, 0}
/* clang-format on */

/* What adapts: one renyi_tca for every policy but "none", which stays for comparison. */
typedef struct adaptation {
    const adapt_arguments *a;
    renyi_tca_options o;
    renyi_tca **items; /* [n] by policy; NULL where nothing adapts */
    uint32_t n;
    char *condition; /* its parameters as a text, for logs; owned */
} adaptation;

int adapt_is_on(const adapt_arguments *a);

/* The words alone: an exit code. */
int adapt_check(const char *verb, const adapt_arguments *a);

/* Parameters of the words, else of the data set (collection; NULL = none), else the library's; for
 * the policies of a model. An exit code; adapt_free either way. */
int adapt_open(adaptation *out, const char *verb, const adapt_arguments *a, const char *collection,
               const renyi_model *model, const cli_strings *policies);
/* The state after a run, if it is to be kept. An exit code. */
int adapt_save(const adaptation *t);
void adapt_free(adaptation *t);

/* What it did, for people, and into the policies' objects of `results`. */
void adapt_table(const adaptation *t);
void adapt_results(const adaptation *t, json_t *results);

#endif
