/* page.c - the HTML page: one file, no network, readable without its script.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/page.h"

#include "report/chart/chart.h"

static int has_text(const char *text) { return text && *text; }

void ry_page_head(ry_sink *s, const char *title, const char *css)
{
    ry_putf(s,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"color-scheme\" content=\"light dark\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
            "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
            "<meta name=\"generator\" content=\"renyi %s\">\n<link rel=\"icon\" href=\"data:,\">\n"
            "<title>%s</title>\n<style>\n",
            renyi_version(), has_text(title) ? title : "renyi report");
    ry_put(s, ry_chart_css);
    ry_put(s, ry_page_css);
    if (css) ry_put(s, css);
    ry_put(s, "</style>\n</head>\n<body>\n");
}

void ry_page_fact(ry_sink *s, const char *name, const char *text)
{
    if (has_text(text)) ry_putf(s, "<div><dt>%s</dt><dd>%s</dd></div>\n", name, text);
}

static void put_models(ry_sink *s, const ry_view *v)
{
    uint32_t next = 0;
    ry_putf(s, "<div><dt>%s</dt><dd>", v->n_models > 1 ? "models" : "model");
    for (uint32_t i = 0; i < v->n; i++) {
        if (v->points[i].model_index < next) continue;
        ry_putf(s, next++ ? ", %s" : "%s", v->points[i].model);
    }
    ry_put(s, "</dd></div>\n");
}

static void put_photos(ry_sink *s, const ry_view *v)
{
    uint64_t least = UINT64_MAX, most = 0, failed = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        const renyi_report_point *p = v->points[i].of;
        if (p->images < least) least = p->images;
        if (p->images > most) most = p->images;
        if (p->failed > failed) failed = p->failed;
    }
    ry_put(s, "<div><dt>photos</dt><dd>");
    if (least < most) ry_putf(s, "%llu to ", (unsigned long long)least);
    ry_putf(s, "%llu", (unsigned long long)most);
    if (failed) ry_putf(s, ", <b>%llu could not be used</b>", (unsigned long long)failed);
    ry_put(s, "</dd></div>\n");
}

static void put_headline(ry_sink *s, const ry_view *v, const ry_pairs *p)
{
    const renyi_report *r = v->report;
    ry_putf(s, "<header>\n<h1>%s</h1>\n", has_text(r->title) ? r->title : "renyi report");
    if (has_text(r->note)) ry_putf(s, "<p class=\"note\">%s</p>\n", r->note);
    ry_put(s, "<dl class=\"facts\">\n");
    if (v->n) put_models(s, v);
    if (v->n) put_photos(s, v);
    ry_page_fact(s, "data", r->data);
    ry_putf(s, "<div><dt>points</dt><dd>%u</dd></div>\n", v->n);
    ry_page_fact(s, "machine", r->machine);
    ry_page_fact(s, "date", r->date);
    ry_put(s, "</dl>\n");
    if (has_text(r->command))
        ry_putf(s, "<pre class=\"command\" tabindex=\"0\"><code>%s</code></pre>\n", r->command);
    ry_page_verdict(s, v, p);
    ry_put(s, "</header>\n");
}

static void put_chart(ry_sink *s, const ry_view *v, renyi_chart chart, const char *title,
                      const char *meaning)
{
    ry_putf(s, "<figure>\n<figcaption><h2>%s</h2><p>%s</p></figcaption>\n", title, meaning);
    for (int i = 0; i < 2; i++) {
        const ry_form form = i ? RY_FORM_NARROW : RY_FORM_WIDE;
        if (chart == RENYI_CHART_TOKENS)
            ry_chart_tokens(s, v, form);
        else
            ry_chart_scatter(s, v, chart, form);
    }
    ry_put(s, "</figure>\n");
}

static void put_results(ry_sink *s, const ry_view *v)
{
    ry_put(s, "<section>\n<h2>All points</h2>\n"
              "<p>A row is one model at one picture size under one policy. <b>front</b>: no other "
              "point is as accurate for fewer GMACs, or in fewer milliseconds.</p>\n"
              "<form id=\"filters\" hidden></form>\n");
    ry_page_results(s, v);
    ry_put(s, "</section>\n");
}

static void put_tests(ry_sink *s, const ry_view *v, const ry_pairs *p)
{
    ry_put(
        s,
        "<section>\n<h2>Photo by photo</h2>\n"
        "<p>The same photos, two answers each: <b>p</b> is McNemar's exact test, how likely a "
        "split as uneven is if both were equally good. Rows in grey are within the noise: "
        "these photos do not tell them from the baseline. Of a hundred tests of equals about "
        "five come out below 0.05 by chance. The intervals are approximate: one that just misses "
        "zero does not overrule the exact test.</p>\n");
    if (p->is_partial)
        ry_put(s, "<p>So many pairs were tested that only those with a dense run or a point of a "
                  "front are here.</p>\n");
    ry_put(s, "<form id=\"choose\" hidden></form>\n");
    ry_page_tests(s, v, p);
    ry_put(s, "</section>\n");
}

void ry_page_foot(ry_sink *s)
{
    ry_putf(s,
            "</main>\n<footer>Made by renyi %s. This file needs nothing else: it can be moved, "
            "mailed and kept.</footer>\n<div id=\"tip\" role=\"status\" hidden></div>\n",
            renyi_version());
}

void ry_page_script(ry_sink *s, const char *script)
{
    ry_put(s, "<script>\n");
    ry_put(s, script);
    ry_put(s, "</script>\n</body>\n</html>\n");
}

renyi_status ry_page(ry_sink *s, const ry_view *v, renyi_error *err)
{
    ry_pairs pairs;
    const renyi_status status = ry_pairs_new(&pairs, v, err);
    if (status != RENYI_OK) return status;
    ry_page_head(s, v->report->title, NULL);
    put_headline(s, v, &pairs);
    ry_put(s, "<main>\n");
    put_chart(
        s, v, RENYI_CHART_GMACS, "Accuracy against arithmetic",
        "Further left is cheaper, further up is better. Of two marks whose intervals overlap, "
        "see the paired tests before you call one better.");
    put_chart(s, v, RENYI_CHART_MS, "Accuracy against time",
              "The same points by what the model took on this machine.");
    put_results(s, v);
    put_chart(s, v, RENYI_CHART_TOKENS, "Tokens left after each block",
              "Dense, and the most accurate points of the first chart's front.");
    put_tests(s, v, &pairs);
    ry_page_foot(s);
    ry_page_data(s, v, &pairs);
    ry_page_script(s, ry_page_js);
    ry_pairs_free(&pairs, v);
    return RENYI_OK;
}
