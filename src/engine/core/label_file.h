/* label_file.h - the names of a model's classes: those that a checkpoint's config carries, or a
 * caller's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LABEL_FILE_H
#define RY_LABEL_FILE_H

#include "renyi/renyi.h"

#include <jansson.h>

typedef struct ry_labels {
    const char **names; /* [n] NULL where there is no name; NULL = no names at all */
    char *text;         /* what names point into */
} ry_labels;

/* id2label of Hugging Face ({"0": "tench", ...}) or label_names of timm ([...]). Placeholders such
 * as LABEL_7 count as no name; so do ids outside 0..n-1. `config` may be NULL. */
renyi_status ry_labels_read(ry_labels *out, const json_t *config, uint32_t n,
                            const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
/* names: [n], NULL where there is none; NULL = no names at all. Copied. */
renyi_status ry_labels_copy(ry_labels *out, const char *const *names, uint32_t n,
                            const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_labels_free(ry_labels *l, const renyi_allocator *al); /* a zeroed one is fine */

#endif
