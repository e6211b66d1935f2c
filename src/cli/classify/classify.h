/* classify.h - the parts of renyi classify: running batches, printing results, writing the trace.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_CLASSIFY_H
#define RENYI_CLASSIFY_H

#include "cli/shared/images.h"
#include "cli/shared/models.h"

#include <jansson.h>

/* ---- the trace: what each cut did to each image, one JSON line per image (docs/CLI.md) ------ */

typedef struct trace_file {
    const char *path; /* borrowed */
    FILE *stream;
    uint32_t n_tokens, n_blocks; /* tokens that enter the first block; blocks of the model */
} trace_file;

/* Empties the file. 0, or -1 after reporting. */
int trace_open(trace_file *t, const char *path, const renyi_model_info *info);

/* Writes the whole line of image number `image` of the session's last run; the session was made
 * with trace = 1. 0, or -1 after reporting. */
int trace_image(trace_file *t, const char *file, const renyi_session *session, uint32_t image);

/* 0, or -1 after reporting that not everything could be written. */
int trace_close(trace_file *t);

/* ---- batches and results ------------------------------------------------------------------- */

typedef struct classify_job {
    renyi_session *session;
    const char *model; /* the name given with -m */
    const renyi_model_info *info;
    const image_spec *spec;
    class_names *names;
    uint32_t max_batch, top_k;
    trace_file *trace; /* NULL = none */
    int json;          /* one document at the end instead of lines for people */
} classify_job;

/* Runs all images, batch by batch, and prints the results. Images that cannot be read are reported,
 * added to inputs->failed and skipped. Returns the number classified, or -1 if the model or the
 * output failed (reported). */
int64_t classify_images(const classify_job *job, image_inputs *inputs);

#endif
