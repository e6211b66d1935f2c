/* vqa_report.h - what renyi vqa prints.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_VQA_REPORT_H
#define RENYI_VQA_REPORT_H

#include "cli/llava/vqa_arguments.h"

/* A run that was scored. */
typedef struct vqa_scored {
    char *title; /* its file, or the policy; owned */
    renyi_vqa_answers *answers;
    renyi_vqa_answers_info info;
    renyi_vqa_score score;
    double reported; /* by a server; NaN = not said */
} vqa_scored;

typedef struct vqa_report {
    const vqa_arguments *a;
    const renyi_vqa *questions;
    renyi_vqa_info found;
    vqa_scored *runs;
    size_t count;
    const cli_strings *failed; /* "question: why" */
    int is_interrupted;
} vqa_report;

void vqa_report_table(const vqa_report *r);
void vqa_report_json(const vqa_report *r);

#endif
