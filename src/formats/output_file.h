/* output_file.h - a file that appears under its name only when it is complete and on disk.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_OUTPUT_FILE_H
#define RY_OUTPUT_FILE_H

#include "renyi/renyi.h"

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
