/* file.h - whole files: mapped, read into the heap, or written so that they appear complete.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_FILE_H
#define RY_FILE_H

#include "renyi/renyi.h"

/* ---- mapped -------------------------------------------------------------------------------- */

/* A whole file as read-only memory. If another process truncates the file while it is mapped, the
 * reader gets SIGBUS: see SECURITY.md. */
typedef struct ry_mapped_file {
    const unsigned char *data; /* not NULL, even for an empty file */
    size_t size;
    uint64_t device, inode; /* identify the file, whatever its name */
} ry_mapped_file;

/* Regular files only; `max_bytes` 0 = no limit. The message names the file. */
renyi_status ry_mapped_file_open(ry_mapped_file *out, const char *path, uint64_t max_bytes,
                                 renyi_error *err) RENYI_CHECK;
int ry_mapped_file_is(const ry_mapped_file *f, const char *path); /* 1 = `path` is this file */
void ry_mapped_file_close(ry_mapped_file *f);                     /* a zeroed one is allowed */

/* ---- read into the heap -------------------------------------------------------------------- */

/* All bytes of a regular file; owned by the caller (ry_free with `al`). For small files: one that
 * is truncated meanwhile is a failed read, not a signal. *is_missing, which may be NULL, says
 * whether the file does not exist. The message does not name the file. */
renyi_status ry_file_read(uint8_t **bytes, size_t *size, const char *path, uint64_t max_bytes,
                          const renyi_allocator *al, int *is_missing, renyi_error *err) RENYI_CHECK;

/* Ask the system to read the file into its cache; does not wait and may do nothing. */
void ry_file_prefetch(const char *path);

/* ---- written ------------------------------------------------------------------------------- */

/* A file that appears under its name only when it is complete and on disk. */
typedef struct ry_output_file {
    const char *path; /* borrowed */
    char *temp;       /* beside it, in the same folder */
    int fd;
    uint64_t written; /* bytes so far */
} ry_output_file;

renyi_status ry_output_file_open(ry_output_file *f, const char *path, const renyi_allocator *al,
                                 renyi_error *err) RENYI_CHECK;
renyi_status ry_output_file_write(ry_output_file *f, const void *bytes, size_t n,
                                  renyi_error *err) RENYI_CHECK;

/* With st == RENYI_OK: flush to disk and give the file its name. Otherwise, or when that fails, the
 * unfinished file is removed. Returns st or the new failure. Call exactly once after open. */
renyi_status ry_output_file_close(ry_output_file *f, renyi_status st, const renyi_allocator *al,
                                  renyi_error *err) RENYI_CHECK;

#endif
