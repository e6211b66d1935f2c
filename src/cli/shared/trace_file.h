/* trace_file.h - what every cut did to every picture, one JSON line a picture (docs/CLI.md, trace).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_TRACE_FILE_H
#define RENYI_TRACE_FILE_H

#include "cli/kit/cli.h"

#include "renyi/renyi.h"

typedef struct trace_file {
    const char *path; /* borrowed */
    FILE *stream;
    uint32_t n_tokens, n_blocks; /* that enter the first block; of the model */
} trace_file;

/* Empties the file. 0, or -1 after reporting. */
int trace_open(trace_file *t, const char *path, const renyi_model_info *info);

/* The line of picture `image` of the session's last run; the session was made with trace = 1. A
 * line is written whole, as soon as its picture is done. 0, or -1 after reporting. */
int trace_photo(trace_file *t, const char *file, const renyi_session *session, uint32_t image);

/* 0, or -1 after reporting that not everything could be written. */
int trace_close(trace_file *t);

#endif
