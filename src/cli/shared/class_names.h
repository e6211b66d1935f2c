/* class_names.h - the name of each class of a model.
 * SPDX-License-Identifier: Apache-2.0
 *
 * From --labels FILE, else from the model's own config, else ImageNet's when it has 1000 classes,
 * else "class N". Where a config has WordNet ids, ImageNet's names of them.
 */
#ifndef RENYI_CLASS_NAMES_H
#define RENYI_CLASS_NAMES_H

#include "cli/kit/cli.h"

#include "renyi/renyi.h"

typedef struct class_names {
    const renyi_model *model;
    uint32_t n_classes;
    cli_strings lines; /* of the file; empty without one */
    int use_imagenet;
    char fallback[32];
} class_names;

/* 0, or -1 after saying what is wrong with the file. */
int class_names_open(class_names *out, const renyi_model *model, const char *path);
const char *class_name(class_names *l, uint32_t index); /* valid until the next call */
void class_names_free(class_names *l);

#endif
