/* eval_report.h - the results of an evaluation: tables, JSON, and a CSV with timm's columns.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_EVAL_REPORT_H
#define RENYI_EVAL_REPORT_H

#include "cli/eval/eval_job.h"

#include <jansson.h>

typedef struct eval_report {
    const eval_arguments *a;
    const renyi_eval *eval;
    const renyi_model_info *model;
    const renyi_dataset_info *data;
    const image_spec *spec;
    const zeroshot_classes *classes; /* NULL: not zero-shot */
    const adaptation *adapt;         /* the same */
    class_names *names;
    double peak_rss_mb;
    int is_interrupted;
} eval_report;

/* ---- tables (eval_report.c) ---------------------------------------------------------------- */

void eval_report_table(const eval_report *r);

/* Parts of it, also for evaluations that did not run here: a row per policy; every two policies
 * compared image by image (nothing with one policy). */
void eval_table_policies(const renyi_eval *e);
/* Says of row `number` of a table, if it is a cascade, what its GMACs are. */
void eval_put_cascade(size_t number, const renyi_eval_result *p);
void eval_table_pairs(const renyi_eval *e);

/* Class by class: sets the mean over classes of each policy in its object of `results`; a list of
 * all classes. */
void eval_classes_means(const eval_report *r, json_t *results);
json_t *eval_classes_json(const eval_report *r);

/* A number right-aligned in `width` columns on stdout, or "-" if it is not finite. */
void eval_put_real(int width, int digits, double value);

/* ---- JSON (eval_results.c) ----------------------------------------------------------------- */

json_t *eval_report_json(const eval_report *r); /* owned; NULL = no memory */

/* Which images and how they were run: classes_seen, seed, threads, batch_size (null:
 * nothing was run). */
void eval_run_json(json_t *document, const eval_arguments *a, const renyi_dataset_info *data,
                   const renyi_eval_times *t);

/* Parts of it. */
json_t *eval_results_json(const renyi_eval *e);
json_t *eval_pairs_json(const renyi_eval *e);
json_t *eval_failed_json(const renyi_eval *e);
/* Takes a and b, which identify the two. */
json_t *eval_pair_json(json_t *a, json_t *b, const renyi_eval_pair *p);
json_t *eval_failure_json(const renyi_eval_failure *f);

/* ---- CSV (eval_results.c) ------------------------------------------------------------------ */

/* timm's columns, under timm's names, then those of eval_csv_result; no line end. */
#define EVAL_CSV_COLUMNS                                                                    \
    "model,img_size,top1,top1_err,top5,top5_err,param_count,crop_pct,interpolation,policy," \
    "images,failed,top1_low,top1_high,loss,gmacs,gmacs_executed,ms_model,ms_total,img_per_s"

/* Columns that are not in a result; unknown ones (NaN, NULL) stay empty. */
typedef struct eval_csv_frame {
    const char *title, *interpolation;
    uint32_t image_size;
    double params, crop_pct, peak_rss_mb, threads, batch;
} eval_csv_frame;

void eval_csv_result(FILE *f, const eval_csv_frame *frame, const renyi_eval_result *p);
/* The whole table. */
void eval_csv(FILE *f, const renyi_eval *e, const eval_csv_frame *frame);

/* ---- the --results-file (eval_results.c) --------------------------------------------------- */

/* Tests before a long run whether it can be written. 0, or -1 after reporting. */
int eval_results_check(const eval_arguments *a);

/* Writes `document` (taken; NULL = no memory) if the format is "json", else what `put_csv` writes.
 * Only the first rank writes. 0, or -1 after reporting. */
int eval_results_write(const char *path, const char *format, json_t *document,
                       void (*put_csv)(FILE *f, const void *user), const void *user);

#endif
