/* classify_batches.h - run a list of images through a session, a batch at a time.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_CLASSIFY_BATCHES_H
#define RENYI_CLASSIFY_BATCHES_H

#include "cli/classify/classify_report.h"
#include "cli/shared/trace_file.h"

typedef struct batch_job {
    renyi_session *session;
    const photo_spec *spec;
    uint32_t n_classes, max_batch, top_k;
    trace_file *trace; /* NULL = none */
} batch_job;

/* Images that cannot be read are reported, added to inputs->failed, and skipped. Returns the number
 * classified, or -1 when the model itself or the output failed (reported). */
int64_t classify_batches(const batch_job *job, image_inputs *inputs, classify_report *report);

#endif
