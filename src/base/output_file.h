/* output_file.h - the only way to create a file: it appears under its name when it is complete.
 *
 * The bytes go to a file of another name in the same folder, which is flushed to disk and renamed.
 * Until then, and after any failure, an older file of that name is as it was.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_OUTPUT_FILE_H
#define RY_OUTPUT_FILE_H

#include "renyi/renyi.h"

typedef struct ry_output_file {
    const char *path; /* borrowed */
    char *temp;       /* its name until it is complete; NULL = written straight to the path */
    int fd;
    uint64_t written; /* bytes so far */
} ry_output_file;

/* Also removes what killed processes left of a file of this name: PATH.HOST-PID-N.tmp, if it was
 * made on this host (HOST is a hash of its name) and no process has it open for writing: a writer
 * holds a lock (flock) on it. Only regular files are replaced, a symbolic link by the file itself.
 * A pipe or a device that has this name, and /dev/stdout and /dev/fd/N, are written straight. */
renyi_status ry_output_file_open(ry_output_file *f, const char *path, const renyi_allocator *al,
                                 renyi_error *err) RENYI_CHECK;
renyi_status ry_output_file_write(ry_output_file *f, const void *bytes, size_t n,
                                  renyi_error *err) RENYI_CHECK;

/* With st == RENYI_OK: flush to disk and give the file its name. Otherwise, or when that fails, the
 * unfinished file is removed. Returns st or the new failure. Call exactly once after open. */
renyi_status ry_output_file_close(ry_output_file *f, renyi_status st, const renyi_allocator *al,
                                  renyi_error *err) RENYI_CHECK;

#endif
