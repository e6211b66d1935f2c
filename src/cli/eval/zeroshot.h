/* zeroshot.h - zero-shot classification with a CLIP model: its classes, and --adapt.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_ZEROSHOT_H
#define RENYI_ZEROSHOT_H

#include "cli/kit/options.h"
#include "cli/shared/models.h"

#include "renyi/clip.h"
#include "renyi/eval.h"
#include <jansson.h>

/* ---- classes (zeroshot_classes.c) ---------------------------------------------------------- */

typedef struct zeroshot_arguments {
    const char *collection, *class_names, *cache;
    cli_strings templates; /* as given; none = the dataset's, or "simple" */
    text_arguments text;
} zeroshot_arguments;

/* Rows of an option table that fill `z`, a zeroshot_arguments *. */
/* clang-format off */
#define ZEROSHOT_OPTION_ROWS(z) \
    {"templates", 0, OPTION_STRINGS, &(z)->templates, "NAME|FILE|TEXT", "sentences with {} for the class: imagenet80, a file, 'a {}.'; may be repeated", 0, 0}, \
    {"collection", 0, OPTION_STRING, &(z)->collection, "NAME", "which dataset DIR is: pets, ..., or none (by DIR's name or its split)", 0, 0}, \
    {"class-names", 0, OPTION_STRING, &(z)->class_names, "FILE", "names, one per line; of ImageNet also clip or wordnet (the dataset's)", 0, 0}, \
    TEXT_OPTION_ROWS(&(z)->text), \
    {"cache", 0, OPTION_STRING, &(z)->cache, "FILE|DIR|none", "where the embeddings of the classes are kept (the user's cache folder)", 0, 0}
/* clang-format on */

void zeroshot_arguments_free(zeroshot_arguments *z);

/* The class names of a dataset and the sentences that they are put into. */
typedef struct zeroshot_classes {
    renyi_dataset_info data;
    const char *const *names; /* [n_classes] the dataset's */
    uint32_t n_classes;
    cli_strings sentences; /* each with {} */
    char *title;           /* of the templates: "imagenet80"; owned */
    char *condition;       /* names and sentences as one text, for logs; owned */
    int is_sigmoid;        /* of the text tower (renyi_text_info); set by zeroshot_model */
} zeroshot_classes;

/* Checks the options before anything is opened. Returns an exit code. */
int zeroshot_check(const char *verb, const zeroshot_arguments *z);
/* Sets what they mean for renyi_dataset_open. */
void zeroshot_data_options(const zeroshot_arguments *z, renyi_dataset_options *o);
/* Returns an exit code; zeroshot_classes_free either way. Borrows from data. */
int zeroshot_classes_make(zeroshot_classes *out, const char *verb, const zeroshot_arguments *z,
                          const renyi_dataset *data);
/* The same for any list of names, which must outlive it. */
int zeroshot_classes_take(zeroshot_classes *out, const char *verb, const zeroshot_arguments *z,
                          const cli_strings *names);
void zeroshot_classes_free(zeroshot_classes *c);

/* One embedding per class from the text tower of `model`, or from the cache. NULL after reporting.
 */
renyi_classifier *zeroshot_classifier(const char *model, const zeroshot_arguments *z,
                                      const zeroshot_classes *classes, const renyi_options *opt,
                                      uint64_t threads);
/* The head that a classifier means: with a softmax, or with sigmoids. names: [n_classes] */
renyi_status zeroshot_head(renyi_model **out, const renyi_model *tower, const renyi_classifier *c,
                           const char *const *names, renyi_error *err);

/* The image tower with the classifier as its head. *out borrows the tower. Returns an exit code. */
int zeroshot_model(renyi_model **out, const renyi_model *tower, const renyi_classifier *c,
                   zeroshot_classes *classes);

/* ---- --adapt: policies that learn from the images they see (zeroshot_adapt.c) -------------- */

typedef struct adapt_arguments {
    const char *text;  /* "tca size=3 ..."; NULL = nothing adapts */
    const char *state; /* file that it is loaded from, if it exists, and saved to */
    int in_order;      /* images as they are listed, not shuffled */
} adapt_arguments;

/* Rows of an option table that fill `a`, an adapt_arguments *. */
/* clang-format off */
#define ADAPT_OPTION_ROWS(a) \
    {"adapt", 0, OPTION_STRING, &(a)->text, "tca", "learn from the images, without labels: 'tca size=3 scale=0.1 lambda=3 beta=5'", 0, 0}, \
    {"adapt-state", 0, OPTION_STRING, &(a)->state, "FILE", "load what was learned from FILE, if it exists, and save it there", 0, 0}, \
    {"in-order", 0, OPTION_FLAG, &(a)->in_order, "", "with --adapt: images as they are listed (--no-shuffle)", 0, 0}
/* clang-format on */

/* One renyi_tca for every policy except "none", which stays for comparison. */
typedef struct adaptation {
    const adapt_arguments *a;
    renyi_tca_options o;
    renyi_tca **items; /* [n] by policy; NULL where nothing adapts */
    uint32_t n;
    char *condition; /* its parameters as a text, for logs; owned */
} adaptation;

int adapt_is_on(const adapt_arguments *a);

/* Checks the options by themselves. Returns an exit code. */
int adapt_check(const char *verb, const adapt_arguments *a);

/* For the policies of a model. Parameters come from the options, else from the dataset
 * (collection; NULL = none), else from the library. Returns an exit code; adapt_free either way. */
int adapt_open(adaptation *out, const char *verb, const adapt_arguments *a, const char *collection,
               const renyi_model *model, const cli_strings *policies);
/* Saves the state after a run, with --adapt-state. Returns an exit code. */
int adapt_save(const adaptation *t);
void adapt_free(adaptation *t);

/* What it did: as text on stdout, and added to the objects of `results`, one per policy. */
void adapt_table(const adaptation *t);
void adapt_results(const adaptation *t, json_t *results);

#endif
