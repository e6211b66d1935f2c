/* eval_masks.h - renyi eval --masks: does a metric keep the object?
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_EVAL_MASKS_H
#define RENYI_EVAL_MASKS_H

#include "cli/eval/eval_job.h"

#include <jansson.h>

/* Rows of an option table that fill `a`, an eval_arguments *. */
/* clang-format off */
#define MASK_OPTION_ROWS(a) \
    {"masks", 0, OPTION_STRING, &(a)->masks.folder, "DIR", "no labels: per block and metric, is the object of these PNG masks kept?", 0, 0}, \
    {"metrics", 0, OPTION_STRING, &(a)->masks.metrics, "M,...", "with --masks, metrics to rank by, as after metric=: 'cls,col n=4'", 0, 0}, \
    {"mask-kind", 0, OPTION_CHOICE, &(a)->masks.kind, "trimap|binary", "values of the masks: 1, 2, 3 as in Oxford Pets, or 0 and object (detected)", 0, 0}, \
    {"mask-border", 0, OPTION_CHOICE, &(a)->masks.border, "ignore|object", "what a trimap's border counts as (ignore)", 0, 0}, \
    {"mask-keep", 0, OPTION_REAL, &(a)->masks.keep, "R", "keep rate at which kept patches are counted (0.7)", 0, 0}
/* clang-format on */

/* Reports options that make no sense with, or without, --masks. 0, or -1. */
int eval_masks_check(const eval_arguments *a);

/* Runs and reports; the model is open. Returns an exit code. */
int eval_masks_execute(const eval_arguments *a, const renyi_model *model);

/* ---- the report (eval_masks_report.c) ------------------------------------------------------ */

typedef struct masks_report {
    const eval_arguments *a;
    const renyi_masks *study;
    const renyi_model_info *model;
    const image_spec *spec;
    renyi_masks_info info;
    int is_interrupted;
} masks_report;

void masks_report_table(const masks_report *r);
json_t *masks_report_json(const masks_report *r); /* owned; NULL = no memory */
int masks_results_write(const masks_report *r);   /* the --results-file: 0, or -1 after reporting */

#endif
