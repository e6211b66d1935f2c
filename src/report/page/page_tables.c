/* page_tables.c - the two tables of the page: all points, and each against the baseline.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/page.h"

static uint32_t most_tokens(const ry_view *v)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < v->n; i++)
        for (uint32_t b = 0; v->points[i].of->tokens && b < v->points[i].of->n_blocks; b++)
            if (v->points[i].of->tokens[b] > most) most = v->points[i].of->tokens[b];
    return most;
}

/* Tokens after each block as bars. */
static void put_bars(ry_sink *s, const renyi_report_point *p, uint32_t most)
{
    if (!p->tokens || !p->n_blocks) {
        ry_put(s, "<td>–</td>");
        return;
    }
    const uint32_t wide = p->n_blocks <= 16 ? 4 : 2, last = p->tokens[p->n_blocks - 1];
    ry_putf(s, "<td class=\"b\"><svg width=\"%u\" height=\"16\" role=\"img\" aria-label=\"",
            wide * p->n_blocks);
    for (uint32_t b = 0; b < p->n_blocks; b++) ry_putf(s, b ? " %u" : "%u", p->tokens[b]);
    ry_put(s, "\"><path d=\"");
    for (uint32_t b = 0; b < p->n_blocks; b++)
        ry_putf(s, "M%u 16V%.1fh%uV16", wide * b, 16 - 16.0 * p->tokens[b] / most, wide - 1);
    ry_putf(s, "\"/></svg> %u</td>", last);
}

static void put_row(ry_sink *s, const ry_view *v, uint32_t i, uint64_t most_images, uint32_t most)
{
    const ry_view_point *p = &v->points[i];
    const renyi_report_point *o = p->of;
    ry_putf(s, "<tr id=\"r%u\" class=\"c%u\" data-i=\"%u\" data-f=\"", i + 1, p->colour, i);
    ry_put_escaped_part(s, p->family, p->family_size);
    ry_putf(s, "\"><td>%u</td><td class=\"po\" title=\"%s\"><i></i><a href=\"#r%u\">%s</a></td>",
            i + 1, o->policy ? o->policy : "none", i + 1, p->policy);
    ry_putf(s, "<td class=\"mo\">%s</td><td class=\"si%s\">", p->model, p->is_resized ? " rs" : "");
    if (o->image_size || o->native_size)
        ry_putf(s, "%u</td>", o->image_size ? o->image_size : o->native_size);
    else
        ry_put(s, "–</td>");
    ry_putf(s, "<td class=\"t1\"><b>%.2f</b> <small>%.1f – %.1f", o->top1, o->top1_low,
            o->top1_high);
    if (o->images != most_images) ry_putf(s, ", %llu photos", (unsigned long long)o->images);
    ry_putf(s, "</small></td><td>%.2f</td><td>%.3f</td><td class=\"g\">%.3f</td>", o->top5, o->loss,
            o->gmacs);
    ry_putf(s,
            "<td title=\"%.2f with reading and decoding\">%.2f</td><td>%.1f</td><td class=\"fr\">",
            o->ms_total, o->ms_model, o->images_per_second);
    if (p->on_front[RENYI_CHART_GMACS]) ry_put(s, "<em>GMACs</em> ");
    if (p->on_front[RENYI_CHART_MS]) ry_put(s, "<em>ms</em>");
    ry_put(s, "</td>");
    put_bars(s, o, most);
    ry_put(s, "</tr>\n");
}

void ry_page_results(ry_sink *s, const ry_view *v)
{
    const uint32_t most = most_tokens(v);
    uint64_t most_images = 0;
    for (uint32_t i = 0; i < v->n; i++)
        if (v->points[i].of->images > most_images) most_images = v->points[i].of->images;
    ry_putf(s,
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"All points\">"
            "<table id=\"points\" class=\"%s\">\n<caption>",
            v->n_models > 1 ? "many" : "one");
    ry_put(s, "All points</caption>\n<thead><tr>"
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
    for (uint32_t i = 0; i < v->n; i++) put_row(s, v, i, most_images, most);
    ry_put(s, "</tbody></table></div>\n");
}

/* page.js writes the same rows when another baseline is chosen. */
static void put_test(ry_sink *s, const ry_view *v, uint32_t i, const renyi_report_pair *p)
{
    const double n = (double)p->both + (double)p->only_a + (double)p->only_b + (double)p->neither;
    const ry_view_point *point = &v->points[i];
    ry_putf(s, "<tr class=\"c%u%s\" data-i=\"%u\"><td>%u</td>", point->colour,
            p->is_noise ? " noise" : "", i, i + 1);
    ry_putf(s, "<td class=\"po\"><i></i><a href=\"#r%u\">%s</a><small>", i + 1, point->policy);
    if (v->n_models > 1) ry_putf(s, ", %s", point->model);
    if (point->is_resized) ry_putf(s, ", %u px", point->of->image_size);
    ry_putf(s, "</small></td><td class=\"g\">%.3f</td><td><b>", point->of->gmacs);
    ry_put_signed(s, p->difference, 2);
    ry_put(s, "</b> <small>");
    ry_put_interval(s, p);
    ry_putf(s, "</small></td><td>%llu</td><td>%llu</td><td>%llu</td><td>%llu</td><td>%.1f</td><td>",
            (unsigned long long)p->both, (unsigned long long)p->only_a,
            (unsigned long long)p->only_b, (unsigned long long)p->neither,
            100 * (double)p->same / n);
    ry_put_p_value(s, p->p_value);
    ry_putf(s, "</td><td>%s</td></tr>\n",
            p->is_noise         ? "within the noise"
            : p->difference < 0 ? "worse"
                                : "better");
}

void ry_page_tests(ry_sink *s, const ry_view *v, const ry_pairs *p)
{
    ry_put(s, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Paired tests\">"
              "<table id=\"tests\">\n<caption>Photo by photo against ");
    ry_put(s, "<span id=\"against\">");
    if (v->n) ry_page_title(s, v, v->baseline);
    ry_put(s, "</span>");
    ry_put(s,
           "</caption>\n<thead><tr><th scope=\"col\">#</th><th scope=\"col\">policy</th>"
           "<th scope=\"col\">GMACs</th><th scope=\"col\" data-down>points, 95 % interval</th><th "
           "scope=\"col\">both right</th><th scope=\"col\">only baseline</th><th "
           "scope=\"col\">only this</th><th scope=\"col\">neither</th><th scope=\"col\" "
           "data-down>same answer %</th><th scope=\"col\">p</th><th scope=\"col\">so it is</th>"
           "</tr></thead>\n<tbody>\n");
    for (uint32_t i = 0; i < v->n; i++) {
        renyi_report_pair pair;
        if (i != v->baseline && ry_pairs_find(p, v->baseline, i, &pair)) put_test(s, v, i, &pair);
    }
    ry_put(s, "</tbody></table></div>\n");
}
