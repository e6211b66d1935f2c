/* imagenet.h - the 1000 classes of ImageNet-1k: what a model with 1000 classes and no names of its
 * own is taken to know.
 *
 * The names are those of renyi_imagenet_name (renyi/eval.h), which imagenet_names_tables.c has.
 * They belong to the engine because renyi_model_label returns them; datasets find classes by them,
 * too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_IMAGENET_H
#define RY_IMAGENET_H

#include <stddef.h>
#include <stdint.h>

enum { RY_IMAGENET_CLASSES = 1000 };

/* Class of the WordNet id of `length` bytes at `wnid` ("n01440764" is class 0), or UINT32_MAX,
 * which is RENYI_NO_CLASS. Ids of other synsets are not found. */
uint32_t ry_imagenet_find(const char *wnid, size_t length);

#endif
