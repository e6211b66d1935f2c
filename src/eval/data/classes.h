/* classes.h - finds the class that a text names: by index, by WordNet id, or by a name from the
 * model or a class map file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CLASSES_H
#define RY_CLASSES_H

#include "engine/core/imagenet.h"
#include "eval/data/text_lines.h"
#include "renyi/eval.h"

/* A name in folded form: lower case, '_' as ' '. */
typedef struct ry_class_name {
    ry_text name;   /* in the pool */
    uint32_t index; /* RENYI_NO_CLASS: two classes have this name */
} ry_class_name;

/* In byte order, once sorted. */
typedef struct ry_class_names {
    ry_class_name *items;
    size_t count, capacity;
} ry_class_names;

typedef struct ry_classes {
    const renyi_allocator *al;
    ry_pool pool;
    uint32_t n;              /* classes of the model */
    ry_class_names map, own; /* of the class map; of the model */
} ry_classes;

/* m may be NULL. A zeroed ry_classes may be freed. */
renyi_status ry_classes_open(ry_classes *c, uint32_t n_classes, const renyi_model *m,
                             const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_classes_free(ry_classes *c);

/* Adds the class map in `bytes`: every form that renyi_dataset_options.class_map describes, and the
 * "n02119789 1 kit_fox" lines of ILSVRC's devkit. `file` names it in messages. */
renyi_status ry_classes_map(ry_classes *c, const char *file, const void *bytes, size_t size,
                            renyi_error *err) RENYI_CHECK;

/* Looks in the map first, then tries index, WordNet id (if there are 1000 classes) and name.
 * RENYI_CLASS_UNKNOWN = not found; else *out < c->n. */
renyi_class_rule ry_classes_find(const ry_classes *c, ry_text text, uint32_t *out);

/* Adds a name to c->map or c->own. Names can be found after ry_class_names_sort. */
renyi_status ry_class_names_add(ry_classes *c, ry_class_names *names, ry_text name, uint32_t index,
                                renyi_error *err) RENYI_CHECK;
void ry_class_names_sort(ry_class_names *names);

/* The place of `class` in sorted[n], ascending; RENYI_NO_CLASS = it is not there. */
uint32_t ry_class_search(const uint32_t *sorted, uint32_t n, uint32_t class);
void ry_class_sort(uint32_t *classes, size_t n); /* ascending */

/* The error for a model that has embeddings only; says what to use instead. */
renyi_status ry_no_classifier(const renyi_model_info *info, renyi_error *err);

/* Index of a WordNet id among ImageNet's 1000, or RENYI_NO_CLASS. */
static inline uint32_t ry_imagenet_index(ry_text wnid) { return ry_imagenet_find(wnid.at, wnid.n); }

#endif
