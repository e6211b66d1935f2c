/* tokenizer.h - finds and loads the files of a tokenizer; those of text towers and of language
 * models share it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TOKENIZER_H
#define RY_TOKENIZER_H

#include "renyi/renyi.h"

#include <jansson.h>

typedef struct ry_file_reader {
    const renyi_allocator *al;
    uint64_t max_bytes; /* of a file */
} ry_file_reader;

/* Values in a tokenizer.json: Gemma's has 262,144 pieces and 514,906 merges of three values. */
enum { RY_TOKENIZER_VALUES = 6000000 };

/* A file's bytes, unpacked if it is gzip; owned by the caller, from the reader's allocator. */
typedef struct ry_file_text {
    char *text;
    size_t size;
} ry_file_text;

renyi_status ry_file_load(const ry_file_reader *r, const char *path, ry_file_text *out,
                          renyi_error *err) RENYI_CHECK;
int ry_file_exists(const char *path);

/* The path of `name` in the folder of a file; NULL = no memory. Owned by the caller. */
char *ry_file_beside(const ry_file_reader *r, const char *path, const char *name);

/* A JSON file in the folder of a file; *out is NULL when there is none. is_reals: integers become
 * reals, as tokenizer_config.json has some beyond 64 bits. */
renyi_status ry_json_beside(const ry_file_reader *r, const char *path, const char *name,
                            int is_reals, json_t **out, renyi_error *err) RENYI_CHECK;

/* The tokenizer file that belongs to `path`, owned by the caller: the path itself, or, if that is a
 * folder or a file of weights, the first of `names` (NULL-terminated) in the folder or beside the
 * weights. `looked_for` lists the names in an error. */
renyi_status ry_file_find(const ry_file_reader *r, const char *path, const char *const *names,
                          const char *looked_for, char **out, renyi_error *err) RENYI_CHECK;

#endif
