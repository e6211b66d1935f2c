/* tokenizer_files.h - the file of a tokenizer that belongs to a path, and its bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TOKENIZER_FILES_H
#define RY_TOKENIZER_FILES_H

#include "renyi/renyi.h"

/* What reading needs. */
typedef struct ry_file_reader {
    const renyi_allocator *al;
    uint64_t max_bytes;
} ry_file_reader;

/* A file's bytes, unpacked; in the heap of the reader. */
typedef struct ry_file_text {
    char *text;
    size_t size;
} ry_file_text;

renyi_status ry_file_load(const ry_file_reader *r, const char *path, ry_file_text *out,
                          renyi_error *err) RENYI_CHECK;
int ry_file_exists(const char *path);
char ry_file_first(const ry_file_text *f); /* what is no blank; NUL = nothing else */

/* A name in the folder of a file; NULL = no memory. Owned by the caller. */
char *ry_file_beside(const ry_file_reader *r, const char *path, const char *name);

/* The path itself, or, of a folder or a file of weights, the first of `names` (NULL at the end) in
 * it or beside it; owned by the caller. `looked_for` says them in a message. */
renyi_status ry_file_find(const ry_file_reader *r, const char *path, const char *const *names,
                          const char *looked_for, char **out, renyi_error *err) RENYI_CHECK;

#endif
