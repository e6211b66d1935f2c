/* classes.h - which class a word means: an index, a WordNet id, a name of the model or of a class
 * map file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CLASSES_H
#define RY_CLASSES_H

#include "eval/data/text_lines.h"
#include "renyi/eval.h"

enum { RY_IMAGENET_CLASSES = 1000 };

/* Names in byte order of their folded form (lower case, '_' as ' '). */
typedef struct ry_class_name {
    ry_text name;   /* folded; in the pool */
    uint32_t index; /* RENYI_NO_CLASS: two classes have this name */
} ry_class_name;

typedef struct ry_class_names {
    ry_class_name *items;
    size_t count, capacity;
} ry_class_names;

typedef struct ry_classes {
    const renyi_allocator *al;
    ry_pool pool;
    uint32_t n;              /* classes of the model */
    ry_class_names map, own; /* of the class map, of the model */
} ry_classes;

/* m may be NULL. A zeroed ry_classes may be freed. */
renyi_status ry_classes_open(ry_classes *c, uint32_t n_classes, const renyi_model *m,
                             const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_classes_free(ry_classes *c);

/* The error of a model that has embeddings only, where classes are wanted: what to use instead. */
renyi_status ry_no_classifier(const renyi_model_info *info, renyi_error *err);

/* Add the class map in `bytes`; every form that renyi_dataset_options.class_map describes, and the
 * "n02119789 1 kit_fox" lines of ILSVRC's own devkit. `file` names it in messages. */
renyi_status ry_classes_map(ry_classes *c, const char *file, const void *bytes, size_t size,
                            renyi_error *err) RENYI_CHECK;

/* RENYI_CLASS_UNKNOWN if no rule knows the word. The map is asked first, then index, WordNet id
 * (of 1000 classes), name. *out < c->n. */
renyi_class_rule ry_classes_find(const ry_classes *c, ry_text word, uint32_t *out);

/* Index of a WordNet id among ImageNet's 1000, or RENYI_NO_CLASS. imagenet_wnids_tables.c */
uint32_t ry_imagenet_index(ry_text wnid);

/* For class_map.c: add a name; ry_class_names_sort makes them ready for finding. */
renyi_status ry_class_names_add(ry_classes *c, ry_class_names *names, ry_text name, uint32_t index,
                                renyi_error *err) RENYI_CHECK;
void ry_class_names_sort(ry_class_names *names);

#endif
