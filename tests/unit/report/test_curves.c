/* test_curves.c - charts and page of training runs from any numbers and names. `test_curves
 * write` writes the files that tests/cli/plot_browser.sh reads to the current folder.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/report_fixture.h" /* NASTY */
#include "fixtures/test_heap.h"
#include "renyi/report.h"

#include "test.h"

enum { RUNS = RENYI_REPORT_MAX_RUNS, POINTS = 200, EPOCHS = 10 };

typedef struct curves_fixture {
    renyi_report_curves report;
    const char *names[RUNS], *cells[2][RUNS];
    char name_texts[RUNS][24];
    double x[2][POINTS], y[2][RUNS][POINTS], raw[RUNS][POINTS];
    renyi_report_curve loss[2 * RUNS], top1[RUNS];
    renyi_report_panel panels[2];
    renyi_report_column columns[2];
} curves_fixture;

static curves_fixture fixture; /* too large for the stack */

/* A loss with and without noise, and an accuracy of every epoch. */
static void fill_fixture(uint32_t n)
{
    curves_fixture *f = &fixture;
    memset(f, 0, sizeof *f);
    for (uint32_t r = 0; r < n; r++) {
        snprintf(f->name_texts[r], sizeof f->name_texts[r], "run %u", r + 1);
        f->names[r] = f->name_texts[r];
        f->cells[0][r] = "1.2345";
        f->cells[1][r] = r % 3 ? "evit keep=0.7" : NULL;
        for (uint32_t i = 0; i < POINTS; i++) {
            f->x[0][i] = (i + 1) * (double)EPOCHS / POINTS;
            f->y[0][r][i] = 2 + 0.1 * r + exp(-0.02 * i);
            f->raw[r][i] = f->y[0][r][i] + 0.05 * sin(7.0 * i);
        }
        for (uint32_t i = 0; i < EPOCHS; i++) {
            f->x[1][i] = i + 1;
            f->y[1][r][i] = 70 + i - 0.5 * r;
        }
        f->loss[2 * r] = (renyi_report_curve){r, 0, f->x[0], f->y[0][r], POINTS};
        f->loss[2 * r + 1] = (renyi_report_curve){r, 1, f->x[0], f->raw[r], POINTS};
        f->top1[r] = (renyi_report_curve){r, 0, f->x[1], f->y[1][r], EPOCHS};
    }
    f->panels[0] = (renyi_report_panel){
        "Training loss", "Means of 9 steps.", "epochs", "training loss", 2, 4, 2 * n, f->loss};
    f->panels[1] =
        (renyi_report_panel){"Accuracy", NULL, "epochs", "top-1 accuracy, %", 2, 2, n, f->top1};
    f->columns[0] = (renyi_report_column){"loss", f->cells[0], 0};
    f->columns[1] = (renyi_report_column){"policy", f->cells[1], 1};
    f->report = (renyi_report_curves){.struct_size = sizeof f->report,
                                      .n_runs = n,
                                      .n_panels = 2,
                                      .n_columns = 2,
                                      .runs = f->names,
                                      .panels = f->panels,
                                      .columns = f->columns,
                                      .title = "Some runs",
                                      .command = "renyi plot"};
}

static void spoil_fixture(void)
{
    static const double wrong[] = {NAN, INFINITY, -INFINITY, 1e308, -1e308, 0};
    curves_fixture *f = &fixture;
    f->report.title = f->report.command = f->report.note = f->report.date = NASTY;
    f->panels[0].title = f->panels[0].caption = f->panels[0].x_label = NASTY;
    f->panels[1].title = f->panels[1].x_label = f->panels[1].y_label = NULL;
    for (uint32_t r = 0; r < f->report.n_runs; r++) {
        f->names[r] = r % 2 ? NASTY : NULL;
        f->cells[1][r] = NASTY;
        for (uint32_t i = 0; i < POINTS; i += 3) f->y[0][r][i] = wrong[(i + r) % 6];
        f->y[1][r][r % EPOCHS] = wrong[r % 6];
        if (r % 4 == 1) f->top1[r].n = r % 2;
    }
    f->x[0][5] = NAN;
    f->columns[0].name = NULL;
}

enum { AS_SVG, AS_PAGE, AS_TEXT, FORMS };

static renyi_status write_curves(int form, renyi_report_text *t, renyi_error *err)
{
    if (form == AS_TEXT) return renyi_report_curves_terminal(t, &fixture.report, 80, 1, err);
    return form == AS_PAGE ? renyi_report_curves_html(t, &fixture.report, err)
                           : renyi_report_curves_svg(t, &fixture.report, err);
}

static renyi_report_text draw_curves(int form)
{
    renyi_report_text t;
    renyi_error err;
    const renyi_status st = write_curves(form, &t, &err);
    if (st) fail_msg("%s", err.message);
    assert_int_equal(strlen(t.bytes), t.size);
    return t;
}

static void test_lines(void **state)
{
    (void)state;
    fill_fixture(3);
    renyi_report_text t = draw_curves(0);
    assert_int_equal(count_text(t.bytes, "<path class=\"rc-curve c"), 6);
    assert_int_equal(count_text(t.bytes, "<path class=\"rc-faint c"), 3);
    assert_int_equal(count_text(t.bytes, "<path class=\"rc-dot c"),
                     3 * EPOCHS);                            /* few: each is seen */
    assert_int_equal(count_text(t.bytes, " rc-d1 r1\""), 2); /* told apart without colour */
    assert_int_equal(count_text(t.bytes, ">run 2 <tspan class=\"rc-value\">2.1"), 1);
    assert_int_equal(count_text(t.bytes, ">run 3 <tspan class=\"rc-value\">78.00"), 1);
    assert_non_null(strstr(t.bytes, "Means of 9 steps."));
    assert_non_null(strstr(t.bytes, "run 1 ends at 79.00 after 10.00 epochs."));
    assert_non_null(strstr(t.bytes, "prefers-color-scheme:dark"));
    assert_null(strstr(t.bytes, "rc-plot\" data"));
    renyi_report_text_free(&t);
    t = draw_curves(1);
    assert_int_equal(count_text(t.bytes, "<path class=\"rc-curve c"),
                     2 * 6 + 3 + 2); /* table, legends */
    assert_int_equal(count_text(t.bytes, "<tr data-i="), 3);
    assert_int_equal(count_text(t.bytes, "class=\"rc-plot\" data-panel=\"1\""), 2);
    assert_int_equal(count_text(t.bytes, "{\"run\":"), 6);
    assert_int_equal(count_text(t.bytes, "http://www.w3.org/2000/svg"), count_text(t.bytes, "://"));
    renyi_report_text_free(&t);
}

/* A line with gaps is drawn in pieces; one point is a mark. */
static void test_gaps(void **state)
{
    (void)state;
    fill_fixture(1);
    fixture.y[1][0][4] = NAN;
    fixture.report.panels = &fixture.panels[1];
    fixture.report.n_panels = 1;
    renyi_report_text t = draw_curves(0);
    const char *line = strstr(t.bytes, "<path class=\"rc-curve");
    assert_non_null(line);
    const char *end = strchr(line, '>'), *second = strchr(strchr(line, 'M') + 1, 'M');
    assert_true(second && second < end);
    renyi_report_text_free(&t);
    fixture.top1[0].n = 1;
    t = draw_curves(0);
    assert_int_equal(count_text(t.bytes, "<path class=\"rc-dot c"), 1);
    renyi_report_text_free(&t);
    fixture.top1[0].n = 0;
    t = draw_curves(0);
    assert_non_null(strstr(t.bytes, "nothing is known"));
    renyi_report_text_free(&t);
    fixture.report.n_panels = 0;
    t = draw_curves(0);
    assert_non_null(strstr(t.bytes, "no charts"));
    renyi_report_text_free(&t);
}

static void test_nasty(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= RUNS; n += RUNS - 2)
        for (int page = 0; page < 2; page++) {
            fill_fixture(n);
            spoil_fixture();
            renyi_report_text t = draw_curves(page);
            assert_null(strstr(t.bytes, "<script>alert"));
            assert_null(strstr(t.bytes, "<b a="));
            assert_null(strstr(t.bytes, "\xff"));
            assert_null(strstr(t.bytes, "nan"));
            assert_null(strstr(t.bytes, "inf "));
            for (const char *at = t.bytes; *at; at++)
                if ((unsigned char)*at < ' ' && *at != '\n') fail_msg("control character %d", *at);
            renyi_report_text_free(&t);
        }
}

static void test_same_bytes(void **state)
{
    (void)state;
    fill_fixture(RUNS);
    renyi_report_text a = draw_curves(1), b = draw_curves(1);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.bytes, b.bytes, a.size);
    renyi_report_text_free(&a);
    renyi_report_text_free(&b);
}

/* Characters of the longest line, without escape sequences. */
static uint32_t widest_line(const char *text)
{
    uint32_t most = 0, n = 0;
    for (; *text; text++) {
        while (*text == '\033') text = strchr(text, 'm') + 1;
        if (((uint8_t)*text & 0xC0) != 0x80) n = *text == '\n' ? 0 : n + 1;
        if (n > most) most = n;
    }
    return most;
}

/* In a terminal: every run has its letter and its last value, and nothing is wider than asked. */
static void test_terminal(void **state)
{
    static const uint32_t columns[] = {40, 80, 160, 1000};
    renyi_report_text t;
    renyi_error err;
    (void)state;
    fill_fixture(1);
    fixture.panels[1].n_curves = 0;
    assert_int_equal(renyi_report_curves_terminal(&t, &fixture.report, 80, 0, &err), RENYI_OK);
    assert_null(strchr(t.bytes, '\033'));
    assert_non_null(strstr(t.bytes, "training loss\n"));
    assert_non_null(strstr(t.bytes, " run 1 2.0187\n"));
    assert_non_null(strstr(t.bytes, "top-1 accuracy, %: nothing is known\n"));
    assert_non_null(strstr(t.bytes, "\xE2\xA0")); /* braille */
    renyi_report_text_free(&t);
    for (uint32_t n = 1; n <= RUNS; n += 23)
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
            fill_fixture(n);
            if (i == 1) spoil_fixture();
            assert_int_equal(
                renyi_report_curves_terminal(&t, &fixture.report, columns[i], i % 2, &err),
                RENYI_OK);
            if (widest_line(t.bytes) > columns[i])
                fail_msg("%u runs: %u wide, %u asked\n%s", n, widest_line(t.bytes), columns[i],
                         t.bytes);
            if (i != 1 && n > 1) assert_non_null(strstr(t.bytes, "b run 2"));
            renyi_report_text_free(&t);
        }
    assert_int_equal(renyi_report_curves_terminal(&t, &fixture.report, 39, 0, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_report_curves_terminal(NULL, NULL, 80, 0, &err), RENYI_ERR_ARG);
}

static void test_refused(void **state)
{
    (void)state;
    renyi_report_text t = {.size = 3};
    renyi_error err;
    fill_fixture(2);
    renyi_report_curves r = fixture.report;
    assert_int_equal(renyi_report_curves_svg(NULL, &r, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_report_curves_svg(&t, NULL, &err), RENYI_ERR_ARG);
    assert_true(t.size == 0 && !t.bytes);
    r.struct_size--;
    assert_int_equal(renyi_report_curves_html(&t, &r, &err), RENYI_ERR_ARG);
    r = fixture.report;
    r.n_runs = RUNS + 1;
    assert_int_equal(renyi_report_curves_html(&t, &r, &err), RENYI_ERR_LIMIT);
    r.n_runs = 1; /* a curve of a run that does not exist */
    assert_int_equal(renyi_report_curves_html(&t, &r, &err), RENYI_ERR_ARG);
    fill_fixture(2);
    fixture.panels[0].y_decimals = 7;
    assert_int_equal(renyi_report_curves_svg(&t, &fixture.report, &err), RENYI_ERR_LIMIT);
    fill_fixture(2);
    fixture.loss[0].n = RENYI_REPORT_MAX_CURVE + 1;
    assert_int_equal(renyi_report_curves_svg(&t, &fixture.report, &err), RENYI_ERR_LIMIT);
    fill_fixture(2);
    fixture.columns[1].cells = NULL;
    assert_int_equal(renyi_report_curves_svg(&t, &fixture.report, NULL), RENYI_ERR_ARG);
}

static void test_no_memory(void **state)
{
    (void)state;
    fill_fixture(3);
    for (int form = 0; form < FORMS; form++) {
        renyi_status st = RENYI_ERR_NOMEM;
        for (size_t fail_at = 1; st == RENYI_ERR_NOMEM; fail_at++) {
            test_heap heap = {.fail_at = fail_at};
            renyi_report_text t;
            fixture.report.allocator = test_heap_of(&heap);
            st = write_curves(form, &t, NULL);
            assert_int_equal(st == RENYI_OK, t.bytes != NULL);
            renyi_report_text_free(&t);
            assert_int_equal(heap.live, 0);
        }
        assert_int_equal(st, RENYI_OK);
    }
}

/* ---- files for tests/cli/plot_browser.sh ---- */

static int write_files(void)
{
    static const char *const names[] = {"plain.html", "nasty.html", "many.html", "plain.svg"};
    for (int i = 0; i < 4; i++) {
        fill_fixture(i == 2 ? RUNS : 3);
        if (i == 1) spoil_fixture();
        renyi_report_text t;
        const renyi_status st = i < 3 ? renyi_report_curves_html(&t, &fixture.report, NULL)
                                      : renyi_report_curves_svg(&t, &fixture.report, NULL);
        if (st || write_text(names[i], t)) return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),    cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_nasty),    cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_no_memory)};
    if (argc > 1 && strcmp(argv[1], "write") == 0) return write_files();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
