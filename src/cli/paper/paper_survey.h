/* paper_survey.h - the paper's tables over data sets (CLIP and TCA) and what was run of them here.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_PAPER_SURVEY_H
#define RENYI_PAPER_SURVEY_H

#include "cli/paper/paper_subjects.h"

#include <jansson.h>

/* What stands beside one of the paper's figures. */
typedef struct survey_cell {
    int is_measured;
    renyi_eval_result result; /* valid if measured; its policy is not */
} survey_cell;

typedef struct paper_survey {
    size_t place; /* among the surveys */
    renyi_survey table;
    char *model;        /* whose results stand beside the paper's; owned, NULL = none do */
    char *architecture; /* of it; owned */
    paper_state state;  /* of cells that are not measured */
    double gmacs_paper[RENYI_SURVEY_COLUMNS]; /* counted as the paper does; NaN = unknown here */
    survey_cell *cells;                       /* [n_rows, columns]; owned */
} paper_survey;

typedef struct paper_surveys {
    paper_survey *items;
    size_t count;
} paper_surveys;

/* Those that were asked for (all without --table), with their costs. The caller frees. */
void paper_surveys_make(paper_surveys *list, const paper_arguments *a);
void paper_surveys_free(paper_surveys *list);

/* Take what `renyi zeroshot --json` wrote. Of the document it needs `collection` (a name
 * of eval.h), `model`, `architecture` and `results[]` with `policy`, `images`, `failed`,
 * `top1`, `top1_range` and `adapt` ("tca", or null for cuts alone; may stand in the document
 * instead). Returns CLI_OK, or the exit code after an error was reported. */
int paper_surveys_take(paper_surveys *list, const char *file, const json_t *document);

/* A file of --results; NULL after an error was reported. The caller releases. */
json_t *paper_results_load(const char *file);
/* Do both texts mean the same policy, however much of it is written out? */
int paper_same_policy(const char *a, const char *b);

int paper_survey_is_own(const paper_survey *s); /* are the results the paper's very model's? */
int paper_surveys_are_measured(const paper_surveys *list);
/* The mean of a column; NaN unless all its data sets were run. */
double paper_survey_mean(const paper_survey *s, size_t column);

void paper_survey_text(const paper_surveys *list, int is_markdown);
json_t *paper_survey_json(const paper_surveys *list);
void paper_survey_csv(FILE *f, const paper_surveys *list); /* lines below those of paper_report */

#endif
