/* whole_file.h - all bytes of a small file in the heap. Read, not mapped: a file that is cut short
 * meanwhile must be a failed read, not a signal.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_WHOLE_FILE_H
#define RY_WHOLE_FILE_H

#include "renyi/renyi.h"

/* All bytes of a regular file; owned by the caller (ry_free with `al`). *is_missing, which may be
 * NULL, says whether the file does not exist. The message does not name the file. */
renyi_status ry_file_read(uint8_t **bytes, size_t *size, const char *path, uint64_t max_bytes,
                          const renyi_allocator *al, int *is_missing, renyi_error *err) RENYI_CHECK;

/* Ask the system to have the file in memory soon; waits for nothing and may do nothing. */
void ry_file_prefetch(const char *path);

#endif
