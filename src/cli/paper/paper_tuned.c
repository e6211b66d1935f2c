/* paper_tuned.c - the paper's Table 13 (fine-tuning): takes runs of renyi train; text, JSON, CSV.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/paper/paper_given.h"

#include "cli/kit/output.h"
#include "cli/paper/paper_report.h"
#include "cli/shared/models.h"

#include "renyi/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ------------------------------------------------------------------------------------ */

static void add_row(paper_tuned *p, uint32_t row, int no_mosaic)
{
    renyi_paper_row r;
    renyi_cost cost;

    renyi_tuned_get_row(row, &r);
    p->gmacs_paper[row] = NAN;
    for (int m = 0; m < RENYI_PAPER_METHODS; m++) {
        tuned_cell *cell = &p->cells[row][m];
        *cell = (tuned_cell){.top1 = NAN, .best_top1 = NAN, .epochs = NAN, .range = {NAN, NAN}};
        if (no_mosaic && m == RENYI_PAPER_MOSAIC) continue;
        renyi_tuned_policy(row, (renyi_paper_method)m, cell->policy);
        if (m == RENYI_PAPER_CLS &&
            renyi_policy_cost(NULL, r.architecture, cell->policy, &cost, NULL, 0, NULL) == RENYI_OK)
            p->gmacs_paper[row] = cost.total.macs_paper * 1e-9;
    }
}

void paper_tuned_make(paper_tuned *p, const paper_arguments *a)
{
    renyi_paper_row first;

    *p = (paper_tuned){.is_wanted = paper_wants_given(a, RENYI_TUNED_TABLE)};
    renyi_tuned_get(&p->table);
    renyi_tuned_get_row(0, &first);
    p->state = paper_in_cache(first.weights) ? PAPER_NOT_RUN : PAPER_NO_WEIGHTS;
    for (uint32_t row = 0; row < p->table.n_rows && row < PAPER_TUNED_ROWS; row++)
        add_row(p, row, a->no_mosaic);
}

void paper_tuned_free(paper_tuned *p)
{
    for (uint32_t row = 0; row < PAPER_TUNED_ROWS; row++)
        for (int m = 0; m < RENYI_PAPER_METHODS; m++) free(p->cells[row][m].run);
    free(p->model);
    free(p->architecture);
    *p = (paper_tuned){0};
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* All runs of the table must begin with the same weights. */
static int take_model(paper_tuned *p, const renyi_run_info *run)
{
    const char *model = run->model ? run->model : "";

    if (!p->model) {
        p->model = cli_copy(model);
        p->architecture = cli_copy(run->architecture ? run->architecture : "");
        p->state = PAPER_NOT_RUN;
    }
    if (strcmp(p->model, model) == 0) return CLI_OK;
    cli_error("%s: a run that began with '%s', but earlier ones began with '%s'; a table is of one "
              "model",
              run->path, model, p->model);
    return CLI_FAILED;
}

static void fill_cell(tuned_cell *cell, const renyi_run_info *run)
{
    const double right = nearbyint(run->top1 / 100 * (double)run->n_val);

    cell->run = cli_copy(run->path);
    cell->top1 = run->top1;
    cell->best_top1 = run->best_top1;
    cell->epochs = run->top1_epoch;
    cell->images = run->n_val;
    if (!run->n_val || !(right >= 0 && right <= (double)run->n_val)) return;
    const renyi_interval share = renyi_stats_interval((uint64_t)right, run->n_val);
    cell->range = (renyi_interval){100 * share.low, 100 * share.high};
}

static int take_cell(paper_tuned *p, tuned_cell *cell, const renyi_run_info *run)
{
    if (!(run->top1_epoch > 0)) {
        cli_error("%s: no accuracy after its first update; a run with --val-dir DIR has one after "
                  "every epoch",
                  run->path);
        return CLI_FAILED;
    }
    if (cell->run) {
        cli_error("%s: a second run with '%s' after %s; give only one", run->path, run->policy,
                  cell->run);
        return CLI_FAILED;
    }
    const int code = take_model(p, run);
    if (code == CLI_OK) fill_cell(cell, run);
    return code;
}

static int take_run(paper_tuned *p, const renyi_run_info *run)
{
    for (uint32_t row = 0; run->policy && row < p->table.n_rows; row++)
        for (int m = 0; m < RENYI_PAPER_METHODS; m++) {
            tuned_cell *cell = &p->cells[row][m];
            if (*cell->policy && paper_same_policy(run->policy, cell->policy))
                return take_cell(p, cell, run);
        }
    cli_note("%s: '%s' is in no column; the columns are paper:evit, paper:evit-ours and "
             "paper:evit-random, also with -036 at the end",
             run->path, run->policy ? run->policy : "?");
    return CLI_OK;
}

int paper_tuned_take(paper_tuned *p, const char *path)
{
    renyi_error err = {0};
    renyi_run_log *log = NULL;
    renyi_run_info run;

    if (renyi_run_log_open(&log, path, NULL, &err) != RENYI_OK) return cli_fail(&err);
    renyi_run_log_get_info(log, &run);
    int code = CLI_OK;
    if (p->is_wanted)
        code = take_run(p, &run);
    else
        cli_note("%s: no result for these tables (a run of renyi train)", path);
    renyi_run_log_free(log);
    return code;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Is it the paper's experiment: its model, trained as long? */
static int is_own(const paper_tuned *p, const renyi_paper_row *r, const tuned_cell *cell)
{
    return p->architecture && strcmp(p->architecture, r->architecture) == 0 &&
           cell->epochs >= RENYI_TUNED_EPOCHS;
}

static void put_accuracy(text_table *t, const paper_tuned *p, const renyi_paper_row *r, int m,
                         const tuned_cell *cell)
{
    const int digits = (int)p->table.digits;
    const double paper = r->top1[m];

    if (!cell->run)
        text_table_cell(t, "%s", paper_state_name(p->state));
    else if (!isfinite(cell->range.low))
        text_table_cell(t, "%.*f", digits, cell->top1);
    else
        text_table_cell(
            t, "%.*f ±%.1f%s", digits, cell->top1, 0.5 * (cell->range.high - cell->range.low),
            is_own(p, r, cell) && (paper < cell->range.low || paper > cell->range.high) ? "!" : "");
}

static void put_row(text_table *t, const paper_tuned *p, uint32_t row, int is_markdown)
{
    renyi_paper_row r;

    renyi_tuned_get_row(row, &r);
    text_table_cell(t, "%.1f", r.keep);
    text_table_cell(t, "%s", r.layers);
    text_table_cell(t, "%.1f", r.gflops);
    text_table_cell(t, "%.2f", p->gmacs_paper[row]);
    for (int m = 0; m < RENYI_PAPER_METHODS; m++) {
        const tuned_cell *cell = &p->cells[row][m];
        if (!*cell->policy) continue;
        if (m != RENYI_PAPER_MOSAIC)
            text_table_cell(t, "%.*f", (int)p->table.digits, r.top1[m]);
        else if (!is_markdown)
            text_table_cell(t, "|");
        put_accuracy(t, p, &r, m, cell);
    }
}

static const char *const short_names[RENYI_PAPER_METHODS] = {"CLS", "Ours", "Random", "mosaic"};

static void put_figures(const paper_tuned *p, int is_markdown)
{
    static const char *const marks[RENYI_PAPER_METHODS] = {"", " a", " b", ""};
    text_table t = {0};

    text_table_column(&t, TEXT_LEFT, "keep");
    text_table_column(&t, TEXT_LEFT, "layers");
    text_table_column(&t, TEXT_RIGHT, "GFLOPs");
    text_table_column(&t, TEXT_CLOSE, "here");
    for (int m = 0; m < RENYI_PAPER_METHODS; m++) {
        const int is_mosaic = m == RENYI_PAPER_MOSAIC;
        if (!*p->cells[0][m].policy) continue;
        if (!is_mosaic)
            text_table_column(&t, TEXT_RIGHT, "%s%s", short_names[m], marks[m]);
        else if (!is_markdown)
            text_table_column(&t, TEXT_LEFT, "|");
        text_table_column(&t, TEXT_CLOSE, "%s", is_mosaic ? "mosaic" : "here");
    }
    for (uint32_t row = 0; row < p->table.n_rows; row++) put_row(&t, p, row, is_markdown);
    text_table_put(&t, is_markdown, 2);
}

/* What the figures of the runs are: epochs differ, and the last one need not be the best. */
static void put_runs(const paper_tuned *p, int is_markdown)
{
    text_table t = {0};

    text_table_column(&t, TEXT_LEFT, "layers");
    text_table_column(&t, TEXT_LEFT, "column");
    text_table_column(&t, TEXT_RIGHT, "epochs");
    text_table_column(&t, TEXT_RIGHT, "images");
    text_table_column(&t, TEXT_RIGHT, "top-1 %%");
    text_table_column(&t, TEXT_RIGHT, "best");
    text_table_column(&t, TEXT_LEFT, "run");
    for (uint32_t row = 0; row < p->table.n_rows; row++) {
        renyi_paper_row r;
        renyi_tuned_get_row(row, &r);
        for (int m = 0; m < RENYI_PAPER_METHODS; m++) {
            const tuned_cell *cell = &p->cells[row][m];
            if (!cell->run) continue;
            text_table_cell(&t, "%s", r.layers);
            text_table_cell(&t, "%s", short_names[m]);
            text_table_cell(&t, "%.4g", cell->epochs);
            text_table_cell(&t, "%llu", (unsigned long long)cell->images);
            text_table_cell(&t, "%.2f", cell->top1);
            text_table_cell(&t, "%.2f", cell->best_top1);
            text_table_cell(&t, "%s", cell->run);
        }
    }
    puts("");
    text_table_put(&t, is_markdown, 2);
}

static void put_heading(const paper_tuned *p, int is_markdown)
{
    renyi_paper_row r;
    char *line;

    renyi_tuned_get_row(0, &r);
    if (p->model) {
        char *title = model_path_title(p->model);
        line = cli_format("%s %s the paper's %s", title,
                          strcmp(p->architecture, r.architecture) == 0 ? "as" : "beside", r.model);
        free(title);
    } else if (p->state == PAPER_NO_WEIGHTS) {
        line = cli_format("%s: no weights (renyi pull %s)", r.model, r.weights);
    } else {
        line =
            cli_format("%s: not run (renyi train --recipe paper-evit -m %s)", r.model, r.weights);
    }
    paper_put_heading(line, is_markdown);
    if (is_markdown) puts("");
}

void paper_tuned_text(const paper_tuned *p, int is_markdown)
{
    if (!p->is_wanted) return;
    paper_put_title(p->table.number, p->table.title, is_markdown);
    put_heading(p, is_markdown);
    put_figures(p, is_markdown);
    if (p->model) put_runs(p, is_markdown);
    puts("");
    paper_put_note("a Ours: ", p->table.about_ours, is_markdown);
    paper_put_note("b Random: ", p->table.about_random, is_markdown);
    paper_put_note("Runs: ",
                   "renyi train --recipe paper-evit (CLS, 0,3,6), --recipe paper-evit-ours (Ours, "
                   "0,3,6), or one of them with --prune paper:evit, paper:evit-ours (3,6,9), "
                   "paper:evit-random-036, paper:evit-random. 'here' is the last epoch's top-1 of "
                   "the weights themselves, as EViT's script has it, not of their running mean",
                   is_markdown);
    puts("");
}

/* ---- JSON and CSV ---------------------------------------------------------------------------- */

static const char *state_of(const paper_tuned *p, const tuned_cell *cell)
{
    return paper_state_name(cell->run ? PAPER_RUN : p->state);
}

static json_t *cell_json(const paper_tuned *p, const renyi_paper_row *r, int m,
                         const tuned_cell *cell)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:[o, o], s:I, s:o, s:o}", "method",
                     paper_method_name((renyi_paper_method)m), "name", p->table.methods[m],
                     "policy", cell->policy, "paper_top1", json_number(r->top1[m]), "state",
                     state_of(p, cell), "run", json_text(cell->run), "top1",
                     json_number(cell->top1), "top1_range", json_number(cell->range.low),
                     json_number(cell->range.high), "images", (json_int_t)cell->images, "epochs",
                     json_number(cell->epochs), "best_top1", json_number(cell->best_top1));
}

static json_t *row_json(const paper_tuned *p, uint32_t row)
{
    renyi_paper_row r;
    json_t *cells = json_array();

    renyi_tuned_get_row(row, &r);
    for (int m = 0; m < RENYI_PAPER_METHODS; m++)
        if (*p->cells[row][m].policy)
            json_array_append_new(cells, cell_json(p, &r, m, &p->cells[row][m]));
    return json_pack("{s:f, s:s, s:f, s:o, s:o}", "keep", r.keep, "layers", r.layers,
                     "paper_gflops", r.gflops, "gmacs_paper", json_number(p->gmacs_paper[row]),
                     "cells", cells);
}

json_t *paper_tuned_json(const paper_tuned *p)
{
    renyi_paper_row r;
    json_t *rows = json_array();

    if (!p->is_wanted) {
        json_decref(rows);
        return json_null();
    }
    renyi_tuned_get_row(0, &r);
    for (uint32_t row = 0; row < p->table.n_rows; row++)
        json_array_append_new(rows, row_json(p, row));
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:i, s:o, s:o, s:{s:o, s:o, s:o}, s:o}", "table",
                     (int)p->table.number, "label", p->table.label, "title", p->table.title,
                     "paper_model", r.model, "weights", r.weights, "paper_epochs",
                     RENYI_TUNED_EPOCHS, "model", json_text(p->model), "architecture",
                     json_text(p->architecture), "notes", "ours", json_text(p->table.about_ours),
                     "random", json_text(p->table.about_random), "photos",
                     json_text(p->table.about_photos), "rows", rows);
}

/* The columns of paper_report_csv. */
static void csv_tuned_cell(FILE *f, const paper_tuned *p, uint32_t row, int m)
{
    const tuned_cell *cell = &p->cells[row][m];
    renyi_paper_row r;

    if (!*cell->policy) return;
    renyi_tuned_get_row(row, &r);
    fprintf(f, "%u,", p->table.number);
    csv_cell(f, r.model);
    fprintf(f, ",%s,", paper_method_name((renyi_paper_method)m));
    csv_cell(f, cell->policy);
    csv_real(f, 1, r.gflops);
    csv_real(f, (int)p->table.digits, r.top1[m]);
    putc(',', f);
    csv_cell(f, p->model ? p->model : "");
    putc(',', f);
    csv_cell(f, p->architecture ? p->architecture : r.architecture);
    fprintf(f, ",%s,", state_of(p, cell));
    csv_real(f, 6, m == RENYI_PAPER_MOSAIC ? NAN : p->gmacs_paper[row]);
    if (cell->run)
        fprintf(f, ",%llu", (unsigned long long)cell->images);
    else
        putc(',', f);
    csv_real(f, 3, cell->top1);
    csv_real(f, 3, cell->range.low);
    csv_real(f, 3, cell->range.high);
    fputs(",\n", f);
}

void paper_tuned_csv(FILE *f, const paper_tuned *p)
{
    for (uint32_t row = 0; p->is_wanted && row < p->table.n_rows; row++)
        for (int m = 0; m < RENYI_PAPER_METHODS; m++) csv_tuned_cell(f, p, row, m);
}
