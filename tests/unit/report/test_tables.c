/* test_tables.c - checks the page of tables: every cell is there, any text is harmless, wrong input
 * is named, no memory.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/report_fixture.h" /* NASTY */
#include "fixtures/test_heap.h"
#include "renyi/report.h"

#include "test.h"

static const char *const names[] = {"one", NULL, NASTY}, *const numbers[] = {"1.5", "2.5", "3.5"};
static const renyi_report_column columns[] = {{"name", names, 1}, {NASTY, numbers, 0}};
static const renyi_report_table tables[] = {
    {"First", NASTY, 3, 2, columns}, {NULL, NULL, 0, 2, columns}, {"Last", NULL, 0, 0, NULL}};

static renyi_report_tables page_of(uint32_t n)
{
    return (renyi_report_tables){.struct_size = sizeof(renyi_report_tables),
                                 .n_tables = n,
                                 .tables = tables,
                                 .title = NASTY,
                                 .note = "a note",
                                 .date = "2026-01-01"};
}

static void has_every_cell(void **state)
{
    const renyi_report_tables page = page_of(3);
    renyi_report_text text;
    (void)state;
    assert_int_equal(renyi_report_tables_html(&text, &page, NULL), RENYI_OK);
    assert_non_null(strstr(text.bytes, "<td class=\"mo\">one</td><td>1.5</td>"));
    assert_non_null(strstr(text.bytes, "<td class=\"mo\">–</td><td>2.5</td>"));
    assert_non_null(strstr(text.bytes, "<th scope=\"col\" class=\"mo\">"));
    assert_non_null(strstr(text.bytes, "<h2>First</h2>"));
    assert_non_null(strstr(text.bytes, "2026-01-01"));
    assert_null(strstr(text.bytes, NASTY));
    assert_null(strstr(text.bytes, "<script>alert"));
    assert_non_null(strstr(text.bytes, "</html>"));
    renyi_report_text_free(&text);
}

static void wrong_input_is_named(void **state)
{
    const renyi_report_column hollow = {"x", NULL, 0};
    const renyi_report_table without[] = {{"t", NULL, 1, 1, &hollow}, {"t", NULL, 1, 1, NULL}};
    renyi_report_tables page = page_of(1);
    renyi_report_text text;
    renyi_error err = {0};
    (void)state;
    assert_int_equal(renyi_report_tables_html(NULL, &page, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_report_tables_html(&text, NULL, &err), RENYI_ERR_ARG);
    page.struct_size = 4;
    assert_int_equal(renyi_report_tables_html(&text, &page, &err), RENYI_ERR_ARG);
    page = page_of(1);
    page.tables = without;
    assert_int_equal(renyi_report_tables_html(&text, &page, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "column 0 of table 0 has no cells"));
    page.tables = &without[1];
    assert_int_equal(renyi_report_tables_html(&text, &page, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "has no columns"));
    assert_null(text.bytes);
}

static void no_memory(void **state)
{
    (void)state;
    for (size_t at_call = 1;; at_call++) {
        test_heap h = {.fail_at = at_call};
        renyi_report_tables page = page_of(3);
        renyi_report_text text;
        page.allocator = test_heap_of(&h);
        const renyi_status st = renyi_report_tables_html(&text, &page, NULL);
        renyi_report_text_free(&text);
        assert_int_equal(h.live, 0);
        if (st == RENYI_OK) break;
        assert_int_equal(st, RENYI_ERR_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(has_every_cell),
                                       cmocka_unit_test(wrong_input_is_named),
                                       cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
