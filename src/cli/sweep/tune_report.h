/* tune_report.h - renyi tune: its options, and what is reported of a finished search.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TUNE_REPORT_H
#define RENYI_TUNE_REPORT_H

#include "cli/eval/eval_job.h"

#include "renyi/sweep.h"
#include <jansson.h>

typedef struct tune_arguments {
    eval_arguments e; /* model, data, how to run; its policies are not used */
    option_reals max_drop, target_ms, target_gmacs, search;
    renyi_tune_goal goal; /* the one of them that was given */
    double bound;
    const char *space;    /* a spec file */
    cli_strings policies; /* with alternatives a|b */
    option_counts sizes;
    int unlabelled;
} tune_arguments;

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
