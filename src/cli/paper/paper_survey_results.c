/* paper_survey_results.c - what renyi zeroshot wrote as JSON, into the tables over data sets.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/files.h"
#include "cli/paper/paper_survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const size_t max_bytes = 64u << 20;

/* A document and where it is from. */
typedef struct source {
    const char *file;
    const json_t *document;
    const char *collection, *model, *architecture; /* borrowed from it */
    size_t n_taken;                                /* cells that it filled */
} source;

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

int paper_same_policy(const char *a, const char *b)
{
    char full[RENYI_POLICY_MAX], wanted[RENYI_POLICY_MAX];

    if (renyi_policy_check(a, NULL, full, sizeof full, NULL) != RENYI_OK ||
        renyi_policy_check(b, NULL, wanted, sizeof wanted, NULL) != RENYI_OK)
        return strcmp(a, b) == 0;
    return strcmp(full, wanted) == 0;
}

static int is_column(const source *s, const json_t *result, const renyi_survey_column *column)
{
    const char *policy = text_of(result, "policy"), *own = text_of(result, "adapt");
    const int is_adapted = own || text_of(s->document, "adapt");

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
        cli_error("%s: a second result of %s with '%s'; give one of each", s->file, s->collection,
                  text_of(result, "policy"));
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

static int take_row(source *s, paper_survey *survey, uint32_t row)
{
    const json_t *results = json_object_get(s->document, "results"), *result;
    size_t i;

    json_array_foreach(results, i, result)
    {
        for (size_t c = 0; c < RENYI_SURVEY_COLUMNS; c++) {
            renyi_survey_column column;
            renyi_survey_get_column(c, &column);
            if (!is_column(s, result, &column)) continue;
            const int code = take_result(s, result, &survey->cells[row * RENYI_SURVEY_COLUMNS + c]);
            if (code != CLI_OK) return code;
            s->n_taken++;
        }
    }
    return CLI_OK;
}

/* ---- a document ------------------------------------------------------------------------------ */

/* One model for all of a table. */
static int take_model(const source *s, paper_survey *survey)
{
    if (!survey->model) {
        survey->model = cli_copy(s->model);
        survey->architecture = cli_copy(s->architecture);
        survey->state = PAPER_NOT_RUN;
    }
    if (strcmp(survey->model, s->model) == 0) return CLI_OK;
    cli_error("%s: results of '%s', but those before are of '%s'; a table is about one model",
              s->file, s->model, survey->model);
    return CLI_FAILED;
}

static int take_document(paper_surveys *list, source *s)
{
    int code = CLI_OK;

    s->collection = text_of(s->document, "collection");
    s->model = text_of(s->document, "model");
    s->architecture = text_of(s->document, "architecture");
    if (!s->collection || !s->model || !s->architecture ||
        !json_is_array(json_object_get(s->document, "results"))) {
        cli_error("%s: not the JSON that renyi zeroshot writes about a data set that it knows: "
                  "'collection', 'model', 'architecture' and 'results' are wanted",
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
        cli_note("%s: nothing of these tables in it (%s)", s->file, s->collection);
    return code;
}

int paper_surveys_take(paper_surveys *list, const char *file, const json_t *document)
{
    source s = {.file = file, .document = document};

    return take_document(list, &s);
}

json_t *paper_results_load(const char *file)
{
    file_bytes bytes;
    json_error_t error;
    char *why;

    if (read_file(file, max_bytes, &bytes, &why)) {
        cli_error("%s: %s", file, why);
        free(why);
        return NULL;
    }
    json_t *document =
        json_loadb((const char *)bytes.data, bytes.size, JSON_REJECT_DUPLICATES, &error);
    free(bytes.data);
    if (!document) cli_error("%s:%d: %s", file, error.line, error.text);
    return document;
}
