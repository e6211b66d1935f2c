/* file.h - whole files: mapped, or read into the heap. Files are written by base/output_file.h.
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

#endif
