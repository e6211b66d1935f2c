/* paper_panel.c - see paper_panel.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/paper/paper_panel.h"

#include "cli/paper/paper_survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int paper_is_panel(uint32_t number)
{
    for (size_t i = 0; i < renyi_panel_count(); i++) {
        renyi_panel p;
        renyi_panel_get(i, &p);
        if (p.number == number) return 1;
    }
    return 0;
}

static int is_wanted(const paper_arguments *a, uint32_t number)
{
    for (uint32_t i = 0; i < a->n_panels; i++)
        if (a->panels[i] == number) return 1;
    return !a->n_panels && !a->n_surveys && !a->n_tables;
}

static void add(paper_panels *list, size_t place)
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
        if (is_wanted(a, p.number)) add(list, i);
    }
}

void paper_panels_free(paper_panels *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->items[i].model);
    free(list->items);
    *list = (paper_panels){0};
}

int paper_panel_is_own(const paper_panel *p)
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

double paper_panel_value(const paper_panel *p, const renyi_panel_row *row, size_t column)
{
    if (row->kind == RENYI_PANEL_TASK) return p->cells[row->task][column].score;
    if (row->kind == RENYI_PANEL_AVERAGE) return average(p, column);
    return 100 * average(p, column) / average(p, 0);
}

/* ---- results ------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* One model for all of a table. */
static int take_model(paper_panel *p, const char *model, const char *file)
{
    if (!p->model) p->model = cli_copy(model);
    p->state = PAPER_NOT_RUN;
    if (strcmp(p->model, model) == 0) return CLI_OK;
    cli_error("%s: results of '%s', but those before are of '%s'; a table is about one model", file,
              model, p->model);
    return CLI_FAILED;
}

static int take_result(paper_panel *p, renyi_vqa_task task, const json_t *result, const char *file,
                       size_t *n_taken)
{
    const json_t *range = json_object_get(result, "score_range");
    const json_t *low = json_array_get(range, 0), *high = json_array_get(range, 1);
    const char *policy = text_of(result, "policy"), *from = text_of(result, "score_from"),
               *model = text_of(result, "model");

    for (size_t c = 0; policy && c < RENYI_PANEL_COLUMNS; c++) {
        panel_cell *cell = &p->cells[task][c];
        renyi_panel_column column;
        renyi_panel_get_column(p->place, c, &column);
        if (!paper_same_policy(policy, column.policy)) continue;
        if (isfinite(cell->score)) {
            cli_error("%s: a second result of %s with '%s'; give one of each", file, p->table.title,
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

int paper_panels_take(paper_panels *list, const char *file, const json_t *document)
{
    const json_t *results = json_object_get(document, "results"), *result;
    const char *name = text_of(document, "task");
    renyi_vqa_task task;
    size_t k, n_taken = 0;

    if (!name || renyi_vqa_find_task(name, &task, NULL) != RENYI_OK || !json_is_array(results)) {
        cli_error("%s: not the JSON that renyi vqa writes: 'task' and 'results' are wanted", file);
        return CLI_FAILED;
    }
    for (size_t i = 0; i < list->count; i++) json_array_foreach(results, k, result)
        {
            if (!json_is_number(json_object_get(result, "score"))) continue;
            const int code = take_result(&list->items[i], task, result, file, &n_taken);
            if (code != CLI_OK) return code;
        }
    if (!n_taken) cli_note("%s: nothing of these tables in it (%s)", file, name);
    return CLI_OK;
}
