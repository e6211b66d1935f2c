/* test_report.c - fronts, charts and the page from any numbers and names. `test_report write`
 * writes the files that tests/cli/report*.sh read to the current folder.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/report_fixture.h"
#include "fixtures/test_heap.h"
#include "report/markup.h"

#include "test.h"

static report_fixture fixture; /* too large for the stack */

static const renyi_chart charts[] = {RENYI_CHART_GMACS, RENYI_CHART_MS, RENYI_CHART_TOKENS};

static renyi_report_text svg(const renyi_report *r, renyi_chart chart)
{
    renyi_report_text t;
    renyi_error err;
    if (renyi_report_svg(&t, r, chart, &err)) fail_msg("%s", err.message);
    assert_int_equal(strlen(t.bytes), t.size);
    return t;
}

static renyi_report_text html(const renyi_report *r)
{
    renyi_report_text t;
    renyi_error err;
    if (renyi_report_html(&t, r, &err)) fail_msg("%s", err.message);
    assert_int_equal(strlen(t.bytes), t.size);
    return t;
}

/* ---- the front ---- */

static void test_front(void **state)
{
    (void)state;
    static const struct {
        double gmacs, top1;
        uint8_t on;
    } known[] = {{1, 50, 1},         {2, 60, 1},       {2, 59, 0},
                 {3, 60, 0},         {2, 60, 1}, /* equal points both stay */
                 {4, 70, 1},         {NAN, 99, 0},     {0, NAN, 0},
                 {-INFINITY, 80, 0}, {5, INFINITY, 0}, {0.5, 10, 1}};
    enum { N = sizeof known / sizeof *known };
    renyi_report_point points[N];
    const renyi_report r = {.struct_size = sizeof r, .n_points = N, .points = points};
    uint8_t on[N];
    renyi_error err;
    memset(points, 0, sizeof points);
    for (size_t i = 0; i < N; i++) {
        points[i].gmacs = known[i].gmacs;
        points[i].ms_model = -(double)i;
        points[i].top1 = known[i].top1;
    }
    assert_int_equal(renyi_report_front(&r, RENYI_CHART_GMACS, on, &err), RENYI_OK);
    for (size_t i = 0; i < N; i++) assert_int_equal(on[i], known[i].on);
    assert_int_equal(renyi_report_front(&r, RENYI_CHART_MS, on, &err), RENYI_OK);
    assert_int_equal(on[8], 1);
    assert_int_equal(on[10], 1);
    assert_int_equal(renyi_report_front(&r, RENYI_CHART_TOKENS, on, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_report_front(&r, RENYI_CHART_MS, NULL, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_report_front(NULL, RENYI_CHART_MS, on, NULL), RENYI_ERR_ARG);
}

/* ---- content ---- */

static void test_marks(void **state)
{
    (void)state;
    fixture_fill(&fixture, 150);
    uint8_t on[FIXTURE_MAX];
    size_t n_best = 0;
    assert_int_equal(renyi_report_front(&fixture.report, RENYI_CHART_GMACS, on, NULL), RENYI_OK);
    for (int i = 0; i < 150; i++) n_best += on[i];
    renyi_report_text t = svg(&fixture.report, RENYI_CHART_GMACS);
    assert_int_equal(count_text(t.bytes, "<g class=\"rc-m "), 150);
    assert_int_equal(count_text(t.bytes, " rc-best"), n_best);
    assert_int_equal(count_text(t.bytes, "<path class=\"rc-front\" d=\"M"), 1);
    assert_int_equal(count_text(t.bytes, "<path class=\"rc-small c0\" d=\"M"),
                     3); /* models, legend */
    assert_non_null(strstr(t.bytes, "GMACs per photo"));
    assert_non_null(strstr(t.bytes, "prefers-color-scheme:dark"));
    assert_non_null(strstr(t.bytes, "</desc>"));
    renyi_report_text_free(&t);
    t = html(&fixture.report);
    assert_int_equal(count_text(t.bytes, "<a class=\"rc-m "),
                     4 * 150); /* two charts, wide and narrow */
    assert_int_equal(count_text(t.bytes, "<tr id=\"r"), 150);
    assert_int_equal(count_text(t.bytes, "so it is</th>"), 1);
    assert_int_equal(count_text(t.bytes, "http://www.w3.org/2000/svg"),
                     count_text(t.bytes, "://")); /* no links */
    renyi_report_text_free(&t);
}

/* Each metric has its own sign in the marks, and the legend shows it; one metric needs none. */
static void test_metrics(void **state)
{
    static const char *const metrics[] = {"cls", "col n=2", "random", "correct n=2 c=0.8"};
    (void)state;
    fixture_fill(&fixture, 21);
    renyi_report_text t;
    for (int n = 1; n <= 4; n++) {
        fixture.report.n_points = 5 * (uint32_t)n + 1; /* the first is dense */
        for (uint32_t i = 1; i < fixture.report.n_points; i++)
            snprintf(fixture.policies[i], sizeof fixture.policies[i],
                     "evit keep=0.%u layers=0,3,6 metric=%s", 4 + i % 5, metrics[i % (uint32_t)n]);
        fixture.report.n_pairs = 0;
        t = svg(&fixture.report, RENYI_CHART_GMACS);
        assert_int_equal(count_text(t.bytes, "class=\"rc-sign\""), n > 1 ? 5 * n + n : 0);
        assert_int_equal(count_text(t.bytes, ">col n=2</text>"), n > 1);
        assert_int_equal(count_text(t.bytes, ">correct n=2</text>"), n > 3);
        renyi_report_text_free(&t);
    }
}

/* Where texts end: no label of the token chart leaves the picture. */
static void test_labels_inside(void **state)
{
    (void)state;
    fixture_fill(&fixture, 150);
    for (uint32_t i = 0; i < 150; i++) {
        if (i % 5)
            snprintf(fixture.policies[i], sizeof fixture.policies[i],
                     "evit keep=0.%u layers=0,2,4,6,8,10 metric=col n=%u", 1 + i % 9, 1 + i);
        fixture.tokens[i][FIXTURE_BLOCKS - 1] = 1 + i; /* every line differs */
        fixture.points[i].native_size = 100;           /* every label has its size */
    }
    renyi_report_text t = svg(&fixture.report, RENYI_CHART_TOKENS);
    int n = 0;
    for (const char *at = t.bytes; (at = strstr(at, "<text class=\"rc-label")) != NULL; n++) {
        const double x = strtod(strstr(at, "x=\"") + 3, NULL);
        const char *from = strchr(at, '>') + 1, *to = strstr(from, "</text>");
        char text[200];
        snprintf(text, sizeof text, "%.*s", (int)(to - from), from);
        if (x + 12 * ry_text_width(text, 1e9, NULL) > 960) fail_msg("%s at %g", text, x);
        at = to;
    }
    assert_int_equal(n, 8);
    renyi_report_text_free(&t);
}

/* No point, one point, a point that cannot be drawn. */
static void test_few(void **state)
{
    (void)state;
    renyi_report_point blank = {.top1 = NAN, .gmacs = NAN, .ms_model = NAN};
    fixture_fill(&fixture, 1);
    const renyi_report none = {.struct_size = sizeof none},
                       bare = {.struct_size = sizeof bare, .n_points = 1, .points = &blank};
    const renyi_report *const all[] = {&none, &bare, &fixture.report};
    for (size_t i = 0; i < 3; i++) {
        for (size_t c = 0; c < 3; c++) {
            renyi_report_text t = svg(all[i], charts[c]);
            assert_null(strstr(t.bytes, "nan"));
            assert_null(strstr(t.bytes, "inf"));
            assert_int_equal(strstr(t.bytes, "rc-none\" x") != NULL, i < 2);
            renyi_report_text_free(&t);
        }
        renyi_report_text t = html(all[i]);
        assert_non_null(strstr(t.bytes, "</html>"));
        renyi_report_text_free(&t);
    }
    renyi_report_text_free(&(renyi_report_text){0});
    renyi_report_text_free(NULL);
}

static void test_nasty(void **state)
{
    (void)state;
    fixture_fill(&fixture, 100);
    fixture_spoil(&fixture);
    for (size_t c = 0; c < 4; c++) {
        renyi_report_text t = c < 3 ? svg(&fixture.report, charts[c]) : html(&fixture.report);
        assert_null(strstr(t.bytes, "<script>alert"));
        assert_null(strstr(t.bytes, "a='"));
        for (const char *at = t.bytes; *at; at++)
            if ((unsigned char)*at < ' ' && *at != '\n') fail_msg("control character %d", *at);
        assert_null(strstr(t.bytes, "\xff"));
        renyi_report_text_free(&t);
    }
}

static void test_size_and_bytes(void **state)
{
    (void)state;
    fixture_fill(&fixture, 300);
    renyi_report_text a = html(&fixture.report), b = html(&fixture.report);
    print_message("300 points, %zu pairs: %zu bytes\n", fixture.report.n_pairs, a.size);
    assert_true(a.size < 2000000);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.bytes, b.bytes, a.size);
    renyi_report_text_free(&b);
    for (size_t i = 0; i < fixture.report.n_pairs / 2;
         i++) { /* another order, and each pair swapped */
        renyi_report_pair *p = &fixture.pairs[i],
                          *q = &fixture.pairs[fixture.report.n_pairs - 1 - i];
        const renyi_report_pair was = *p;
        *p = *q;
        *q = (renyi_report_pair){was.b,       was.a,    was.both,        was.only_b,  was.only_a,
                                 was.neither, was.same, -was.difference, was.p_value, was.is_noise};
    }
    b = html(&fixture.report);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.bytes, b.bytes, a.size);
    renyi_report_text_free(&a);
    renyi_report_text_free(&b);
}

/* ---- errors ---- */

static void test_refused(void **state)
{
    (void)state;
    fixture_fill(&fixture, 5);
    renyi_report_text t = {.size = 3};
    renyi_error err;
    renyi_report r = fixture.report;
    assert_int_equal(renyi_report_svg(NULL, &r, RENYI_CHART_MS, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_report_html(&t, NULL, &err), RENYI_ERR_ARG);
    assert_true(t.size == 0 && !t.bytes);
    assert_int_equal(renyi_report_svg(&t, &r, (renyi_chart)3, &err), RENYI_ERR_ARG);
    r.baseline = 6;
    assert_int_equal(renyi_report_html(&t, &r, &err), RENYI_ERR_ARG);
    r.baseline = 0;
    r.n_points = RENYI_REPORT_MAX_POINTS + 1;
    assert_int_equal(renyi_report_html(&t, &r, &err), RENYI_ERR_LIMIT);
    r.n_points = 5;
    fixture.points[2].n_blocks = 100000;
    assert_int_equal(renyi_report_html(&t, &r, &err), RENYI_ERR_LIMIT);
    fixture.points[2].n_blocks = 12;
    fixture.pairs[1] = fixture.pairs[0];
    assert_int_equal(renyi_report_html(&t, &r, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "twice"));
    fixture.pairs[1].b = 5;
    assert_int_equal(renyi_report_html(&t, &r, &err), RENYI_ERR_ARG);
    fixture.pairs[1].b = fixture.pairs[1].a;
    assert_int_equal(renyi_report_html(&t, &r, NULL), RENYI_ERR_ARG);
}

/* Whichever allocation fails, there is an error, no text and no leak. */
static void test_no_memory(void **state)
{
    (void)state;
    fixture_fill(&fixture, 40);
    for (size_t c = 0; c < 4; c++) {
        renyi_status status = RENYI_ERR_NOMEM;
        for (size_t fail_at = 1; status == RENYI_ERR_NOMEM; fail_at++) {
            test_heap heap = {.fail_at = fail_at};
            renyi_report_text t;
            fixture.report.allocator = test_heap_of(&heap);
            status = c < 3 ? renyi_report_svg(&t, &fixture.report, charts[c], NULL)
                           : renyi_report_html(&t, &fixture.report, NULL);
            assert_true(status == RENYI_OK || status == RENYI_ERR_NOMEM);
            assert_int_equal(status == RENYI_OK, t.bytes != NULL);
            if (status == RENYI_OK) assert_true(fail_at > 4); /* some did fail before */
            renyi_report_text_free(&t);
            assert_int_equal(heap.live, 0);
        }
    }
}

/* ---- files for tests/cli/report.sh and report_browser.sh ---- */

static int write_all(const char *name)
{
    static const char *const endings[] = {"gmacs.svg", "ms.svg", "tokens.svg", "html"};
    char file[64];
    for (int c = 0; c < 4; c++) {
        renyi_report_text t;
        const renyi_status s = c < 3 ? renyi_report_svg(&t, &fixture.report, charts[c], NULL)
                                     : renyi_report_html(&t, &fixture.report, NULL);
        snprintf(file, sizeof file, "%s.%s", name, endings[c]);
        if (s || write_text(file, t)) return 1;
    }
    return 0;
}

static int write_files(void)
{
    static const struct {
        const char *name;
        uint32_t n;
        int is_nasty;
    } files[] = {
        {"empty", 0, 0}, {"single", 1, 0}, {"plain", 40, 0}, {"nasty", 100, 1}, {"large", 300, 0}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fixture_fill(&fixture, files[i].n);
        if (files[i].is_nasty) fixture_spoil(&fixture);
        if (write_all(files[i].name)) return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "write")) return write_files();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_front),
                                       cmocka_unit_test(test_marks),
                                       cmocka_unit_test(test_metrics),
                                       cmocka_unit_test(test_labels_inside),
                                       cmocka_unit_test(test_few),
                                       cmocka_unit_test(test_nasty),
                                       cmocka_unit_test(test_size_and_bytes),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
