/* report_page.c - the report of a sweep: its charts as SVG files and its HTML page.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/page.h"

#include "base/alloc.h"
#include "base/status.h"
#include "report/chart/chart.h"

#include <string.h>

/* ---- what all pages share ---- */

void ry_page_head(ry_buffer *s, const char *title, const char *css)
{
    ry_putf(s,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"color-scheme\" content=\"light dark\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
            "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
            "<meta name=\"generator\" content=\"renyi %s\">\n<link rel=\"icon\" href=\"data:,\">\n"
            "<title>%s</title>\n<style>\n",
            renyi_version(), ry_has_text(title) ? title : "renyi report");
    ry_buffer_text(s, ry_chart_css);
    ry_buffer_text(s, ry_page_css);
    if (css) ry_buffer_text(s, css);
    ry_buffer_text(s, "</style>\n</head>\n<body>\n");
}

void ry_page_fact(ry_buffer *s, const char *name, const char *text)
{
    if (ry_has_text(text)) ry_putf(s, "<div><dt>%s</dt><dd>%s</dd></div>\n", name, text);
}

void ry_page_header(ry_buffer *s, const char *title, const char *note, const char *date,
                    const char *command)
{
    ry_putf(s, "<header>\n<h1>%s</h1>\n", title);
    if (ry_has_text(note)) ry_putf(s, "<p class=\"note\">%s</p>\n", note);
    if (ry_has_text(date)) {
        ry_buffer_text(s, "<dl class=\"facts\">\n");
        ry_page_fact(s, "date", date);
        ry_buffer_text(s, "</dl>\n");
    }
    if (ry_has_text(command))
        ry_putf(s, "<pre class=\"command\" tabindex=\"0\"><code>%s</code></pre>\n", command);
    ry_buffer_text(s, "</header>\n");
}

void ry_page_foot(ry_buffer *s)
{
    ry_putf(s,
            "</main>\n<footer>Made by renyi %s. This file needs nothing else: it can be moved, "
            "mailed and kept.</footer>\n<div id=\"tip\" role=\"status\" hidden></div>\n",
            renyi_version());
}

void ry_page_script(ry_buffer *s, const char *script)
{
    ry_buffer_text(s, "<script>\n");
    ry_buffer_text(s, ry_dom_js);
    ry_buffer_text(s, script);
    ry_buffer_text(s, "</script>\n</body>\n</html>\n");
}

renyi_status ry_text_finish(renyi_report_text *out, ry_buffer *s, renyi_status status,
                            renyi_error *err)
{
    const renyi_allocator al = *s->al;
    ry_buffer_put(s, "", 1);
    if (status == RENYI_OK && s->failed) status = ry_fail_nomem(err, s->wanted);
    if (status != RENYI_OK) {
        ry_free(&al, s->bytes);
        return status;
    }
    *out = (renyi_report_text){s->bytes, s->size - 1, al};
    return RENYI_OK;
}

void renyi_report_text_free(renyi_report_text *t)
{
    if (!t) return;
    const renyi_allocator al = t->allocator;
    ry_free(&al, t->bytes);
    memset(t, 0, sizeof *t);
}

/* ---- the header ---- */

static void put_models(ry_buffer *s, const ry_point_set *set)
{
    uint32_t next = 0;
    ry_putf(s, "<div><dt>%s</dt><dd>", set->n_models > 1 ? "models" : "model");
    for (uint32_t i = 0; i < set->n; i++) {
        if (set->points[i].model_index < next) continue;
        ry_putf(s, next++ ? ", %s" : "%s", set->points[i].model);
    }
    ry_buffer_text(s, "</dd></div>\n");
}

static void put_image_counts(ry_buffer *s, const ry_point_set *set)
{
    uint64_t least = UINT64_MAX, most = 0, failed = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        const renyi_report_point *p = set->points[i].of;
        if (p->images < least) least = p->images;
        if (p->images > most) most = p->images;
        if (p->failed > failed) failed = p->failed;
    }
    ry_buffer_text(s, "<div><dt>photos</dt><dd>");
    if (least < most) ry_putf(s, "%llu to ", (unsigned long long)least);
    ry_putf(s, "%llu", (unsigned long long)most);
    if (failed) ry_putf(s, ", <b>%llu could not be used</b>", (unsigned long long)failed);
    ry_buffer_text(s, "</dd></div>\n");
}

static void put_header(ry_buffer *s, const ry_point_set *set, const ry_pairs *p)
{
    const renyi_report *r = set->report;
    ry_putf(s, "<header>\n<h1>%s</h1>\n", ry_has_text(r->title) ? r->title : "renyi report");
    if (ry_has_text(r->note)) ry_putf(s, "<p class=\"note\">%s</p>\n", r->note);
    ry_buffer_text(s, "<dl class=\"facts\">\n");
    if (set->n) put_models(s, set);
    if (set->n) put_image_counts(s, set);
    ry_page_fact(s, "data", r->data);
    ry_putf(s, "<div><dt>points</dt><dd>%u</dd></div>\n", set->n);
    ry_page_fact(s, "machine", r->machine);
    ry_page_fact(s, "date", r->date);
    ry_buffer_text(s, "</dl>\n");
    if (ry_has_text(r->command))
        ry_putf(s, "<pre class=\"command\" tabindex=\"0\"><code>%s</code></pre>\n", r->command);
    ry_put_verdict(s, set, p);
    ry_buffer_text(s, "</header>\n");
}

/* ---- the table of points ---- */

static uint32_t most_tokens(const ry_point_set *set)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < set->n; i++)
        for (uint32_t b = 0; set->points[i].of->tokens && b < set->points[i].of->n_blocks; b++)
            if (set->points[i].of->tokens[b] > most) most = set->points[i].of->tokens[b];
    return most;
}

/* Tokens after each block, as small bars. */
static void put_bars(ry_buffer *s, const renyi_report_point *p, uint32_t most)
{
    if (!p->tokens || !p->n_blocks) {
        ry_buffer_text(s, "<td>–</td>");
        return;
    }
    const uint32_t wide = p->n_blocks <= 16 ? 4 : 2, last = p->tokens[p->n_blocks - 1];
    ry_putf(s, "<td class=\"b\"><svg width=\"%u\" height=\"16\" role=\"img\" aria-label=\"",
            wide * p->n_blocks);
    for (uint32_t b = 0; b < p->n_blocks; b++) ry_putf(s, b ? " %u" : "%u", p->tokens[b]);
    ry_buffer_text(s, "\"><path d=\"");
    for (uint32_t b = 0; b < p->n_blocks; b++)
        ry_putf(s, "M%u 16V%.1fh%uV16", wide * b, 16 - 16.0 * p->tokens[b] / most, wide - 1);
    ry_putf(s, "\"/></svg> %u</td>", last);
}

static void put_point_row(ry_buffer *s, const ry_point_set *set, uint32_t i, uint64_t most_images,
                          uint32_t most)
{
    const ry_point *p = &set->points[i];
    const renyi_report_point *o = p->of;
    ry_putf(s, "<tr id=\"r%u\" class=\"c%u\" data-i=\"%u\" data-f=\"", i + 1, p->colour, i);
    ry_put_escaped_part(s, p->family, p->family_size);
    ry_putf(s, "\"><td>%u</td><td class=\"po\" title=\"%s\"><i></i><a href=\"#r%u\">%s</a></td>",
            i + 1, o->policy ? o->policy : "none", i + 1, p->policy);
    ry_putf(s, "<td class=\"mo\">%s</td><td class=\"si%s\">", p->model, p->is_resized ? " rs" : "");
    if (o->image_size || o->native_size)
        ry_putf(s, "%u</td>", o->image_size ? o->image_size : o->native_size);
    else
        ry_buffer_text(s, "–</td>");
    ry_putf(s, "<td class=\"t1\"><b>%.2f</b> <small>%.1f – %.1f", o->top1, o->top1_low,
            o->top1_high);
    if (o->images != most_images) ry_putf(s, ", %llu photos", (unsigned long long)o->images);
    ry_putf(s, "</small></td><td>%.2f</td><td>%.3f</td><td class=\"g\">%.3f</td>", o->top5, o->loss,
            o->gmacs);
    ry_putf(s,
            "<td title=\"%.2f with reading and decoding\">%.2f</td><td>%.1f</td><td class=\"fr\">",
            o->ms_total, o->ms_model, o->images_per_second);
    if (p->on_front[RENYI_CHART_GMACS]) ry_buffer_text(s, "<em>GMACs</em> ");
    if (p->on_front[RENYI_CHART_MS]) ry_buffer_text(s, "<em>ms</em>");
    ry_buffer_text(s, "</td>");
    put_bars(s, o, most);
    ry_buffer_text(s, "</tr>\n");
}

static void put_points_table(ry_buffer *s, const ry_point_set *set)
{
    const uint32_t most = most_tokens(set);
    uint64_t most_images = 0;
    for (uint32_t i = 0; i < set->n; i++)
        if (set->points[i].of->images > most_images) most_images = set->points[i].of->images;
    ry_putf(s,
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"All points\">"
            "<table id=\"points\" class=\"%s\">\n<caption>",
            set->n_models > 1 ? "many" : "one");
    ry_buffer_text(s, "All points</caption>\n<thead><tr>"
                      "<th scope=\"col\">#</th>"
                      "<th scope=\"col\">policy</th>"
                      "<th scope=\"col\" class=\"mo\">model</th>"
                      "<th scope=\"col\">size</th>"
                      "<th scope=\"col\" data-down>top-1 %, 95 % interval</th>"
                      "<th scope=\"col\" data-down>top-5 %</th>"
                      "<th scope=\"col\">loss</th>"
                      "<th scope=\"col\">GMACs</th>"
                      "<th scope=\"col\">ms</th>"
                      "<th scope=\"col\" data-down>images/s</th>"
                      "<th scope=\"col\" data-down>front</th>"
                      "<th scope=\"col\">tokens left</th>"
                      "</tr></thead>\n<tbody>\n");
    for (uint32_t i = 0; i < set->n; i++) put_point_row(s, set, i, most_images, most);
    ry_buffer_text(s, "</tbody></table></div>\n");
}

static void put_points_section(ry_buffer *s, const ry_point_set *set)
{
    ry_buffer_text(
        s, "<section>\n<h2>All points</h2>\n"
           "<p>A row is one model at one picture size under one policy. <b>front</b>: no other "
           "point is as accurate for fewer GMACs, or in fewer milliseconds.</p>\n"
           "<form id=\"filters\" hidden></form>\n");
    put_points_table(s, set);
    ry_buffer_text(s, "</section>\n");
}

/* ---- the page ---- */

static void put_chart(ry_buffer *s, const ry_point_set *set, renyi_chart chart, ry_chart_form form)
{
    if (chart == RENYI_CHART_TOKENS)
        ry_chart_tokens(s, set, form);
    else
        ry_chart_scatter(s, set, chart, form);
}

static void put_figure(ry_buffer *s, const ry_point_set *set, renyi_chart chart, const char *title,
                       const char *meaning)
{
    ry_putf(s, "<figure>\n<figcaption><h2>%s</h2><p>%s</p></figcaption>\n", title, meaning);
    put_chart(s, set, chart, RY_CHART_WIDE);
    put_chart(s, set, chart, RY_CHART_NARROW);
    ry_buffer_text(s, "</figure>\n");
}

static void put_tests_section(ry_buffer *s, const ry_point_set *set, const ry_pairs *p)
{
    ry_buffer_text(
        s,
        "<section>\n<h2>Photo by photo</h2>\n"
        "<p>The same photos, two answers each: <b>p</b> is McNemar's exact test, how likely a "
        "split as uneven is if both were equally good. Rows in gray are within the noise: "
        "these photos do not tell them from the baseline. Of a hundred tests of equals about "
        "five come out below 0.05 by chance. The intervals are approximate: one that just misses "
        "zero does not overrule the exact test.</p>\n");
    if (p->is_partial)
        ry_buffer_text(
            s, "<p>So many pairs were tested that only those with a dense run or a point of a "
               "front are here.</p>\n");
    ry_buffer_text(s, "<form id=\"choose\" hidden></form>\n");
    ry_put_tests(s, set, p);
    ry_buffer_text(s, "</section>\n");
}

static renyi_status put_page(ry_buffer *s, const ry_point_set *set, renyi_error *err)
{
    ry_pairs pairs;
    const renyi_status status = ry_pairs_new(&pairs, set, err);
    if (status != RENYI_OK) return status;
    ry_page_head(s, set->report->title, NULL);
    put_header(s, set, &pairs);
    ry_buffer_text(s, "<main>\n");
    put_figure(s, set, RENYI_CHART_GMACS, "Accuracy against arithmetic",
               "Further left is cheaper, further up is better. If the intervals of two marks "
               "overlap, see the paired tests before you call one better.");
    put_figure(s, set, RENYI_CHART_MS, "Accuracy against time",
               "The same points by what the model took on this machine.");
    put_points_section(s, set);
    put_figure(s, set, RENYI_CHART_TOKENS, "Tokens left after each block",
               "Dense, and the most accurate points of the first chart's front.");
    put_tests_section(s, set, &pairs);
    ry_page_foot(s);
    ry_put_pairs_data(s, set, &pairs);
    ry_page_script(s, ry_page_js);
    ry_pairs_free(&pairs, set);
    return RENYI_OK;
}

renyi_status renyi_report_svg(renyi_report_text *out, const renyi_report *r, renyi_chart chart,
                              renyi_error *err)
{
    ry_point_set set;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_report_svg: NULL argument");
    memset(out, 0, sizeof *out);
    if (chart != RENYI_CHART_GMACS && chart != RENYI_CHART_MS && chart != RENYI_CHART_TOKENS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_report_svg: there is no chart %d",
                       (int)chart);
    RY_TRY(ry_point_set_new(&set, r, err));
    ry_buffer s = {.al = &r->allocator};
    put_chart(&s, &set, chart, RY_CHART_FILE);
    ry_point_set_free(&set);
    return ry_text_finish(out, &s, RENYI_OK, err);
}

renyi_status renyi_report_html(renyi_report_text *out, const renyi_report *r, renyi_error *err)
{
    ry_point_set set;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_report_html: NULL argument");
    memset(out, 0, sizeof *out);
    RY_TRY(ry_point_set_new(&set, r, err));
    ry_buffer s = {.al = &r->allocator};
    const renyi_status status = put_page(&s, &set, err);
    ry_point_set_free(&set);
    return ry_text_finish(out, &s, status, err);
}
