/* tune_report.h - what tune prints: a table of the best, what became of the rest, what to use.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_TUNE_REPORT_H
#define RENYI_TUNE_REPORT_H

#include "cli/sweep/tune_arguments.h"

#include <jansson.h>

typedef struct tune_report {
    const tune_arguments *a;
    const renyi_tune *tune;
    const renyi_model_info *model;
    const renyi_dataset_info *data;
    const image_spec *spec;
    int is_interrupted;
} tune_report;

void tune_report_text(const tune_report *r);
json_t *tune_report_json(const tune_report *r); /* owned; NULL = no memory */

#endif
