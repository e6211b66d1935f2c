/* collections.h - known datasets: their table, where one is on the disk, and the sentences about
 * their classes (templates).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_COLLECTIONS_H
#define RY_COLLECTIONS_H

#include "eval/data/text_lines.h"
#include "renyi/eval.h"

/* ---- collections.c ------------------------------------------------------------------------- */

/* A dataset on the disk. Paths are in the pool that was given. */
typedef struct ry_place {
    const char *root;   /* its folder */
    const char *images; /* folder of the images, or of the class folders */
    const char *list;   /* split file; NULL = none */
} ry_place;

/* Finds the dataset at `path`: its folder, the folder above, its images, or its list. If it is not
 * there, RENYI_ERR_FORMAT says what is missing. */
renyi_status ry_collection_place(ry_place *out, const renyi_collection *c, const char *path,
                                 ry_pool *pool, renyi_error *err) RENYI_CHECK;

/* Which dataset is at `path`, by the name of its list or of its folder? out->name "" = none. Lists
 * of two datasets in one folder are an error. */
renyi_status ry_collection_guess(renyi_collection *out, const char *path, ry_pool *pool,
                                 renyi_error *err) RENYI_CHECK;

/* ---- templates.c --------------------------------------------------------------------------- */

/* An empty list, and one more sentence for every line of a file. */
renyi_status ry_templates_new(renyi_templates **out, const renyi_allocator *al,
                              renyi_error *err) RENYI_CHECK;
renyi_status ry_templates_read(renyi_templates *t, const char *file, const void *bytes, size_t size,
                               renyi_error *err) RENYI_CHECK;

#endif
