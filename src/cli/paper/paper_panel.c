/* paper_panel.c - the paper's tables of LLaVA: takes results of renyi vqa; text, JSON, CSV.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/paper/paper_given.h"

#include "cli/kit/output.h"
#include "cli/paper/paper_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_panel(paper_panels *list, size_t place)
{
    list->items = cli_grow(list->items, list->count + 1, sizeof *list->items);
    paper_panel *p = &list->items[list->count++];
    *p = (paper_panel){.place = place};
    renyi_panel_get(place, &p->table);
    p->state = paper_in_cache(p->table.weights) ? PAPER_NOT_RUN : PAPER_NO_WEIGHTS;
    for (int task = 0; task < RENYI_VQA_TASKS; task++)
        for (size_t c = 0; c < RENYI_PANEL_COLUMNS; c++)
            p->cells[task][c] = (panel_cell){.score = NAN, .range = {NAN, NAN}};
}

void paper_panels_make(paper_panels *list, const paper_arguments *a)
{
    for (size_t i = 0; i < renyi_panel_count(); i++) {
        renyi_panel p;
        renyi_panel_get(i, &p);
        if (paper_wants_given(a, p.number)) add_panel(list, i);
    }
}

void paper_panels_free(paper_panels *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->items[i].model);
    free(list->items);
    *list = (paper_panels){0};
}

/* Are the results of the paper's own model? */
static int is_own_model(const paper_panel *p)
{
    return p->model && (strstr(p->model, "llava-1.5-7b") || strstr(p->model, "llava-v1.5-7b"));
}

int paper_panels_are_measured(const paper_panels *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].model) return 1;
    return 0;
}

static double average(const paper_panel *p, size_t column)
{
    double scores[RENYI_VQA_TASKS];

    for (int task = 0; task < RENYI_VQA_TASKS; task++) scores[task] = p->cells[task][column].score;
    return renyi_panel_average(scores);
}

/* The value of a row: a task's score, or Average and Rel if all tasks were run; else NaN. */
static double value_of(const paper_panel *p, const renyi_panel_row *row, size_t column)
{
    if (row->kind == RENYI_PANEL_TASK) return p->cells[row->task][column].score;
    if (row->kind == RENYI_PANEL_AVERAGE) return average(p, column);
    return 100 * average(p, column) / average(p, 0);
}

/* ---- results ------------------------------------------------------------------------------- */

/* All results of a table must be of one model. */
static int take_model(paper_panel *p, const char *model, const char *file)
{
    if (!p->model) p->model = cli_copy(model);
    p->state = PAPER_NOT_RUN;
    if (strcmp(p->model, model) == 0) return CLI_OK;
    cli_error("%s: results of '%s', but earlier ones are of '%s'; a table is of one model", file,
              model, p->model);
    return CLI_FAILED;
}

static int take_result(paper_panel *p, renyi_vqa_task task, const json_t *result, const char *file,
                       size_t *n_taken)
{
    const json_t *range = json_object_get(result, "score_range");
    const json_t *low = json_array_get(range, 0), *high = json_array_get(range, 1);
    const char *policy = paper_json_string(result, "policy"),
               *from = paper_json_string(result, "score_from"),
               *model = paper_json_string(result, "model");

    for (size_t c = 0; policy && c < RENYI_PANEL_COLUMNS; c++) {
        panel_cell *cell = &p->cells[task][c];
        renyi_panel_column column;
        renyi_panel_get_column(p->place, c, &column);
        if (!paper_same_policy(policy, column.policy)) continue;
        if (isfinite(cell->score)) {
            cli_error("%s: a second result of %s with '%s'; give only one", file, p->table.title,
                      policy);
            return CLI_FAILED;
        }
        const int code = take_model(p, model ? model : "", file);
        if (code != CLI_OK) return code;
        *cell = (panel_cell){.score = json_number_value(json_object_get(result, "score")),
                             .range = {json_is_number(low) ? json_number_value(low) : NAN,
                                       json_is_number(high) ? json_number_value(high) : NAN},
                             .questions =
                                 (uint64_t)json_integer_value(json_object_get(result, "scored")),
                             .is_reported = from && strcmp(from, "reported") == 0};
        ++*n_taken;
    }
    return CLI_OK;
}

/* Is it the policy of a column, be its table asked for or not? */
static int is_known_policy(const char *policy)
{
    for (size_t i = 0; i < renyi_panel_count(); i++)
        for (size_t c = 0; c < RENYI_PANEL_COLUMNS; c++) {
            renyi_panel_column column;
            renyi_panel_get_column(i, c, &column);
            if (paper_same_policy(policy, column.policy)) return 1;
        }
    return 0;
}

/* What the tables cannot use is reported: another setting is easily mistaken for the paper's. */
static void note_unused(const json_t *results, const char *file)
{
    const json_t *result;
    size_t k;

    json_array_foreach(results, k, result)
    {
        const char *policy = paper_json_string(result, "policy");
        if (policy && !is_known_policy(policy))
            cli_note("%s: '%s' is in no column; the columns are none, paper:prumerge and "
                     "paper:prumerge-ours (Table 6), paper:vispruner and paper:vispruner-ours "
                     "(Table 12), each also with tokens=256",
                     file, policy);
    }
}

int paper_panels_take(paper_panels *list, const char *file, const json_t *document)
{
    const json_t *results = json_object_get(document, "results"), *result;
    const char *name = paper_json_string(document, "task");
    renyi_vqa_task task;
    size_t k, n_taken = 0;

    if (!name || renyi_vqa_find_task(name, &task, NULL) != RENYI_OK || !json_is_array(results)) {
        cli_error("%s: not the JSON of renyi vqa: 'task' and 'results' are needed", file);
        return CLI_FAILED;
    }
    for (size_t i = 0; i < list->count; i++) json_array_foreach(results, k, result)
        {
            if (!json_is_number(json_object_get(result, "score"))) continue;
            const int code = take_result(&list->items[i], task, result, file, &n_taken);
            if (code != CLI_OK) return code;
        }
    note_unused(results, file);
    if (!n_taken) cli_note("%s: no result for these tables (%s)", file, name);
    return CLI_OK;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Columns of one printed table: those with the same number of tokens; the dense one is in the
 * first. */
typedef struct group {
    size_t first, count;
} group;
static const group groups[] = {{0, 3}, {3, 2}};

static void put_here(text_table *t, const paper_panel *p, const renyi_panel_row *row, size_t c)
{
    const double value = value_of(p, row, c);
    const panel_cell *cell = &p->cells[row->task][c];
    const int has_range = row->kind == RENYI_PANEL_TASK && isfinite(cell->range.low);
    const int is_outside =
        has_range && is_own_model(p) &&
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
        line = cli_format("%s %s the paper's %s", p->model, is_own_model(p) ? "as" : "beside",
                          p->table.model);
    else
        line =
            cli_format("%s: %s (renyi %s %s)", p->table.model, paper_state_name(p->state),
                       p->state == PAPER_NO_WEIGHTS ? "pull" : "vqa --json -m", p->table.weights);
    paper_put_heading(line, is_markdown);
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

    paper_put_title(info->number, info->title, is_markdown);
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

/* ---- JSON and CSV ---------------------------------------------------------------------------- */

static const char *state_of(const paper_panel *p, const renyi_panel_row *row, size_t c)
{
    const int is_there = isfinite(value_of(p, row, c));
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
                      "score", json_number(value_of(p, &row, c)), "score_range",
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

/* The columns of paper_report_csv; the score is in the column of top-1. */
static void csv_panel_cell(FILE *f, const paper_panel *p, const renyi_panel_row *row, size_t c)
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
    if (isfinite(value_of(p, row, c)))
        fprintf(f, ",%llu", (unsigned long long)(is_task ? cell->questions : 0));
    else
        putc(',', f);
    csv_real(f, 3, value_of(p, row, c));
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
            for (size_t c = 0; c < RENYI_PANEL_COLUMNS; c++)
                csv_panel_cell(f, &list->items[i], &row, c);
        }
}
