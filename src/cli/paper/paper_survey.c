/* paper_survey.c - see paper_survey.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/paper/paper_survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int is_wanted(const paper_arguments *a, uint32_t number)
{
    for (uint32_t i = 0; i < a->n_surveys; i++)
        if (a->surveys[i] == number) return 1;
    return !a->n_surveys && !a->n_tables && !a->n_panels;
}

/* Costs need no weights. What this program cannot price stays unknown. */
static void price(paper_survey *s)
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

static void add(paper_surveys *list, size_t place)
{
    list->items = cli_grow(list->items, list->count + 1, sizeof *list->items);
    paper_survey *s = &list->items[list->count++];
    *s = (paper_survey){.place = place};
    renyi_survey_get(place, &s->table);
    s->state = paper_in_cache(s->table.weights) ? PAPER_NOT_RUN : PAPER_NO_WEIGHTS;
    s->cells = cli_grow(NULL, (size_t)s->table.n_rows * RENYI_SURVEY_COLUMNS, sizeof *s->cells);
    for (size_t i = 0; i < (size_t)s->table.n_rows * RENYI_SURVEY_COLUMNS; i++)
        s->cells[i] = (survey_cell){.is_measured = 0};
    price(s);
}

void paper_surveys_make(paper_surveys *list, const paper_arguments *a)
{
    for (size_t i = 0; i < renyi_survey_count(); i++) {
        renyi_survey table;
        renyi_survey_get(i, &table);
        if (is_wanted(a, table.number)) add(list, i);
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
