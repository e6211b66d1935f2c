/* collections.h - the table of known data sets, and where the parts of one are below a path.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_COLLECTIONS_H
#define RY_COLLECTIONS_H

#include "eval/data/text_lines.h"
#include "renyi/eval.h"

/* Are two words the same but for case, '-', '_' and blanks? */
int ry_same_word(ry_text a, ry_text b);

/* The next of several words with blanks between; 0 at the end. */
int ry_next_word(ry_text *rest, ry_text *word);

/* A data set on the disk. Paths are in the pool that was given. */
typedef struct ry_place {
    const char *root;   /* its folder */
    const char *photos; /* folder of the photos, or of the class folders */
    const char *list;   /* split file; NULL = none */
} ry_place;

/* Where `path` (a folder, the one above it, its photos, or its list) has the data set. Without one
 * RENYI_ERR_FORMAT says what is missing, and what is there instead. */
renyi_status ry_collection_place(ry_place *out, const renyi_collection *c, const char *path,
                                 ry_pool *pool, renyi_error *err) RENYI_CHECK;

/* Which data set lies at path, by the name of its list or of its folder? out->name "" = none.
 * Several lists in one folder are an error. */
renyi_status ry_collection_guess(renyi_collection *out, const char *path, ry_pool *pool,
                                 renyi_error *err) RENYI_CHECK;

/* None yet; for those who have the bytes already. */
renyi_status ry_templates_new(renyi_templates **out, const renyi_allocator *al,
                              renyi_error *err) RENYI_CHECK;
renyi_status ry_templates_read(renyi_templates *t, const char *file, const void *bytes, size_t size,
                               renyi_error *err) RENYI_CHECK;

#endif
