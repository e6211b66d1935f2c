/* log_file.h - the log of a training run: a line of JSON for its settings, every update and every
 * epoch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LOG_FILE_H
#define RY_LOG_FILE_H

#include "renyi/renyi.h"

#include <jansson.h>

typedef struct ry_log_file {
    const char *path; /* borrowed */
    int fd;           /* -1 = none: lines are dropped */
    uint64_t bytes;   /* written so far */
} ry_log_file;

/* Lines behind byte `keep` are cut off: they were written after the checkpoint that the run goes on
 * from. A shorter file is kept up to its last whole line. Another process that has the log open is
 * an error. */
renyi_status ry_log_file_open(ry_log_file *log, const char *path, uint64_t keep,
                              renyi_error *err) RENYI_CHECK;
void ry_log_file_close(ry_log_file *log);

/* Takes over `line` (NULL = there was no memory for it); it is in the file when this returns. */
renyi_status ry_log_file_put(ry_log_file *log, json_t *line, const renyi_allocator *al,
                             renyi_error *err) RENYI_CHECK;
renyi_status ry_log_file_sync(ry_log_file *log, renyi_error *err) RENYI_CHECK; /* to the disk */

/* A number, or null where JSON has none. */
json_t *ry_log_number(double x);

#endif
