/* test_paper_benchmarks.c - checks the paper's tables over datasets (CLIP) and benchmarks (LLaVA):
 * figures as printed, known datasets and benchmarks, valid policies, costs and averages that
 * agree.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/paper_records.h"
#include "renyi/eval.h"
#include "renyi/paper.h"

#include <math.h>
#include <string.h>

/* Whether the method of a record begins with that of a column. */
static int is_method(const json_t *record, const char *method)
{
    const char *printed = json_string_value(json_object_get(record, "method"));
    return strncmp(printed, method, strlen(method)) == 0;
}

/* Whether a record has the value that the library has for its cell. */
static void check_value(const json_t *record, double value)
{
    assert_true(fabs(value - json_number_value(json_object_get(record, "value"))) < 1e-9);
}

/* ---- surveys: CLIP on datasets
 * ----------------------------------------------------------------------- */

static void survey_rows_are_data_sets(void **state)
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

/* The paper prints one decimal. A cost that the library cannot compute is reported as skipped. */
static void survey_costs_agree(void **state)
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

static int is_survey_column(const renyi_survey_column *c, const json_t *record)
{
    const json_t *setting = json_object_get(record, "setting");
    const json_t *layers = json_object_get(setting, "pruning_layers");
    char text[32] = "";

    for (size_t i = 0; i < json_array_size(layers); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? "," : "",
                 (int)json_integer_value(json_array_get(layers, i)));
    return is_method(record, c->method) && strcmp(text, c->layers ? c->layers : "") == 0;
}

/* "Oxford Pets top-1", "Average" */
static int is_survey_row(const renyi_survey_row *r, const json_t *record)
{
    const char *metric = json_string_value(json_object_get(record, "metric"));
    const size_t n = strlen(r->title);
    return strncmp(metric, r->title, n) == 0 && (!metric[n] || strcmp(metric + n, " top-1") == 0);
}

static int count_survey_cells(size_t i, const json_t *record)
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
            if (!is_survey_column(&c, record) || !is_survey_row(&r, record)) continue;
            const json_t *gflops = json_object_get(record, "gflops");
            check_value(record, r.top1[k]);
            if (json_is_number(gflops))
                assert_true(fabs(c.gflops - json_number_value(gflops)) < 1e-9);
            n++;
        }
    return n;
}

static void survey_figures_are_the_papers(void **state)
{
    json_t *records = paper_records();
    size_t n_records = 0;

    (void)state;
    if (!records) return;
    for (size_t i = 0; i < renyi_survey_count(); i++) {
        renyi_survey s;
        renyi_survey_get(i, &s);
        n_records += paper_compare(records, s.number, s.label, count_survey_cells, i);
    }
    json_decref(records);
    assert_int_equal(n_records,
                     (6 + 11) * RENYI_SURVEY_COLUMNS); /* so every cell is in the paper */
}

/* ---- panels: LLaVA on benchmarks
 * ----------------------------------------------------------------------- */

static void panel_rows_are_benchmarks(void **state)
{
    uint32_t n_off = 0;

    (void)state;
    assert_int_equal(renyi_panel_count(), 2);
    for (size_t i = 0; i < 2; i++) {
        renyi_panel p;
        uint32_t seen[RENYI_VQA_TASKS] = {0};
        renyi_panel_get(i, &p);
        assert_int_equal(p.number, i ? 12 : 6);
        for (uint32_t row = 0; row < p.n_rows; row++) {
            renyi_panel_row r;
            renyi_vqa_task_info task;
            renyi_panel_get_row(i, row, &r);
            for (int c = 0; c < RENYI_PANEL_COLUMNS; c++) n_off += (uint32_t)r.is_off[c];
            if (r.kind != RENYI_PANEL_TASK) continue;
            renyi_vqa_get_task(r.task, &task);
            assert_string_equal(task.title, r.title);
            seen[r.task]++;
        }
        for (int k = 0; k < RENYI_VQA_TASKS; k++) assert_int_equal(seen[k], k <= RENYI_VQA_MMVET);
    }
    assert_int_equal(n_off, 3);
    double scores[RENYI_VQA_TASKS];
    for (int k = 0; k < RENYI_VQA_TASKS; k++) scores[k] = k == RENYI_VQA_MME ? 1000 : 50;
    scores[RENYI_VQA_SEED] = scores[RENYI_VQA_OCRBENCH] = NAN; /* not in the paper's tables */
    assert_true(fabs(renyi_panel_average(scores) - 50) < 1e-12);
    scores[3] = NAN;
    assert_true(isnan(renyi_panel_average(scores)));
}

static void panel_policies_are_valid(void **state)
{
    (void)state;
    for (size_t i = 0; i < renyi_panel_count(); i++)
        for (size_t c = 0; c < RENYI_PANEL_COLUMNS; c++) {
            renyi_panel_column column;
            char full[RENYI_POLICY_MAX];
            renyi_error err = {0};
            renyi_panel_get_column(i, c, &column);
            if (renyi_policy_check(column.policy, NULL, full, sizeof full, &err))
                fail_msg("%s: %s", column.policy, err.message);
        }
}

static int is_panel_column(const renyi_panel_column *c, const json_t *record)
{
    const json_t *tokens = json_object_get(json_object_get(record, "setting"), "visual_tokens");
    return json_integer_value(tokens) == c->tokens && is_method(record, c->method);
}

static int count_panel_cells(size_t i, const json_t *record)
{
    const char *metric = json_string_value(json_object_get(record, "metric"));
    renyi_panel p;
    int n = 0;
    renyi_panel_get(i, &p);
    for (uint32_t row = 0; row < p.n_rows; row++)
        for (size_t k = 0; k < RENYI_PANEL_COLUMNS; k++) {
            renyi_panel_column c;
            renyi_panel_row r;
            renyi_panel_get_column(i, k, &c);
            renyi_panel_get_row(i, row, &r);
            if (!is_panel_column(&c, record) || strcmp(r.title, metric) != 0) continue;
            check_value(record, r.figures[k]);
            n++;
        }
    return n;
}

static void panel_figures_are_the_papers(void **state)
{
    json_t *records = paper_records();
    size_t n_records = 0;

    (void)state;
    if (!records) return;
    for (size_t i = 0; i < renyi_panel_count(); i++) {
        renyi_panel p;
        renyi_panel_get(i, &p);
        n_records += paper_compare(records, p.number, p.label, count_panel_cells, i);
    }
    json_decref(records);
    assert_int_equal(n_records, 2 * 12 * RENYI_PANEL_COLUMNS); /* so every cell is in the paper */
}

/* ---- presets ------------------------------------------------------------------------------- */

static int is_preset(const char *policy)
{
    const size_t n = strcspn(policy, " ");
    renyi_preset preset;

    for (size_t i = 0; i < renyi_preset_count(); i++) {
        renyi_preset_get(i, &preset);
        if (strlen(preset.name) == n && memcmp(preset.name, policy, n) == 0) return 1;
    }
    return 0;
}

/* A column that prunes is a preset, perhaps with other layers or tokens: `renyi policies` lists
 * what the tables look for. */
static void columns_are_presets(void **state)
{
    renyi_survey_column s;
    renyi_panel_column p;

    (void)state;
    for (size_t c = 1; c < RENYI_SURVEY_COLUMNS; c++) {
        renyi_survey_get_column(c, &s);
        if (!is_preset(s.policy)) fail_msg("%s is no preset", s.policy);
    }
    for (size_t i = 0; i < renyi_panel_count(); i++)
        for (size_t c = 1; c < RENYI_PANEL_COLUMNS; c++) {
            renyi_panel_get_column(i, c, &p);
            if (!is_preset(p.policy)) fail_msg("%s is no preset", p.policy);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survey_rows_are_data_sets),
        cmocka_unit_test(survey_costs_agree),
        cmocka_unit_test(survey_figures_are_the_papers),
        cmocka_unit_test(panel_rows_are_benchmarks),
        cmocka_unit_test(panel_policies_are_valid),
        cmocka_unit_test(panel_figures_are_the_papers),
        cmocka_unit_test(columns_are_presets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
