/* lvlm_table.h - renyi table: methods x budgets on benchmarks of a LLaVA, from the plan to the
 * report.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_LVLM_TABLE_H
#define RENYI_LVLM_TABLE_H

#include "cli/llava/vqa_asking.h"
#include "cli/result/result_manifest.h"

/* ---- what was asked for ---------------------------------------------------------------------- */

typedef struct table_arguments {
    llava_arguments llava;
    sampling_arguments sampling;
    cli_strings tasks;    /* "pope questions=coco images=val2014 annotations=..." */
    cli_strings methods;  /* policies; without a budget they get each of `tokens` */
    cli_strings against;  /* methods of the paired tests */
    option_counts tokens; /* none = those of the published tables */
    const char *output, *spec;
    uint64_t limit, log_freq;
    int json, markdown, resume, allow_outside, dry_run;
} table_arguments;

/* Adds what the spec file says. CLI_OK, or another exit code after reporting. */
int table_read_spec(table_arguments *a);

/* ---- the plan (lvlm_table_plan.c) ------------------------------------------------------------ */

/* A benchmark: a column. Texts are in `text`. */
typedef struct table_task {
    char *text; /* owned */
    const char *questions, *images, *annotations;
    renyi_vqa_task task;
    renyi_vqa_task_info info;
    renyi_vqa *data;
} table_task;

/* A policy: a row. */
typedef struct table_row {
    char *policy;       /* as it is run: the method with its budget; owned */
    const char *method; /* as typed; borrowed; NULL = the full model */
    uint64_t tokens;    /* budget; 0 = the method's own */
} table_row;

typedef struct table_cell {
    renyi_vqa_answers *answers; /* NULL = not run */
    renyi_vqa_answers_info info;
    renyi_vqa_score score;
    double value; /* what the table shows: of mme perception + cognition; NaN = unknown */
} table_cell;

typedef struct lvlm_table {
    const table_arguments *a;
    table_task *tasks;
    size_t n_tasks;
    table_row *rows; /* the first is the full model */
    size_t n_rows;
    table_cell *cells; /* [n_rows, n_tasks] */
    cli_strings methods;
    cli_strings against;
    char *model;   /* name; owned */
    int has_tiles; /* LLaVA-NeXT: budgets are for base and tiles together */
    cli_strings failed;
    int is_interrupted;
} lvlm_table;

/* CLI_OK, or another exit code after reporting; lvlm_table_free either way. */
int lvlm_table_plan(lvlm_table *t, const table_arguments *a);
void lvlm_table_free(lvlm_table *t);

static inline table_cell *lvlm_table_cell(const lvlm_table *t, size_t row, size_t task)
{
    return &t->cells[row * t->n_tasks + task];
}

/* Title of a row: its method without the prefix of its preset. */
const char *lvlm_table_title(const table_row *row);

/* ---- running (lvlm_table_run.c) -------------------------------------------------------------- */

int lvlm_table_run(lvlm_table *t); /* returns an exit code */

/* ---- sums (lvlm_table_sums.c) ---------------------------------------------------------------- */

/* Percent of the full model's score; NaN = unknown. */
double lvlm_table_percent(const lvlm_table *t, size_t row, size_t task);
/* The mean over the benchmarks that both have; NaN = none. */
double lvlm_table_mean_percent(const lvlm_table *t, size_t row);

/* The row of a method with the same budget; n_rows = none. */
size_t lvlm_table_find(const lvlm_table *t, const char *method, uint64_t tokens);

/* Two rows, question by question over all benchmarks. */
typedef struct table_pair {
    uint64_t n, better_a, better_b;
    double difference; /* accuracy of b minus accuracy of a, percentage points of all questions */
    double p_value;    /* exact sign test */
    int is_noise;      /* p_value of 0.05 or more */
} table_pair;
void lvlm_table_compare(const lvlm_table *t, size_t a, size_t b, table_pair *out);

typedef struct table_cost {
    double visual_tokens;
    renyi_vqa_cost cost;
} table_cost;
/* Means over all answers of a row. */
void lvlm_table_costs(const lvlm_table *t, size_t row, table_cost *out);

/* ---- the report (lvlm_table_report.c) -------------------------------------------------------- */

void lvlm_table_text(const lvlm_table *t);
void lvlm_table_json(const lvlm_table *t);
void lvlm_table_dry_run(const lvlm_table *t);

#endif
