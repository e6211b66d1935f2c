/* paper_report.h - the output of renyi paper: tables as text or Markdown, JSON, CSV.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_PAPER_REPORT_H
#define RENYI_PAPER_REPORT_H

#include "cli/paper/paper_subjects.h"

#include <jansson.h>

/* A part of a table for one model. */
typedef struct paper_block {
    const paper_subject *subject;
    size_t part;
    renyi_paper_part shape;
    renyi_paper_table table;
} paper_block;

/* All blocks in the order to print: by table, the paper's own models first. Owned. */
paper_block *paper_blocks(const paper_subjects *list, size_t *count);

/* Why a cell has no accuracy, or "measured". */
const char *paper_cell_state(const paper_block *b, const renyi_paper_cell *cell);

void paper_report_text(const paper_block *blocks, size_t count, int is_markdown);
int paper_is_measured(const paper_block *blocks, size_t count); /* any of them? */
void paper_report_legend(int is_measured, int is_markdown);
json_t *paper_report_json(const paper_subjects *list, const paper_block *blocks, size_t count);
void paper_report_csv(FILE *f, const paper_block *blocks, size_t count);

/* ---- also for the other tables ------------------------------------------------------------- */

const char *paper_method_name(renyi_paper_method m); /* in JSON and CSV: "cls", "ours", ... */
void paper_put_title(uint32_t number, const char *title, int is_markdown);
/* The line that names the model, bold in Markdown; takes the line. */
void paper_put_heading(char *line, int is_markdown);
/* A note after its mark; nothing if text is NULL. */
void paper_put_note(const char *mark, const char *text, int is_markdown);

#endif
