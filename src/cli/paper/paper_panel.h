/* paper_panel.h - the paper's tables of LLaVA and what was run of them here.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_PAPER_PANEL_H
#define RENYI_PAPER_PANEL_H

#include "cli/paper/paper_subjects.h"

#include <jansson.h>

/* What stands beside one of the paper's figures. */
typedef struct panel_cell {
    double score; /* NaN = not run */
    renyi_interval range;
    uint64_t questions; /* scored */
    int is_reported;    /* by a server, not scored here */
} panel_cell;

typedef struct paper_panel {
    size_t place; /* among the panels */
    renyi_panel table;
    paper_state state; /* of cells that are not measured */
    char *model;       /* whose results stand beside the paper's; owned, NULL = none do */
    panel_cell cells[RENYI_VQA_TASKS][RENYI_PANEL_COLUMNS]; /* by task */
} paper_panel;

typedef struct paper_panels {
    paper_panel *items;
    size_t count;
} paper_panels;

int paper_is_panel(uint32_t number); /* 1 = it is one of them */
/* Those that were asked for (all without --table). The caller frees. */
void paper_panels_make(paper_panels *list, const paper_arguments *a);
void paper_panels_free(paper_panels *list);

/* Take what `renyi vqa --json` wrote about a benchmark. Of the document it needs `task` and
 * `results[]` with `model`, `policy`, `score`, `score_range`, `scored` and `score_from`. Returns
 * CLI_OK, or the exit code after an error was reported. */
int paper_panels_take(paper_panels *list, const char *file, const json_t *document);

int paper_panel_is_own(const paper_panel *p); /* are the results the paper's very model's? */
int paper_panels_are_measured(const paper_panels *list);
/* What stands in a row: a task's score, or Average and Rel where all tasks were run; else NaN. */
double paper_panel_value(const paper_panel *p, const renyi_panel_row *row, size_t column);

void paper_panel_text(const paper_panels *list, int is_markdown);
void paper_panel_legend(const paper_panels *list, int is_markdown); /* if there are any */
json_t *paper_panel_json(const paper_panels *list);
void paper_panel_csv(FILE *f, const paper_panels *list); /* lines below those of paper_report */

#endif
