/* eval_report.h - what eval prints: a table for people, JSON, and the CSV that timm's users know.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_CLI_EVAL_REPORT_H
#define RENYI_CLI_EVAL_REPORT_H

#include "eval_arguments.h"

#include <jansson.h>

typedef struct eval_report {
    const eval_arguments *a;
    const renyi_eval *eval;
    const renyi_model_info *model;
    const renyi_dataset_info *data;
    const photo_spec *spec;
    double peak_rss_mb;
    int is_interrupted;
} eval_report;

void eval_report_table(const eval_report *r);
json_t *eval_report_json(const eval_report *r); /* owned; NULL = no memory */

/* The --results-file: -1 after reporting. `eval_results_check` finds out before a long run whether
 * it can be written. */
int eval_results_check(const eval_arguments *a);
int eval_results_write(const eval_report *r);

#endif
