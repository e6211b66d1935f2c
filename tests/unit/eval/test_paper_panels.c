/* test_paper_panels.c - the paper's tables of LLaVA: figures as printed, every benchmark once, and
 * averages that follow from them but where it is said.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/paper_records.h"
#include "renyi/paper.h"

#include <math.h>
#include <string.h>

static void rows_are_benchmarks(void **state)
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
        for (int k = 0; k < RENYI_VQA_TASKS; k++) assert_int_equal(seen[k], 1);
    }
    assert_int_equal(n_off, 3);
    double scores[RENYI_VQA_TASKS];
    for (int k = 0; k < RENYI_VQA_TASKS; k++) scores[k] = k == RENYI_VQA_MME ? 1000 : 50;
    assert_true(fabs(renyi_panel_average(scores) - 50) < 1e-12);
    scores[3] = NAN;
    assert_true(isnan(renyi_panel_average(scores)));
}

static void policies_are_policies(void **state)
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

/* ---- record by record ----------------------------------------------------------------------- */

static int is_column(const renyi_panel_column *c, const json_t *record)
{
    const json_t *tokens = json_object_get(json_object_get(record, "setting"), "visual_tokens");
    const char *method = json_string_value(json_object_get(record, "method"));
    return json_integer_value(tokens) == c->tokens &&
           strncmp(method, c->method, strlen(c->method)) == 0;
}

static int count_cells(size_t i, const json_t *record)
{
    const char *metric = json_string_value(json_object_get(record, "metric"));
    const double value = json_number_value(json_object_get(record, "value"));
    renyi_panel p;
    int n = 0;
    renyi_panel_get(i, &p);
    for (uint32_t row = 0; row < p.n_rows; row++)
        for (size_t k = 0; k < RENYI_PANEL_COLUMNS; k++) {
            renyi_panel_column c;
            renyi_panel_row r;
            renyi_panel_get_column(i, k, &c);
            renyi_panel_get_row(i, row, &r);
            if (!is_column(&c, record) || strcmp(r.title, metric) != 0) continue;
            assert_true(fabs(r.figures[k] - value) < 1e-9);
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
    for (size_t i = 0; i < renyi_panel_count(); i++) {
        renyi_panel p;
        renyi_panel_get(i, &p);
        n_records += paper_compare(records, p.number, p.label, count_cells, i);
    }
    json_decref(records);
    assert_int_equal(n_records, 2 * 12 * RENYI_PANEL_COLUMNS); /* so none of ours is invented */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_benchmarks),
        cmocka_unit_test(policies_are_policies),
        cmocka_unit_test(figures_are_the_papers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
