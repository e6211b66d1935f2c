/* paper_survey.c - the paper's tables over datasets: results of renyi zeroshot put into them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/paper/paper_given.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Costs need no weights. Those that cannot be computed stay unknown. */
static void compute_costs(paper_survey *s)
{
    for (size_t c = 0; c < RENYI_SURVEY_COLUMNS; c++) {
        renyi_survey_column column;
        renyi_cost cost;
        renyi_survey_get_column(c, &column);
        const renyi_status status =
            renyi_policy_cost(NULL, s->table.architecture, column.policy, &cost, NULL, 0, NULL);
        s->gmacs_paper[c] = status == RENYI_OK ? cost.total.macs_paper * 1e-9 : NAN;
    }
}

static void add_survey(paper_surveys *list, size_t place)
{
    list->items = cli_grow(list->items, list->count + 1, sizeof *list->items);
    paper_survey *s = &list->items[list->count++];
    *s = (paper_survey){.place = place};
    renyi_survey_get(place, &s->table);
    s->state = paper_in_cache(s->table.weights) ? PAPER_NOT_RUN : PAPER_NO_WEIGHTS;
    s->cells = cli_grow(NULL, (size_t)s->table.n_rows * RENYI_SURVEY_COLUMNS, sizeof *s->cells);
    for (size_t i = 0; i < (size_t)s->table.n_rows * RENYI_SURVEY_COLUMNS; i++)
        s->cells[i] = (survey_cell){.is_measured = 0};
    compute_costs(s);
}

void paper_surveys_make(paper_surveys *list, const paper_arguments *a)
{
    for (size_t i = 0; i < renyi_survey_count(); i++) {
        renyi_survey table;
        renyi_survey_get(i, &table);
        if (paper_wants_given(a, table.number)) add_survey(list, i);
    }
}

void paper_surveys_free(paper_surveys *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].cells);
        free(list->items[i].model);
        free(list->items[i].architecture);
    }
    free(list->items);
    *list = (paper_surveys){0};
}

double paper_survey_mean(const paper_survey *s, size_t column)
{
    double sum = 0;
    uint32_t n = 0;

    for (uint32_t row = 0; row < s->table.n_rows; row++) {
        const survey_cell *cell = &s->cells[row * RENYI_SURVEY_COLUMNS + column];
        renyi_survey_row r;
        renyi_survey_get_row(s->place, row, &r);
        if (!r.collection) continue;
        if (!cell->is_measured) return NAN;
        sum += cell->result.top1;
        n++;
    }
    return n ? sum / n : NAN;
}

int paper_survey_is_own(const paper_survey *s)
{
    return s->model && strcmp(s->architecture, s->table.architecture) == 0;
}

int paper_surveys_are_measured(const paper_surveys *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].model) return 1;
    return 0;
}

/* ---- results of renyi zeroshot --------------------------------------------------------------- */

/* A results file while it is taken. */
typedef struct source {
    const char *file;
    const json_t *document;
    const char *collection, *model, *architecture; /* borrowed from it */
    size_t n_taken;                                /* cells that it fills */
} source;

static int is_column(const source *s, const json_t *result, const renyi_survey_column *column)
{
    const char *policy = paper_json_string(result, "policy"),
               *own = paper_json_string(result, "adapt");
    const int is_adapted = own || paper_json_string(s->document, "adapt");

    return policy && !is_adapted == !column->is_adapted &&
           paper_same_policy(policy, column->policy);
}

/* ---- a result -------------------------------------------------------------------------------- */

static int take_result(const source *s, const json_t *result, survey_cell *cell)
{
    const json_t *top1 = json_object_get(result, "top1"),
                 *range = json_object_get(result, "top1_range"),
                 *images = json_object_get(result, "images"),
                 *failed = json_object_get(result, "failed");

    if (!json_is_number(top1) || json_array_size(range) != 2 || json_integer_value(images) < 1 ||
        json_integer_value(failed) < 0) {
        cli_error("%s: a result without images, top1 and top1_range", s->file);
        return CLI_FAILED;
    }
    if (cell->is_measured) {
        cli_error("%s: a second result of %s with '%s'; give only one", s->file, s->collection,
                  paper_json_string(result, "policy"));
        return CLI_FAILED;
    }
    cell->is_measured = 1;
    cell->result = (renyi_eval_result){.images = (uint64_t)json_integer_value(images),
                                       .failed = (uint64_t)json_integer_value(failed),
                                       .top1 = json_number_value(top1),
                                       .top1_range = {json_number_value(json_array_get(range, 0)),
                                                      json_number_value(json_array_get(range, 1))}};
    return CLI_OK;
}

/* The column of a result; RENYI_SURVEY_COLUMNS = none. Both tables have the same columns. */
static size_t column_of(const source *s, const json_t *result)
{
    size_t c = 0;
    for (; c < RENYI_SURVEY_COLUMNS; c++) {
        renyi_survey_column column;
        renyi_survey_get_column(c, &column);
        if (is_column(s, result, &column)) break;
    }
    return c;
}

/* What the tables cannot use is reported: another setting is easily mistaken for the paper's. */
static void note_unused(const source *s, const json_t *result)
{
    const char *policy = paper_json_string(result, "policy");
    cli_note("%s: '%s' is in no column; the columns are none and, with --adapt tca, paper:tca and "
             "paper:tca-ours, also with layers=0,3,6",
             s->file, policy ? policy : "?");
}

static int take_row(source *s, paper_survey *survey, uint32_t row)
{
    const json_t *results = json_object_get(s->document, "results"), *result;
    size_t i;

    json_array_foreach(results, i, result)
    {
        const size_t c = column_of(s, result);
        if (c == RENYI_SURVEY_COLUMNS) {
            note_unused(s, result);
            continue;
        }
        const int code = take_result(s, result, &survey->cells[row * RENYI_SURVEY_COLUMNS + c]);
        if (code != CLI_OK) return code;
        s->n_taken++;
    }
    return CLI_OK;
}

/* ---- a document ------------------------------------------------------------------------------ */

/* All results of a table must be of one model. */
static int take_model(const source *s, paper_survey *survey)
{
    if (!survey->model) {
        survey->model = cli_copy(s->model);
        survey->architecture = cli_copy(s->architecture);
        survey->state = PAPER_NOT_RUN;
    }
    if (strcmp(survey->model, s->model) == 0) return CLI_OK;
    cli_error("%s: results of '%s', but earlier ones are of '%s'; a table is of one model", s->file,
              s->model, survey->model);
    return CLI_FAILED;
}

int paper_surveys_take(paper_surveys *list, const char *file, const json_t *document)
{
    source from = {.file = file, .document = document}, *s = &from;
    int code = CLI_OK;

    s->collection = paper_json_string(s->document, "collection");
    s->model = paper_json_string(s->document, "model");
    s->architecture = paper_json_string(s->document, "architecture");
    if (!s->collection || !s->model || !s->architecture ||
        !json_is_array(json_object_get(s->document, "results"))) {
        cli_error("%s: not the JSON of renyi zeroshot on a known dataset: 'collection', 'model', "
                  "'architecture' and 'results' are needed",
                  s->file);
        return CLI_FAILED;
    }
    for (size_t i = 0; i < list->count; i++)
        for (uint32_t row = 0; code == CLI_OK && row < list->items[i].table.n_rows; row++) {
            renyi_survey_row r;
            renyi_survey_get_row(list->items[i].place, row, &r);
            if (!r.collection || strcmp(r.collection, s->collection) != 0) continue;
            code = take_model(s, &list->items[i]);
            if (code == CLI_OK) code = take_row(s, &list->items[i], row);
        }
    if (code == CLI_OK && !s->n_taken)
        cli_note("%s: no result for these tables (%s)", s->file, s->collection);
    return code;
}
