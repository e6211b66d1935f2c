/* paper_given.c - what the paper's tables share whose results come from files: which are asked for,
 * files of --results, policies compared.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/paper/paper_given.h"

#include "cli/kit/files.h"

#include <stdlib.h>
#include <string.h>

static const size_t max_bytes = 64u << 20;

int paper_is_given(uint32_t number)
{
    renyi_survey survey;
    renyi_panel panel;

    for (size_t i = 0; i < renyi_survey_count(); i++) {
        renyi_survey_get(i, &survey);
        if (survey.number == number) return 1;
    }
    for (size_t i = 0; i < renyi_panel_count(); i++) {
        renyi_panel_get(i, &panel);
        if (panel.number == number) return 1;
    }
    return number == RENYI_TUNED_TABLE || number == RENYI_HYPER_TABLE;
}

int paper_wants_given(const paper_arguments *a, uint32_t number)
{
    for (uint32_t i = 0; i < a->n_given; i++)
        if (a->given[i] == number) return 1;
    return !a->n_given && !a->n_tables;
}

const char *paper_json_string(const json_t *object, const char *key)
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
