/* vqa_report.h - renyi vqa: its options, and what is reported of scored runs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_VQA_REPORT_H
#define RENYI_VQA_REPORT_H

#include "cli/kit/output.h"
#include "cli/llava/llava_options.h"

#include "renyi/vqa.h"

#define VQA_NO_CHUNK UINT64_MAX

typedef struct vqa_arguments {
    llava_arguments llava; /* its policy is not used: there may be several */
    sampling_arguments sampling;
    const char *task_name, *questions, *annotations, *images;
    const char *answers, *submission, *shard, *manifest;
    const char *scorer;   /* NULL if the benchmark has only one */
    cli_strings scored;   /* --score: files of answers; no model is asked then */
    cli_strings policies; /* that the pruning options mean, as typed */
    uint64_t limit, num_chunks, chunk_idx, log_freq;
    option_reals reported;
    int json, resume, allow_outside;
    /* what the options mean */
    renyi_vqa_task task;
    renyi_vqa_task_info info;
    uint32_t shard_index, n_shards;
} vqa_arguments;

/* Asks or reads, scores, reports (vqa_execute.c). Returns an exit code. */
int vqa_execute(const vqa_arguments *a);

/* ---- the report (vqa_report.c) ------------------------------------------------------------- */

/* A run that was scored. */
typedef struct vqa_scored {
    char *title; /* its file, or the policy; owned */
    renyi_vqa_answers *answers;
    renyi_vqa_answers_info info;
    renyi_vqa_score score;
    double reported; /* by a server; NaN = not given */
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

/* Costs, wherever they are reported: columns and cells of a table; JSON (NULL = no memory). */
void vqa_cost_columns(text_table *t);
void vqa_cost_cells(text_table *t, double visual_tokens, const renyi_vqa_cost *c);
json_t *vqa_cost_json(const renyi_vqa_cost *c);

#endif
