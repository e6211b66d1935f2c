/* paper_given.h - the paper's tables whose results come from files: surveys (CLIP), panels (LLaVA)
 * and fine-tuning.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_PAPER_GIVEN_H
#define RENYI_PAPER_GIVEN_H

#include "cli/paper/paper_subjects.h"

#include <jansson.h>

int paper_is_given(uint32_t number); /* is the table with this number one of them? */
int paper_wants_given(const paper_arguments *a, uint32_t number); /* was it asked for? */

/* A file of --results; NULL after an error was reported. The caller releases it. */
json_t *paper_results_load(const char *file);
/* Do both texts mean the same policy, with or without its defaults? */
int paper_same_policy(const char *a, const char *b);
/* The string under a key, or NULL. */
const char *paper_json_string(const json_t *object, const char *key);

/* ---- surveys: CLIP and TCA over datasets -------------------------------------------------- */

/* What is printed beside one of the paper's figures. */
typedef struct survey_cell {
    int is_measured;
    renyi_eval_result result; /* valid if measured; its policy is not */
} survey_cell;

typedef struct paper_survey {
    size_t place; /* index among the surveys */
    renyi_survey table;
    char *model;                              /* whose results these are; owned, NULL = none */
    char *architecture;                       /* of it; owned */
    paper_state state;                        /* of cells that are not measured */
    double gmacs_paper[RENYI_SURVEY_COLUMNS]; /* counted as the paper does; NaN = unknown */
    survey_cell *cells;                       /* [n_rows, columns]; owned */
} paper_survey;

typedef struct paper_surveys {
    paper_survey *items;
    size_t count;
} paper_surveys;

/* Those that were asked for (all without --table), with their costs. The caller frees. */
void paper_surveys_make(paper_surveys *list, const paper_arguments *a);
void paper_surveys_free(paper_surveys *list);

/* Takes what `renyi zeroshot --json` wrote. It needs `collection` (a name of eval.h), `model`,
 * `architecture` and `results[]` with `policy`, `images`, `failed`, `top1`, `top1_range` and
 * `adapt` ("tca", or null for cuts alone; may be in the document instead). Returns CLI_OK, or the
 * exit code after an error was reported. */
int paper_surveys_take(paper_surveys *list, const char *file, const json_t *document);

int paper_survey_is_own(const paper_survey *s); /* are the results of the paper's own model? */
int paper_surveys_are_measured(const paper_surveys *list);
/* The mean of a column; NaN unless all its datasets were run. */
double paper_survey_mean(const paper_survey *s, size_t column);

void paper_survey_text(const paper_surveys *list, int is_markdown);
json_t *paper_survey_json(const paper_surveys *list);
void paper_survey_csv(FILE *f, const paper_surveys *list); /* rows after those of paper_report */

/* ---- panels: LLaVA on benchmarks ----------------------------------------------------------- */

typedef struct panel_cell {
    double score; /* NaN = not run */
    renyi_interval range;
    uint64_t questions; /* scored */
    int is_reported;    /* by a server, not scored here */
} panel_cell;

typedef struct paper_panel {
    size_t place; /* index among the panels */
    renyi_panel table;
    paper_state state; /* of cells that are not measured */
    char *model;       /* whose results these are; owned, NULL = none */
    panel_cell cells[RENYI_VQA_TASKS][RENYI_PANEL_COLUMNS]; /* by task */
} paper_panel;

typedef struct paper_panels {
    paper_panel *items;
    size_t count;
} paper_panels;

/* Those that were asked for (all without --table). The caller frees. */
void paper_panels_make(paper_panels *list, const paper_arguments *a);
void paper_panels_free(paper_panels *list);

/* Takes what `renyi vqa --json` wrote about a benchmark. It needs `task` and `results[]` with
 * `model`, `policy`, `score`, `score_range`, `scored` and `score_from`. Returns CLI_OK, or the exit
 * code after an error was reported. */
int paper_panels_take(paper_panels *list, const char *file, const json_t *document);

int paper_panels_are_measured(const paper_panels *list);

void paper_panel_text(const paper_panels *list, int is_markdown);
void paper_panel_legend(const paper_panels *list, int is_markdown); /* if there are any */
json_t *paper_panel_json(const paper_panels *list);
void paper_panel_csv(FILE *f, const paper_panels *list); /* rows after those of paper_report */

/* ---- fine-tuning ----------------------------------------------------------------------------- */

enum { PAPER_TUNED_ROWS = 2 };

/* One of the paper's figures and the run beside it. */
typedef struct tuned_cell {
    char policy[RENYI_PAPER_POLICY_MAX]; /* "" = no such column */
    char *run;                           /* owned; NULL = none */
    double top1, best_top1;              /* after the last epoch, and the best; percent */
    double epochs;                       /* done when top1 was measured */
    renyi_interval range;                /* of top1; NaN = unknown */
    uint64_t images;                     /* it was measured on; 0 = unknown */
} tuned_cell;

typedef struct paper_tuned {
    int is_wanted;
    renyi_paper_table table;
    char *model, *architecture;           /* that the runs began with; owned, NULL = no runs */
    paper_state state;                    /* of cells without a run */
    double gmacs_paper[PAPER_TUNED_ROWS]; /* of the paper's model, counted as the paper does */
    tuned_cell cells[PAPER_TUNED_ROWS][RENYI_PAPER_METHODS];
} paper_tuned;

void paper_tuned_make(paper_tuned *p, const paper_arguments *a); /* the caller frees */
void paper_tuned_free(paper_tuned *p);
/* Takes a run of renyi train: its folder or its log.jsonl. Returns CLI_OK, or the exit code after
 * an error was reported. */
int paper_tuned_take(paper_tuned *p, const char *path);

/* All three do nothing, or give null, if the table was not asked for. */
void paper_tuned_text(const paper_tuned *p, int is_markdown);
json_t *paper_tuned_json(const paper_tuned *p);
void paper_tuned_csv(FILE *f, const paper_tuned *p); /* rows after those of paper_report */

/* Table 16 beside our recipes; the same. It has no cells for a CSV file. */
void paper_hyper_text(const paper_arguments *a);
json_t *paper_hyper_json(const paper_arguments *a);

#endif
