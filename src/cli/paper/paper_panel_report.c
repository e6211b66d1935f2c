/* paper_panel_report.c - the tables of LLaVA for people, in Markdown, JSON and CSV.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/output.h"
#include "cli/paper/paper_panel.h"
#include "cli/paper/paper_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- for people ------------------------------------------------------------------------------ */

/* Columns that stand in one table: those of as many tokens; all of them stand with the first. */
typedef struct group {
    size_t first, count;
} group;
static const group groups[] = {{0, 3}, {3, 2}};

static void put_here(text_table *t, const paper_panel *p, const renyi_panel_row *row, size_t c)
{
    const double value = paper_panel_value(p, row, c);
    const panel_cell *cell = &p->cells[row->task][c];
    const int has_range = row->kind == RENYI_PANEL_TASK && isfinite(cell->range.low);
    const int is_outside =
        has_range && paper_panel_is_own(p) &&
        (row->figures[c] < cell->range.low || row->figures[c] > cell->range.high);

    if (!isfinite(value))
        text_table_cell(t, "%s", row->kind != RENYI_PANEL_TASK ? "-" : paper_state_name(p->state));
    else if (has_range)
        text_table_cell(t, "%.*f ±%.1f%s", (int)row->digits, value,
                        0.5 * (cell->range.high - cell->range.low), is_outside ? "!" : "");
    else
        text_table_cell(t, "%.*f", (int)row->digits, value);
}

static void put_row(text_table *t, const paper_panel *p, const group *g, uint32_t i)
{
    renyi_panel_row row;

    renyi_panel_get_row(p->place, i, &row);
    text_table_cell(t, "%s", row.title);
    for (size_t c = g->first; c < g->first + g->count; c++) {
        text_table_cell(t, "%.*f%s", (int)row.digits, row.figures[c], row.is_off[c] ? " c" : "");
        put_here(t, p, &row, c);
    }
}

static void put_heading(const paper_panel *p, int is_markdown)
{
    char *line;

    if (p->model)
        line = cli_format("%s %s the paper's %s", p->model, paper_panel_is_own(p) ? "as" : "beside",
                          p->table.model);
    else
        line =
            cli_format("%s: %s (renyi %s %s)", p->table.model, paper_state_name(p->state),
                       p->state == PAPER_NO_WEIGHTS ? "pull" : "vqa --json -m", p->table.weights);
    puts("");
    fputs(is_markdown ? "**" : "", stdout);
    cli_put_clean(stdout, line);
    puts(is_markdown ? "**" : "");
    free(line);
}

static void put_group(const paper_panel *p, const group *g, int is_markdown)
{
    const char *mark = p->table.about_tokens ? " a" : "";
    text_table t = {0};

    text_table_column(&t, TEXT_LEFT, "visual tokens%s", mark);
    for (size_t c = g->first; c < g->first + g->count; c++) {
        renyi_panel_column column;
        renyi_panel_get_column(p->place, c, &column);
        text_table_column(&t, TEXT_RIGHT, "%s%s %u", c ? column.method : "all",
                          strcmp(column.method, "Ours") == 0 ? " b" : "", column.tokens);
        text_table_column(&t, TEXT_CLOSE, "here");
    }
    for (uint32_t row = 0; row < p->table.n_rows; row++) put_row(&t, p, g, row);
    puts("");
    text_table_put(&t, is_markdown, 2);
}

static void put_panel(const paper_panel *p, int is_markdown)
{
    const renyi_panel *info = &p->table;

    if (is_markdown)
        printf("## Table %u: %s\n", info->number, info->title);
    else
        printf("%sTable %u: %s%s\n", cli_bold(stdout), info->number, info->title,
               cli_plain(stdout));
    put_heading(p, is_markdown);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        put_group(p, &groups[i], is_markdown);
    puts("");
    paper_put_note("a tokens: ", info->about_tokens, is_markdown);
    paper_put_note("b Ours: ", info->about_ours, is_markdown);
    paper_put_note("c Average: ", info->about_average, is_markdown);
    paper_put_note("Figures: ", info->about_figures, is_markdown);
    puts("");
}

void paper_panel_text(const paper_panels *list, int is_markdown)
{
    for (size_t i = 0; i < list->count; i++) put_panel(&list->items[i], is_markdown);
}

void paper_panel_legend(const paper_panels *list, int is_markdown)
{
    if (!list->count) return;
    paper_put_note("",
                   "LLaVA's tables: a column is the paper's, 'here' behind it what --results gave.",
                   is_markdown);
    if (paper_panels_are_measured(list))
        paper_put_note("",
                       "± is half of its 95 % interval, as 'renyi vqa' found it; '!': the paper's "
                       "figure for the same model lies outside of it.",
                       is_markdown);
}

/* ---- for machines ---------------------------------------------------------------------------- */

static const char *state_of(const paper_panel *p, const renyi_panel_row *row, size_t c)
{
    const int is_there = isfinite(paper_panel_value(p, row, c));
    if (is_there && row->kind == RENYI_PANEL_TASK && p->cells[row->task][c].is_reported)
        return "reported";
    return paper_state_name(is_there ? PAPER_RUN : p->state);
}

static json_t *row_json(const paper_panel *p, uint32_t i)
{
    renyi_panel_row row;
    renyi_vqa_task_info task;
    json_t *cells = json_array();

    renyi_panel_get_row(p->place, i, &row);
    renyi_vqa_get_task(row.task, &task);
    for (size_t c = 0; c < RENYI_PANEL_COLUMNS; c++) {
        const panel_cell *cell = &p->cells[row.task][c];
        const int is_task = row.kind == RENYI_PANEL_TASK;
        renyi_panel_column column;
        renyi_panel_get_column(p->place, c, &column);
        json_array_append_new(
            cells,
            json_pack("{s:s, s:I, s:s, s:f, s:b, s:s, s:o, s:[o, o], s:I}", "method", column.method,
                      "visual_tokens", (json_int_t)column.tokens, "policy", column.policy, "paper",
                      row.figures[c], "paper_is_off", row.is_off[c], "state", state_of(p, &row, c),
                      "score", json_number(paper_panel_value(p, &row, c)), "score_range",
                      json_number(is_task ? cell->range.low : NAN),
                      json_number(is_task ? cell->range.high : NAN), "questions",
                      (json_int_t)(is_task ? cell->questions : 0)));
    }
    return json_pack("{s:s, s:o, s:o}", "benchmark", row.title, "task",
                     json_text(row.kind == RENYI_PANEL_TASK ? task.name : NULL), "cells", cells);
}

json_t *paper_panel_json(const paper_panels *list)
{
    json_t *out = json_array();

    for (size_t i = 0; i < list->count; i++) {
        const paper_panel *p = &list->items[i];
        const renyi_panel *t = &p->table;
        json_t *rows = json_array();
        for (uint32_t row = 0; row < t->n_rows; row++)
            json_array_append_new(rows, row_json(p, row));
        json_array_append_new(
            out, json_pack("{s:i, s:s, s:s, s:s, s:s, s:o, s:{s:o, s:o, s:o, s:o}, s:o}", "table",
                           (int)t->number, "label", t->label, "title", t->title, "paper_model",
                           t->model, "weights", t->weights, "model", json_text(p->model), "notes",
                           "tokens", json_text(t->about_tokens), "ours", json_text(t->about_ours),
                           "average", json_text(t->about_average), "figures",
                           json_text(t->about_figures), "rows", rows));
    }
    return out;
}

/* The columns of paper_report_csv; a score stands where a top-1 does. */
static void put_cell(FILE *f, const paper_panel *p, const renyi_panel_row *row, size_t c)
{
    const panel_cell *cell = &p->cells[row->task][c];
    const int is_task = row->kind == RENYI_PANEL_TASK;
    renyi_panel_column column;

    renyi_panel_get_column(p->place, c, &column);
    fprintf(f, "%u,", p->table.number);
    csv_cell(f, p->table.model);
    fprintf(f, ",%s,", column.method);
    csv_cell(f, column.policy);
    putc(',', f);
    csv_real(f, (int)row->digits, row->figures[c]);
    putc(',', f);
    csv_cell(f, p->model ? p->model : "");
    fprintf(f, ",,%s,,", state_of(p, row, c));
    if (isfinite(paper_panel_value(p, row, c)))
        fprintf(f, ",%llu", (unsigned long long)(is_task ? cell->questions : 0));
    else
        putc(',', f);
    csv_real(f, 3, paper_panel_value(p, row, c));
    csv_real(f, 3, is_task ? cell->range.low : NAN);
    csv_real(f, 3, is_task ? cell->range.high : NAN);
    putc(',', f);
    csv_cell(f, row->title);
    putc('\n', f);
}

void paper_panel_csv(FILE *f, const paper_panels *list)
{
    for (size_t i = 0; i < list->count; i++)
        for (uint32_t r = 0; r < list->items[i].table.n_rows; r++) {
            renyi_panel_row row;
            renyi_panel_get_row(list->items[i].place, r, &row);
            for (size_t c = 0; c < RENYI_PANEL_COLUMNS; c++) put_cell(f, &list->items[i], &row, c);
        }
}
