/* collections.h - data sets that are known by name: where people have their photos, what their
 * classes are called, how a class name becomes a sentence, and what TCA uses for them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The fifteen that CLIP and TCA are tested on: ImageNet, -A, -R, -Sketch and -V2, Caltech101,
 * Pets, Cars, Flowers, Food101, Aircraft, SUN397, DTD, EuroSAT, UCF101. Zero-shot classification of
 * one of them, or of any folder of folders:
 *
 *   renyi_dataset_open with collection or own_classes -> renyi_dataset_names, renyi_templates_open
 *   -> a text classifier (clip.h) -> renyi_eval_new
 *
 * The rest is as in renyi.h.
 */
#ifndef RENYI_COLLECTIONS_H
#define RENYI_COLLECTIONS_H

#include "renyi/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- data sets ----------------------------------------------------------------------------- */

/* How photos and classes are stored. */
typedef enum renyi_layout {
    RENYI_LAYOUT_IMAGENET = 0, /* a folder a class, named by WordNet id or by index of the 1000 */
    RENYI_LAYOUT_SPLIT = 1,   /* CoOp's JSON: {"train", "val", "test": [[photo, class, name]...]} */
    RENYI_LAYOUT_VARIANTS = 2 /* FGVC-Aircraft's lists of variants */
} renyi_layout;

#define RENYI_COLLECTION_TEXT 96 /* bytes of a text in renyi_collection, with its NUL */

typedef struct renyi_collection {
    char name[RENYI_COLLECTION_TEXT];    /* "pets" */
    char title[RENYI_COLLECTION_TEXT];   /* "Oxford Pets" */
    char aliases[RENYI_COLLECTION_TEXT]; /* other words for it, blanks between */
    renyi_layout layout;
    uint32_t n_classes;                    /* of the whole data set */
    uint32_t is_subset;                    /* 1 = some of ImageNet's 1000: those with a folder */
    char folder[RENYI_COLLECTION_TEXT];    /* what CoOp calls its folder: "oxford_pets" */
    char photos[RENYI_COLLECTION_TEXT];    /* where photos may be in it, first choice first, blanks
                                              between; "." = the folder itself */
    char list[RENYI_COLLECTION_TEXT];      /* name of the split file; "" = none */
    char templates[RENYI_COLLECTION_TEXT]; /* for renyi_templates_open */
    /* TCA: items of the reservoir a class, scale of the layer weights, lambda and beta of the
     * correction of the logits */
    uint32_t tca_size;
    double tca_scale, tca_lambda, tca_beta;
} renyi_collection;

RENYI_API size_t renyi_collection_count(void);
RENYI_API void renyi_collection_get(size_t i, renyi_collection *out);
/* By name, title, alias or CoOp's folder; case, '-', '_' and blanks do not matter. RENYI_ERR_ARG:
 * none of them, and the nearest or all names. */
RENYI_API RENYI_CHECK renyi_status renyi_collection_find(const char *word, renyi_collection *out,
                                                         renyi_error *err);

/* ImageNet's names of class i of its 1000, synonyms divided by ", "; NULL from 1000 on. Static. */
RENYI_API const char *renyi_imagenet_name(uint32_t i);

/* ---- templates ----------------------------------------------------------------------------- */

/* Sentences with "{}" where the name of the class goes; immutable. */
typedef struct renyi_templates renyi_templates;

/* `word`: the name of a list inside the library ("imagenet80", "simple", a collection's), a
 * sentence with "{}", or a file with one sentence a line (empty lines and lines that begin with '#'
 * are passed over). Each has exactly one "{}". A file has at most 1 MiB, 1000 sentences, 1024 bytes
 * a line. Of opt only the allocator is used. On success *out is owned by the caller
 * (renyi_templates_free). */
RENYI_API RENYI_CHECK renyi_status renyi_templates_open(renyi_templates **out, const char *word,
                                                        const renyi_options *opt, renyi_error *err);
RENYI_API void renyi_templates_free(renyi_templates *t);

/* [*count] sentences, at least one. Borrowed until renyi_templates_free. */
RENYI_API const char *const *renyi_templates_texts(const renyi_templates *t, uint32_t *count);
/* As it was asked for. Borrowed. */
RENYI_API const char *renyi_templates_name(const renyi_templates *t);

/* Names of the lists inside the library. Static strings. */
RENYI_API size_t renyi_templates_builtin_count(void);
RENYI_API const char *renyi_templates_builtin_name(size_t i);

#ifdef __cplusplus
}
#endif
#endif
