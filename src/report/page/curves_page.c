/* curves_page.c - the page of training runs: charts, values under the pointer, a table of runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/chart.h"
#include "report/page/page.h"

#include "base/status.h"

#include <math.h>
#include <string.h>

/* ---- parts ---- */

static void put_panel(ry_buffer *s, const renyi_report_curves *r, uint32_t i)
{
    const renyi_report_panel *p = &r->panels[i];
    ry_putf(s, "<figure>\n<figcaption><h2>%s</h2>", p->title ? p->title : "");
    if (ry_has_text(p->caption)) ry_putf(s, "<p>%s</p>", p->caption);
    ry_buffer_text(s, "</figcaption>\n");
    ry_chart_panel(s, r, i, RY_CHART_WIDE);
    ry_chart_panel(s, r, i, RY_CHART_NARROW);
    ry_buffer_text(s, "</figure>\n");
}

static void put_run(ry_buffer *s, const renyi_report_curves *r, uint32_t i)
{
    const ry_run_look look = ry_run_look_of(i);
    ry_putf(s, "<tr data-i=\"%u\"><td class=\"po\"><svg class=\"rc\" width=\"34\" height=\"12\" ",
            i);
    ry_putf(s,
            "aria-hidden=\"true\"><path class=\"rc-curve c%u rc-d%u\" d=\"M1 6h26\"/></svg>"
            "<b>%s</b></td>",
            look.colour, look.dashes, ry_run_name(r, i));
    for (uint32_t k = 0; k < r->n_columns; k++) {
        const renyi_report_column *c = &r->columns[k];
        ry_buffer_text(s, c->is_text ? "<td class=\"mo\">" : "<td>");
        ry_putf(s, "%s</td>", c->cells[i] ? c->cells[i] : "–");
    }
    ry_buffer_text(s, "</tr>\n");
}

static void put_table(ry_buffer *s, const renyi_report_curves *r)
{
    ry_buffer_text(
        s, "<section>\n<h2>Runs</h2>\n<p class=\"hint\" hidden>Choose a row to see its lines "
           "alone.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
           "aria-label=\"Runs\"><table id=\"runs\">\n<caption>Runs</caption>\n<thead><tr>"
           "<th scope=\"col\" class=\"mo\">run</th>");
    for (uint32_t k = 0; k < r->n_columns; k++)
        ry_putf(s, "<th scope=\"col\"%s>%s</th>", r->columns[k].is_text ? " class=mo" : "",
                r->columns[k].name ? r->columns[k].name : "");
    ry_buffer_text(s, "</tr></thead>\n<tbody>\n");
    for (uint32_t i = 0; i < r->n_runs; i++) put_run(s, r, i);
    ry_buffer_text(s, "</tbody></table></div>\n</section>\n");
}

/* ---- numbers for the script ---- */

static void put_numbers(ry_buffer *s, const char *name, const double *v, size_t n, int decimals)
{
    ry_putf(s, "\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
        if (i) ry_buffer_text(s, ",");
        if (isfinite(v[i]))
            ry_put_number(s, v[i], decimals);
        else
            ry_buffer_text(s, "null");
    }
    ry_buffer_text(s, "]");
}

static void put_panel_data(ry_buffer *s, const renyi_report_panel *p)
{
    double x[2] = {INFINITY, -INFINITY}, y[2] = {INFINITY, -INFINITY};
    int n = 0;
    ry_buffer_text(s, "{\"x\":\"");
    ry_put_json(s, p->x_label ? p->x_label : "");
    ry_putf(s, "\",\"decimals\":[%u,%u],\"curves\":[", p->x_decimals, p->y_decimals);
    for (uint32_t i = 0; i < p->n_curves; i++)
        if (!p->curves[i].is_faint) ry_curve_range(&p->curves[i], x, y);
    for (uint32_t i = 0; i < p->n_curves; i++) {
        const renyi_report_curve *c = &p->curves[i];
        if (c->is_faint) continue;
        ry_putf(s, n++ ? ",\n{\"run\":%u," : "\n{\"run\":%u,", c->run);
        put_numbers(s, "x", c->x, c->n, ry_fine_decimals(x[0], x[1]));
        ry_buffer_text(s, ",");
        put_numbers(s, "y", c->y, c->n, ry_fine_decimals(y[0], y[1]));
        ry_buffer_text(s, "}");
    }
    ry_buffer_text(s, "]}");
}

static void put_data(ry_buffer *s, const renyi_report_curves *r)
{
    ry_buffer_text(s, "<script type=\"application/json\" id=\"data\">{\"runs\":[");
    for (uint32_t i = 0; i < r->n_runs; i++) {
        ry_buffer_text(s, i ? ",\"" : "\"");
        ry_put_json(s, ry_run_name(r, i));
        ry_buffer_text(s, "\"");
    }
    ry_buffer_text(s, "],\n\"panels\":[");
    for (uint32_t i = 0; i < r->n_panels; i++) {
        if (i) ry_buffer_text(s, ",\n");
        put_panel_data(s, &r->panels[i]);
    }
    ry_buffer_text(s, "]}</script>\n");
}

static void put_page(ry_buffer *s, const renyi_report_curves *r)
{
    const char *title = ry_has_text(r->title) ? r->title : "Training runs";
    ry_page_head(s, title, NULL);
    ry_page_header(s, title, r->note, r->date, r->command);
    ry_buffer_text(s, "<main>\n");
    for (uint32_t i = 0; i < r->n_panels; i++) put_panel(s, r, i);
    put_table(s, r);
    ry_page_foot(s);
    put_data(s, r);
    ry_page_script(s, ry_curves_js);
}

/* ---- public functions ---- */

static renyi_status check_panel(const renyi_report_curves *r, uint32_t i, renyi_error *err)
{
    const renyi_report_panel *p = &r->panels[i];
    if (p->n_curves > 2 * RENYI_REPORT_MAX_RUNS || p->x_decimals > 6 || p->y_decimals > 6)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "curves: chart %u has %u curves, %u and %u decimals; at most %u and 6", i,
                       p->n_curves, p->x_decimals, p->y_decimals, 2u * RENYI_REPORT_MAX_RUNS);
    if (p->n_curves && !p->curves) return ry_fail(err, RENYI_ERR_ARG, -1, "curves: NULL argument");
    for (uint32_t k = 0; k < p->n_curves; k++) {
        const renyi_report_curve *c = &p->curves[k];
        if (c->run >= r->n_runs || (c->n && (!c->x || !c->y)))
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "curves: curve %u of chart %u has run %u of %u, or x or y is NULL", k, i,
                           c->run, r->n_runs);
        if (c->n > RENYI_REPORT_MAX_CURVE)
            return ry_fail(err, RENYI_ERR_LIMIT, -1, "curves: %zu points; at most %u", c->n,
                           (unsigned)RENYI_REPORT_MAX_CURVE);
    }
    return RENYI_OK;
}

static renyi_status check_curves(const renyi_report_curves *r, renyi_error *err)
{
    if (!r || (r->n_runs && !r->runs) || (r->n_panels && !r->panels) ||
        (r->n_columns && !r->columns))
        return ry_fail(err, RENYI_ERR_ARG, -1, "curves: NULL argument");
    if (r->struct_size != sizeof *r)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_report_curves: struct_size %u, this library knows %zu",
                       r->struct_size, sizeof *r);
    if (r->n_runs > RENYI_REPORT_MAX_RUNS || r->n_panels > RENYI_REPORT_MAX_PANELS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "curves: %u runs in %u charts; at most %u in %u can be shown", r->n_runs,
                       r->n_panels, (unsigned)RENYI_REPORT_MAX_RUNS,
                       (unsigned)RENYI_REPORT_MAX_PANELS);
    for (uint32_t i = 0; i < r->n_panels; i++) RY_TRY(check_panel(r, i, err));
    for (uint32_t i = 0; i < r->n_columns; i++)
        if (r->n_runs && !r->columns[i].cells)
            return ry_fail(err, RENYI_ERR_ARG, -1, "curves: column %u has no cells", i);
    return RENYI_OK;
}

static renyi_status write_curves(renyi_report_text *out, const renyi_report_curves *r,
                                 void (*put)(ry_buffer *, const renyi_report_curves *),
                                 renyi_error *err)
{
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "curves: NULL argument");
    memset(out, 0, sizeof *out);
    RY_TRY(check_curves(r, err));
    ry_buffer s = {.al = &r->allocator};
    put(&s, r);
    return ry_text_finish(out, &s, RENYI_OK, err);
}

renyi_status renyi_report_curves_svg(renyi_report_text *out, const renyi_report_curves *r,
                                     renyi_error *err)
{
    return write_curves(out, r, ry_chart_panels, err);
}

renyi_status renyi_report_curves_html(renyi_report_text *out, const renyi_report_curves *r,
                                      renyi_error *err)
{
    return write_curves(out, r, put_page, err);
}

renyi_status renyi_report_curves_terminal(renyi_report_text *out, const renyi_report_curves *r,
                                          uint32_t columns, uint32_t has_colours, renyi_error *err)
{
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "curves: NULL argument");
    memset(out, 0, sizeof *out);
    if (columns < 40 || columns > 1000)
        return ry_fail(err, RENYI_ERR_ARG, -1, "curves: %u columns; 40 to 1000 are allowed",
                       columns);
    RY_TRY(check_curves(r, err));
    ry_buffer s = {.al = &r->allocator};
    ry_chart_text(&s, r, columns, has_colours != 0);
    return ry_text_finish(out, &s, RENYI_OK, err);
}
