/* read_file.h - whole files into memory, with a size limit.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_READ_FILE_H
#define RENYI_READ_FILE_H

#include <stddef.h>

typedef struct file_bytes {
    unsigned char *data; /* owned, one NUL behind the last byte; NULL on failure */
    size_t size;
} file_bytes;

/* "-" is stdin. On failure returns -1 and *why (owned) says what went wrong, without the name. */
int read_file(const char *path, size_t max_bytes, file_bytes *out, char **why);

#endif
