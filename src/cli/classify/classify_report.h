/* classify_report.h - what classify prints: lines for people as they come, or one JSON document.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_CLASSIFY_REPORT_H
#define RENYI_CLASSIFY_REPORT_H

#include "cli/shared/class_names.h"
#include "cli/shared/image_inputs.h"
#include "cli/shared/model_input.h"

#include <jansson.h>

typedef struct class_score {
    uint32_t index;
    double probability;
} class_score;

/* The `k` best of n_classes logits, larger first, equal ones to the lower index, with their softmax
 * probabilities. Returns how many, or 0 if a logit is not a number. */
uint32_t classify_top(class_score *top, uint32_t k, const float *logits, uint32_t n_classes);

typedef struct photo_result {
    const char *file;
    const class_score *top; /* [n_top] */
    uint32_t n_top;
    double ms;        /* forward pass; a batch's time shared evenly */
    double ms_decode; /* read, decode, resize, crop */
} photo_result;

typedef struct classify_report {
    class_names *names;
    json_t *results; /* NULL = lines for people */
} classify_report;

void report_photo(classify_report *report, const photo_result *result);

/* What holds for all pictures of a run. */
typedef struct classify_header {
    const char *model; /* the word after -m */
    const renyi_model_info *info;
    const photo_spec *spec;
    const char *policy; /* in full */
} classify_header;

/* Prints the document; nothing for people. */
void report_end(classify_report *report, const classify_header *header, const image_inputs *inputs);

#endif
