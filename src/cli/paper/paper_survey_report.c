/* paper_survey_report.c - the paper's tables over datasets as text, Markdown, JSON and CSV.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/output.h"
#include "cli/paper/paper_given.h"
#include "cli/paper/paper_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns of one printed table: those with the same layers; the dense one is in the first. */
typedef struct group {
    size_t first, count;
} group;
static const group groups[] = {{0, 3}, {3, 2}};

static const survey_cell *cell_of(const paper_survey *s, uint32_t row, size_t column)
{
    return &s->cells[row * RENYI_SURVEY_COLUMNS + column];
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_here(text_table *t, const paper_survey *s, uint32_t row, size_t column)
{
    const survey_cell *cell = cell_of(s, row, column);
    const renyi_eval_result *r = &cell->result;
    renyi_survey_row figures;

    renyi_survey_get_row(s->place, row, &figures);
    const double mean = figures.collection ? NAN : paper_survey_mean(s, column);
    const int is_outside = paper_survey_is_own(s) && (figures.top1[column] < r->top1_range.low ||
                                                      figures.top1[column] > r->top1_range.high);
    if (cell->is_measured)
        text_table_cell(t, "%.*f ±%.1f%s", (int)s->table.digits, r->top1,
                        0.5 * (r->top1_range.high - r->top1_range.low), is_outside ? "!" : "");
    else if (isfinite(mean))
        text_table_cell(t, "%.*f", (int)s->table.digits, mean);
    else
        text_table_cell(t, "%s", figures.collection ? paper_state_name(s->state) : "-");
}

static void put_row(text_table *t, const paper_survey *s, uint32_t row, const group *g)
{
    renyi_survey_row r;

    renyi_survey_get_row(s->place, row, &r);
    text_table_cell(t, "%s", r.title);
    for (size_t c = g->first; c < g->first + g->count; c++) {
        text_table_cell(t, "%.*f%s", (int)s->table.digits, r.top1[c], r.is_off[c] ? " d" : "");
        put_here(t, s, row, c);
    }
}

static void put_costs(text_table *t, const paper_survey *s, const group *g)
{
    text_table_cell(t, "GFLOPs%s", s->table.about_gflops ? " e" : "");
    for (size_t c = g->first; c < g->first + g->count; c++) {
        renyi_survey_column column;
        renyi_survey_get_column(c, &column);
        text_table_cell(t, "%.1f", column.gflops);
        if (isfinite(s->gmacs_paper[c]))
            text_table_cell(t, "%.2f", s->gmacs_paper[c]);
        else
            text_table_cell(t, "-");
    }
}

static void put_group(const paper_survey *s, const group *g, int is_markdown)
{
    text_table t = {0};
    renyi_survey_column last;

    renyi_survey_get_column(g->first + g->count - 1, &last);
    text_table_column(&t, TEXT_LEFT, "layers %s%s", last.layers, g->first ? " c" : "");
    for (size_t c = g->first; c < g->first + g->count; c++) {
        renyi_survey_column column;
        renyi_survey_get_column(c, &column);
        const char *mark = !column.layers ? "" : strcmp(column.method, "TCA") == 0 ? " a" : " b";
        text_table_column(&t, TEXT_RIGHT, "%s%s", column.method, mark);
        text_table_column(&t, TEXT_CLOSE, "here");
    }
    for (uint32_t row = 0; row < s->table.n_rows; row++) put_row(&t, s, row, g);
    put_costs(&t, s, g);
    puts("");
    text_table_put(&t, is_markdown, 2);
}

static void put_heading(const paper_survey *s, int is_markdown)
{
    const renyi_survey *t = &s->table;
    char *line;

    if (s->model)
        line = cli_format("%s %s the paper's %s", s->model,
                          paper_survey_is_own(s) ? "as" : "beside", t->model);
    else
        line = cli_format("%s: %s (renyi %s %s)", t->model, paper_state_name(s->state),
                          s->state == PAPER_NO_WEIGHTS ? "pull" : "zeroshot --json -m", t->weights);
    paper_put_heading(line, is_markdown);
}

static void put_survey(const paper_survey *s, int is_markdown)
{
    const renyi_survey *t = &s->table;

    paper_put_title(t->number, t->title, is_markdown);
    put_heading(s, is_markdown);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        put_group(s, &groups[i], is_markdown);
    puts("");
    paper_put_note("a TCA: ", t->about_tca, is_markdown);
    paper_put_note("b Ours: ", t->about_ours, is_markdown);
    paper_put_note("c layers: ", t->about_layers, is_markdown);
    paper_put_note("d average: ", t->about_average, is_markdown);
    paper_put_note("e GFLOPs: ", t->about_gflops, is_markdown);
    paper_put_note("Figures: ", t->about_figures, is_markdown);
    puts("");
}

void paper_survey_text(const paper_surveys *list, int is_markdown)
{
    for (size_t i = 0; i < list->count; i++) put_survey(&list->items[i], is_markdown);
}

/* ---- JSON and CSV ---------------------------------------------------------------------------- */

static json_t *cell_json(const paper_survey *s, uint32_t row, size_t c)
{
    const survey_cell *cell = cell_of(s, row, c);
    renyi_survey_row r;
    renyi_survey_column column;

    renyi_survey_get_row(s->place, row, &r);
    renyi_survey_get_column(c, &column);
    json_t *out = json_pack("{s:s, s:o, s:s, s:b, s:f, s:b, s:s}", "method", column.method,
                            "layers", json_text(column.layers), "policy", column.policy, "adapted",
                            column.is_adapted, "paper_top1", r.top1[c], "paper_is_off", r.is_off[c],
                            "state", paper_state_name(cell->is_measured ? PAPER_RUN : s->state));
    if (!r.collection) json_object_set_new(out, "top1", json_number(paper_survey_mean(s, c)));
    if (!cell->is_measured) return out;
    json_object_set_new(out, "images", json_integer((json_int_t)cell->result.images));
    json_object_set_new(out, "failed", json_integer((json_int_t)cell->result.failed));
    json_object_set_new(out, "top1", json_number(cell->result.top1));
    json_object_set_new(
        out, "top1_range",
        json_pack("[f, f]", cell->result.top1_range.low, cell->result.top1_range.high));
    return out;
}

static json_t *row_json(const paper_survey *s, uint32_t row)
{
    json_t *cells = json_array();
    renyi_survey_row r;

    renyi_survey_get_row(s->place, row, &r);
    for (size_t c = 0; c < RENYI_SURVEY_COLUMNS; c++)
        json_array_append_new(cells, cell_json(s, row, c));
    return json_pack("{s:s, s:o, s:o}", "data_set", r.title, "collection", json_text(r.collection),
                     "cells", cells);
}

static json_t *costs_json(const paper_survey *s)
{
    json_t *list = json_array();

    for (size_t c = 0; c < RENYI_SURVEY_COLUMNS; c++) {
        renyi_survey_column column;
        renyi_survey_get_column(c, &column);
        json_array_append_new(list, json_pack("{s:s, s:f, s:o}", "policy", column.policy,
                                              "paper_gflops", column.gflops, "gmacs_paper",
                                              json_number(s->gmacs_paper[c])));
    }
    return list;
}

json_t *paper_survey_json(const paper_surveys *list)
{
    json_t *out = json_array();

    for (size_t i = 0; i < list->count; i++) {
        const paper_survey *s = &list->items[i];
        const renyi_survey *t = &s->table;
        json_t *rows = json_array();
        for (uint32_t row = 0; row < t->n_rows; row++)
            json_array_append_new(rows, row_json(s, row));
        json_array_append_new(
            out,
            json_pack(
                "{s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:s, s:o, s:{s:o, s:o, s:o, s:o, s:o, s:o}, s:o}",
                "table", (int)t->number, "label", t->label, "title", t->title, "paper_model",
                t->model, "weights", t->weights, "model", json_text(s->model), "architecture",
                json_text(s->architecture), "state", paper_state_name(s->state), "costs",
                costs_json(s), "notes", "tca", json_text(t->about_tca), "ours",
                json_text(t->about_ours), "layers", json_text(t->about_layers), "average",
                json_text(t->about_average), "gflops", json_text(t->about_gflops), "figures",
                json_text(t->about_figures), "rows", rows));
    }
    return out;
}

/* The columns of paper_report_csv. */
static void csv_survey_cell(FILE *f, const paper_survey *s, uint32_t row, size_t c)
{
    const survey_cell *cell = cell_of(s, row, c);
    renyi_survey_row r;
    renyi_survey_column column;

    renyi_survey_get_row(s->place, row, &r);
    renyi_survey_get_column(c, &column);
    fprintf(f, "%u,", s->table.number);
    csv_cell(f, s->table.model);
    fprintf(f, ",%s,", column.method);
    csv_cell(f, column.policy);
    csv_real(f, 1, column.gflops);
    csv_real(f, (int)s->table.digits, r.top1[c]);
    putc(',', f);
    csv_cell(f, s->model ? s->model : "");
    putc(',', f);
    csv_cell(f, s->model ? s->architecture : s->table.architecture);
    fprintf(f, ",%s,", paper_state_name(cell->is_measured ? PAPER_RUN : s->state));
    csv_real(f, 6, s->gmacs_paper[c]);
    if (cell->is_measured) {
        fprintf(f, ",%llu", (unsigned long long)cell->result.images);
        csv_real(f, 3, cell->result.top1);
        csv_real(f, 3, cell->result.top1_range.low);
        csv_real(f, 3, cell->result.top1_range.high);
    } else {
        fputs(",,,,", f);
    }
    putc(',', f);
    csv_cell(f, r.title);
    putc('\n', f);
}

void paper_survey_csv(FILE *f, const paper_surveys *list)
{
    for (size_t i = 0; i < list->count; i++)
        for (uint32_t row = 0; row < list->items[i].table.n_rows; row++)
            for (size_t c = 0; c < RENYI_SURVEY_COLUMNS; c++)
                csv_survey_cell(f, &list->items[i], row, c);
}
