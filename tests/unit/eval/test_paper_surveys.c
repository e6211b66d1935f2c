/* test_paper_surveys.c - the paper's tables over data sets: figures as printed, data sets that are
 * known, and costs that agree.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/paper_records.h"
#include "renyi/eval.h"
#include "renyi/paper.h"

#include <math.h>
#include <string.h>

static void rows_are_data_sets(void **state)
{
    uint32_t n_sets = 0, n_off = 0;

    (void)state;
    assert_int_equal(renyi_survey_count(), 2);
    for (size_t i = 0; i < 2; i++) {
        renyi_survey s;
        renyi_survey_get(i, &s);
        assert_int_equal(s.number, 4 + i);
        for (uint32_t row = 0; row < s.n_rows; row++) {
            renyi_survey_row r;
            renyi_collection c;
            renyi_survey_get_row(i, row, &r);
            assert_true(!r.collection == (row + 1 == s.n_rows));
            for (int k = 0; k < RENYI_SURVEY_COLUMNS; k++) n_off += (uint32_t)r.is_off[k];
            if (!r.collection) continue;
            assert_int_equal(renyi_collection_find(r.collection, &c, NULL), RENYI_OK);
            assert_string_equal(c.name, r.collection);
            assert_string_equal(c.title, r.title);
            n_sets++;
        }
    }
    assert_int_equal(n_sets, renyi_collection_count()); /* all fifteen, each once */
    assert_int_equal(n_off, 2);
}

/* One decimal is printed. What the library cannot price yet is not compared, but said. */
static void costs_agree(void **state)
{
    renyi_survey s;

    (void)state;
    renyi_survey_get(0, &s);
    for (size_t k = 0; k < RENYI_SURVEY_COLUMNS; k++) {
        renyi_survey_column c;
        renyi_error err = {0};
        renyi_cost cost;
        renyi_survey_get_column(k, &c);
        if (renyi_policy_cost(NULL, s.architecture, c.policy, &cost, NULL, 0, &err)) {
            printf("SKIP: cost of %s: %s (1)\n", c.policy, err.message);
            continue;
        }
        if (fabs(cost.total.macs_paper * 1e-9 - c.gflops) > 0.05 + 1e-9)
            fail_msg("%s: %.4f, printed %.1f", c.policy, cost.total.macs_paper * 1e-9, c.gflops);
    }
}

/* ---- record by record ----------------------------------------------------------------------- */

static int is_column(const renyi_survey_column *c, const json_t *record)
{
    const json_t *setting = json_object_get(record, "setting");
    const json_t *layers = json_object_get(setting, "pruning_layers");
    const char *method = json_string_value(json_object_get(record, "method"));
    char text[32] = "";

    for (size_t i = 0; i < json_array_size(layers); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? "," : "",
                 (int)json_integer_value(json_array_get(layers, i)));
    return strncmp(method, c->method, strlen(c->method)) == 0 &&
           strcmp(text, c->layers ? c->layers : "") == 0;
}

/* "Oxford Pets top-1", "Average" */
static int is_row(const renyi_survey_row *r, const json_t *record)
{
    const char *metric = json_string_value(json_object_get(record, "metric"));
    const size_t n = strlen(r->title);
    return strncmp(metric, r->title, n) == 0 && (!metric[n] || strcmp(metric + n, " top-1") == 0);
}

static int count_cells(size_t i, const json_t *record)
{
    renyi_survey s;
    int n = 0;
    renyi_survey_get(i, &s);
    for (uint32_t row = 0; row < s.n_rows; row++)
        for (size_t k = 0; k < RENYI_SURVEY_COLUMNS; k++) {
            renyi_survey_column c;
            renyi_survey_row r;
            renyi_survey_get_column(k, &c);
            renyi_survey_get_row(i, row, &r);
            if (!is_column(&c, record) || !is_row(&r, record)) continue;
            const json_t *gflops = json_object_get(record, "gflops");
            assert_true(fabs(r.top1[k] - json_number_value(json_object_get(record, "value"))) <
                        1e-9);
            if (json_is_number(gflops))
                assert_true(fabs(c.gflops - json_number_value(gflops)) < 1e-9);
            n++;
        }
    return n;
}

static void figures_are_the_papers(void **state)
{
    json_t *records = paper_records();
    size_t n_records = 0;

    (void)state;
    if (!records) return;
    for (size_t i = 0; i < renyi_survey_count(); i++) {
        renyi_survey s;
        renyi_survey_get(i, &s);
        n_records += paper_compare(records, s.number, s.label, count_cells, i);
    }
    json_decref(records);
    assert_int_equal(n_records, (6 + 11) * RENYI_SURVEY_COLUMNS); /* so none of ours is invented */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_data_sets),
        cmocka_unit_test(costs_agree),
        cmocka_unit_test(figures_are_the_papers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
