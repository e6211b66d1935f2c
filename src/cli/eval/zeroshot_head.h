/* zeroshot_head.h - from a CLIP and a data set to a classifier: the words of the command line, the
 * sentences they mean, and the model that answers with logits.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_ZEROSHOT_HEAD_H
#define RENYI_ZEROSHOT_HEAD_H

#include "cli/shared/models.h"

#include "renyi/eval.h"

typedef struct zeroshot_arguments {
    const char *collection, *class_names, *cache;
    cli_strings templates; /* as given; none = the data set's, or "simple" */
    text_arguments text;
} zeroshot_arguments;

/* Rows of an option table that fill `z`, a zeroshot_arguments *. */
/* clang-format off */
#define ZEROSHOT_OPTION_ROWS(z) \
    {"templates", 0, OPTION_STRINGS, &(z)->templates, "NAME|FILE|TEXT", "sentences with {} for the class: imagenet80, a file, 'a {}.'; again for more", 0, 0}, \
    {"collection", 0, OPTION_STRING, &(z)->collection, "NAME", "data set that DIR is: pets, ..., or none (by DIR's name or its split)", 0, 0}, \
    {"class-names", 0, OPTION_STRING, &(z)->class_names, "FILE", "names of the classes, one a line, or 'n01440764 tench' (the data set's)", 0, 0}, \
    TEXT_OPTION_ROWS(&(z)->text), \
    {"cache", 0, OPTION_STRING, &(z)->cache, "FILE|DIR|none", "where rows of classes are kept (the user's cache folder)", 0, 0}
/* clang-format on */

void zeroshot_arguments_free(zeroshot_arguments *z);

/* What classes are called and how they are put, whatever the model. */
typedef struct zeroshot_words {
    renyi_dataset_info data;
    const char *const *names; /* [n_classes] the data set's */
    uint32_t n_classes;
    cli_strings sentences; /* each with {} */
    char *title;           /* of the templates: "imagenet80"; owned */
    char *condition;       /* names and sentences as one text, for logs; owned */
} zeroshot_words;

/* Faults of the words alone, before anything is opened: an exit code. */
int zeroshot_check(const char *verb, const zeroshot_arguments *z);
/* What they mean for renyi_dataset_open. */
void zeroshot_data_options(const zeroshot_arguments *z, renyi_dataset_options *o);
/* Of a data set that was opened so, which must outlive it. An exit code; zeroshot_words_free either
 * way. */
int zeroshot_words_make(zeroshot_words *out, const char *verb, const zeroshot_arguments *z,
                        const renyi_dataset *data);
void zeroshot_words_free(zeroshot_words *w);

/* The rows of the classes for the text tower of `model`, from the cache if they are there. NULL
 * after reporting. */
renyi_classifier *zeroshot_classifier(const char *model, const zeroshot_arguments *z,
                                      const zeroshot_words *w, const renyi_options *opt,
                                      uint64_t threads);
/* The tower with these rows as its head: *out borrows it. An exit code. */
int zeroshot_model(renyi_model **out, const renyi_model *tower, const renyi_classifier *c,
                   const zeroshot_words *w);

#endif
