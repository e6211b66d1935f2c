/* eval_report.h - what eval prints: a table for people, JSON, and the CSV that timm's users know.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_EVAL_REPORT_H
#define RENYI_EVAL_REPORT_H

#include "cli/eval/eval_arguments.h"
#include "cli/shared/models.h"

#include <jansson.h>

typedef struct eval_report {
    const eval_arguments *a;
    const renyi_eval *eval;
    const renyi_model_info *model;
    const renyi_dataset_info *data;
    const image_spec *spec;
    const zeroshot_words *words; /* NULL: not zero-shot */
    const adaptation *adapt;     /* likewise */
    class_names *names;
    double peak_rss_mb;
    int is_interrupted;
} eval_report;

void eval_report_table(const eval_report *r);
json_t *eval_report_json(const eval_report *r); /* owned; NULL = no memory */

/* Parts of them, also for evaluations that did not run here: a row for each policy; policies photo
 * by photo, nothing with one; and the same for machines. */
void eval_table_policies(const renyi_eval *e);
void eval_table_pairs(const renyi_eval *e);
json_t *eval_results_json(const renyi_eval *e);
json_t *eval_pairs_json(const renyi_eval *e);
json_t *eval_failed_json(const renyi_eval *e);

/* Class by class (eval_classes.c): the mean over classes of each policy into its object of
 * `results`, and a list of all; for people the means, and with --per-class a table. */
void eval_classes_means(const eval_report *r, json_t *results);
json_t *eval_classes_json(const eval_report *r);
void eval_classes_table(const eval_report *r);

/* Columns of the CSV that no result has; what is not known (NaN, NULL) stays empty. */
typedef struct eval_csv_frame {
    const char *title, *interpolation, *dtype;
    uint32_t image_size;
    double params, crop_pct, peak_rss_mb, threads, batch;
} eval_csv_frame;

/* Write a document (taken; NULL = no memory) or, with format "csv", the rows. -1 after reporting.
 */
int eval_results_put(const char *path, const char *format, json_t *document, const renyi_eval *e,
                     const eval_csv_frame *frame);

/* The --results-file: -1 after reporting. `eval_results_check` finds out before a long run whether
 * it can be written. */
int eval_results_check(const eval_arguments *a);
int eval_results_write(const eval_report *r);

#endif
