/* test_report_text.c - the parts of reports: escaped text, numbers in any locale, round ticks,
 * short names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/chart.h"
#include "report/page/page.h"

#include "base/alloc.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

/* Returns the text so far and empties the sink. */
static const char *taken(ry_buffer *s, char *out, size_t size)
{
    assert_false(s->failed);
    assert_true(s->size < size);
    if (s->size) memcpy(out, s->bytes, s->size);
    out[s->size] = 0;
    ry_free(NULL, s->bytes);
    *s = (ry_buffer){0};
    return out;
}

static void test_escape(void **state)
{
    (void)state;
    static const struct {
        const char *in, *xml, *json;
    } known[] = {
        {"plain keep=0.7", "plain keep=0.7", "plain keep=0.7"},
        {"<a href=\"x\">&'", "&lt;a href=&quot;x&quot;&gt;&amp;&#39;",
         "\\u003ca href=\\\"x\\\"\\u003e\\u0026'"},
        {"back\\slash", "back\\slash", "back\\\\slash"},
        {"a\tb\nc\rd", "a b c d", "a b c d"},
        {"\x01\x1f\x7f", "\uFFFD\uFFFD\uFFFD", "\uFFFD\uFFFD\uFFFD"},
        {"Rényi 图 😀", "Rényi 图 😀", "Rényi 图 😀"},
        {"\xff\xc3(\xe2\x82", "\uFFFD\uFFFD(\uFFFD", "\uFFFD\uFFFD(\uFFFD"},
        {"\xc0\xaf\xf8", "\uFFFD\uFFFD\uFFFD", "\uFFFD\uFFFD\uFFFD"}, /* overlong, impossible */
        {"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD", "\uFFFD\uFFFD\uFFFD"}, /* half a surrogate pair */
        {"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD",
         "\uFFFD\uFFFD\uFFFD\uFFFD"},         /* beyond Unicode */
        {"\xef\xbf\xbf", "\uFFFD", "\uFFFD"}, /* not for XML */
        {"\xe2\x80\xaegpj.exe", "\uFFFDgpj.exe",
         "\uFFFDgpj.exe"},                    /* changes the writing direction */
        {"\xe2\x80\xa8", "\uFFFD", "\uFFFD"}, /* line separator */
        {"", "", ""}};
    ry_buffer s = {0};
    char out[200];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        ry_put_escaped(&s, known[i].in);
        assert_string_equal(taken(&s, out, sizeof out), known[i].xml);
        ry_put_json(&s, known[i].in);
        assert_string_equal(taken(&s, out, sizeof out), known[i].json);
    }
}

static void test_template(void **state)
{
    (void)state;
    ry_buffer s = {0};
    char out[200];
    ry_putf(&s, "%s|%u|%zu|%llu|%.0f|%.3f|100 %%", "<&>", 7u, (size_t)8, 18446744073709551615ull,
            2.5, -1.0005);
    assert_string_equal(taken(&s, out, sizeof out),
                        "&lt;&amp;&gt;|7|8|18446744073709551615|2|-1.000|100 %");
    ry_put_signed(&s, -1.25, 1);
    ry_put_signed(&s, 1.26, 1);
    ry_put_signed(&s, -0.001, 1);
    assert_string_equal(taken(&s, out, sizeof out), "\u22121.2+1.30.0");
    ry_put_p_value(&s, 0.04999);
    ry_put_p_value(&s, 0.00009);
    ry_put_p_value(&s, NAN);
    assert_string_equal(taken(&s, out, sizeof out), "0.0500&lt; 0.0001\u2013");
}

static const char *number(double v, int decimals)
{
    static char out[RY_NUMBER_MAX + 1];
    out[ry_number(out, v, decimals)] = 0;
    return out;
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        double v;
        int decimals;
        const char *text;
    } known[] = {{0, 0, "0"},
                 {0, 2, "0.00"},
                 {74.2, 2, "74.20"},
                 {-0.004, 2, "0.00"},
                 {-0.006, 2, "-0.01"},
                 {0.9996, 3, "1.000"},
                 {1e6, 1, "1000000.0"},
                 {1234567.891, 3, "1234567.891"},
                 {1e20, 2, "100000000000000000000"},
                 {NAN, 2, "\u2013"},
                 {INFINITY, 0, "\u2013"}};
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "C.UTF-8"};
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            assert_string_equal(number(known[i].v, known[i].decimals), known[i].text);
        for (size_t i = 0; !l && i < 3 && !setlocale(LC_ALL, commas[i]); i++)
            if (i == 2) puts("SKIP: no locale with a decimal comma is installed");
    }
    assert_int_equal(strlen(number(-DBL_MAX, 6)), 310);
    setlocale(LC_ALL, "C");
}

static void check_scale(double least, double most, int may_be_log, int ticks)
{
    ry_scale s = ry_scale_of(least, most, may_be_log, ticks);
    assert_true(isfinite(s.low) && isfinite(s.high) && s.low < s.high);
    assert_true(s.n_ticks <= ticks);
    for (int i = 0; i < s.n_ticks; i++) {
        assert_true(s.ticks[i] >= s.low - 1e-6 * fabs(s.low) &&
                    s.ticks[i] <= s.high + 1e-6 * fabs(s.high));
        assert_true(!i || s.ticks[i] > s.ticks[i - 1]);
        assert_in_range(ry_scale_decimals(&s, i), 0, 6);
    }
    s.from = 10, s.to = 20;
    assert_true(ry_scale_at(&s, s.low) == 10 && fabs(ry_scale_at(&s, s.high) - 20) < 1e-9);
    assert_true(ry_scale_at(&s, -DBL_MAX) == 10 && fabs(ry_scale_at(&s, DBL_MAX) - 20) < 1e-9);
}

static void test_scales(void **state)
{
    (void)state;
    static const double ends[] = {0,    1e-300,   1e-9,      0.3, 1,      7.25,
                                  99.9, 100,      12345,     1e9, 1e300,  -1,
                                  -1e9, INFINITY, -INFINITY, NAN, -1e308, 1e308};
    const size_t n = sizeof ends / sizeof *ends;
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            for (int ticks = 2; ticks <= RY_MAX_TICKS; ticks += 7)
                for (int may_be_log = 0; may_be_log < 2; may_be_log++)
                    check_scale(ends[a], ends[b], may_be_log, ticks);
    ry_scale s = ry_scale_of(52.1, 77.9, 0, 7); /* 50.6 to 79.4 */
    assert_int_equal(s.n_ticks, 5);
    for (int i = 0; i < 5; i++) assert_true(s.ticks[i] == 55 + 5 * i);
    s = ry_scale_of(0.35, 1.25, 0, 7);
    assert_true(fabs(s.ticks[1] - s.ticks[0] - 0.2) < 1e-12 && ry_scale_decimals(&s, 0) == 1);
    s = ry_scale_of(0.5, 60, 1, 11); /* 0.4 to 80: by 1, 2, 5 */
    assert_true(s.is_log && s.n_ticks == 7 && fabs(s.ticks[0] - 0.5) < 1e-12 && s.ticks[6] == 50);
}

static void test_short_names(void **state)
{
    (void)state;
    static const char *const models[][2] = {{"vit_tiny", "vit_tiny"},
                                            {"/data/m/vit_tiny.safetensors", "vit_tiny"},
                                            {"google/vit-base/", "vit-base"},
                                            {"/", "/"},
                                            {"", ""},
                                            {".pt", ".pt"},
                                            {"a/x.pth", "x"}};
    static const char *const policies[][2] = {
        {"none", "none"},
        {"mosaic keep=0.7 layers=0,3,6", "mosaic keep=0.7 layers=0,3,6"},
        {"evit keep=0.7 layers=3,6,9 metric=cls reduce=fuse weights=cls at=mid order=score",
         "evit keep=0.7 layers=3,6,9 metric=cls"},
        {"evit keep=0.7 layers=3,6,9 metric=col n=4 heads=mean class_row=yes diagonal=no reduce=merge "
         "at=mid order=score",
         "evit keep=0.7 layers=3,6,9 metric=col n=4 diagonal=no merge"},
        {"no policy <at all>", "no policy <at all>"},
        {"", ""}};
    ry_buffer s = {0};
    char out[2000];
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        ry_put_short_model(&s, models[i][0]);
        assert_string_equal(taken(&s, out, sizeof out), models[i][1]);
    }
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        ry_put_short_policy(&s, policies[i][0]);
        assert_string_equal(taken(&s, out, sizeof out), policies[i][1]);
    }
}

static void test_width(void **state)
{
    (void)state;
    const char *text = "ab图\xff", *cut;
    const double all = ry_text_width(text, 100, &cut);
    assert_true(*cut == 0 && all > 1.5 && all < 4);
    assert_true(ry_text_width(text, 1.3, &cut) <= 1.3 && cut == text + 2);
    assert_true(ry_text_width("", 1, &cut) == 0 && ry_text_width(text, 0, &cut) == 0 &&
                cut == text);
}

static void test_interval(void **state)
{
    (void)state;
    static const struct {
        uint64_t both, only_a, only_b, neither;
        double low, high;
    } known[] = {{324, 47, 10, 119, -10.273207, -4.467829},
                 {500, 0, 0, 0, -0.390431, 0.390431},
                 {0, 5, 0, 0, -100, -27.794524} /* limited to -100 */};
    for (size_t i = 0; i < 3; i++) {
        const renyi_report_pair p = {.both = known[i].both,
                                     .only_a = known[i].only_a,
                                     .only_b = known[i].only_b,
                                     .neither = known[i].neither};
        double low, high;
        ry_pair_interval(&p, &low, &high);
        assert_true(fabs(low - known[i].low) < 1e-5 && fabs(high - known[i].high) < 1e-5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escape),      cmocka_unit_test(test_template),
        cmocka_unit_test(test_numbers),     cmocka_unit_test(test_scales),
        cmocka_unit_test(test_short_names), cmocka_unit_test(test_width),
        cmocka_unit_test(test_interval)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
