/* mapped_file.h - a whole file as read-only memory. A file that is cut short by somebody else while
 * it is mapped raises SIGBUS: see SECURITY.md.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MAPPED_FILE_H
#define RY_MAPPED_FILE_H

#include "renyi/renyi.h"

typedef struct ry_mapped_file {
    const unsigned char *data; /* not NULL, even for an empty file */
    size_t size;
    uint64_t device, inode; /* which file it is, by whatever name */
} ry_mapped_file;

/* Regular files only; `max_bytes` 0 = no limit. The message names the file. */
renyi_status ry_mapped_file_open(ry_mapped_file *out, const char *path, uint64_t max_bytes,
                                 renyi_error *err) RENYI_CHECK;
int ry_mapped_file_is(const ry_mapped_file *f, const char *path); /* 1 = `path` is this file */
void ry_mapped_file_close(ry_mapped_file *f);                     /* a zeroed one is fine */

#endif
