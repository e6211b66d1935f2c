/* curves.c - lines over time: one a run, labelled where they end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/curves.h"

#include <math.h>
#include <string.h>

enum { MOST_MARKED = 40, APART = 16, LABEL_EMS = 20 }; /* points with marks; between labels */

typedef struct panel_chart {
    const renyi_report_curves *r;
    const renyi_report_panel *p;
    ry_canvas c;
    ry_scale x, y;
    uint32_t n_labels; /* lines that have an end */
    int has_labels;    /* names at the ends of lines; else above, in a legend */
} panel_chart;

ry_run_look ry_run_look_of(uint32_t run)
{
    static const uint8_t colours[RY_COLOURS] = {2, 3, 4, 1, 5, 6, 0, 7, 8};
    return (ry_run_look){colours[run % RY_COLOURS], run % 4, run % RY_SHAPES};
}

/* ---- numbers ---- */

static int is_point(const renyi_report_curve *c, size_t i)
{
    return isfinite(c->x[i]) && isfinite(c->y[i]);
}

int ry_curve_range(const renyi_report_curve *c, double x[2], double y[2])
{
    int n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!is_point(c, i)) continue;
        x[0] = fmin(x[0], c->x[i]), x[1] = fmax(x[1], c->x[i]);
        y[0] = fmin(y[0], c->y[i]), y[1] = fmax(y[1], c->y[i]);
        n = 1;
    }
    return n;
}

int ry_fine_decimals(double low, double high)
{
    int decimals = 0;
    for (double step = (high - low) / 20000; decimals < 6 && step < 1; step *= 10) decimals++;
    return decimals;
}

/* The last point of a line; n where it has none. */
static size_t end_of(const renyi_report_curve *c)
{
    for (size_t i = c->n; i-- > 0;)
        if (is_point(c, i)) return i;
    return c->n;
}

static void put_decimals(ry_sink *s, double v, uint32_t decimals)
{
    char number[RY_NUMBER_MAX];
    ry_put_bytes(s, number, ry_number(number, v, (int)decimals));
}

static void put_value(ry_sink *s, const renyi_report_panel *p, const renyi_report_curve *c)
{
    put_decimals(s, c->y[end_of(c)], p->y_decimals);
}

/* ---- scales ---- */

/* From end to end, without a margin; from 0 and up to the next tick if these are near. */
static ry_scale tight_scale(double low, double high, int most_ticks)
{
    const int is_wide = high > low;
    int n = 0;
    if (is_wide && low > 0 && low < 0.1 * high) low = 0;
    ry_scale s = ry_scale_of(low, high, 0, most_ticks);
    if (is_wide) {
        const double next = ceil(high / s.step) * s.step;
        s.low = low, s.high = next - high < 0.02 * (high - low) ? next : high;
    }
    for (int i = 0; i < s.n_ticks; i++)
        if (s.ticks[i] >= s.low - 1e-9 * s.step && s.ticks[i] <= s.high + 1e-9 * s.step)
            s.ticks[n++] = s.ticks[i];
    s.n_ticks = n;
    return s;
}

/* Charts with the same unit have the same x axis, so that they can be read downwards. */
static ry_scale common_x(const panel_chart *t)
{
    double x[2] = {INFINITY, -INFINITY}, y[2] = {0, 0};
    const char *label = t->p->x_label ? t->p->x_label : "";
    for (uint32_t i = 0; i < t->r->n_panels; i++) {
        const renyi_report_panel *p = &t->r->panels[i];
        if (strcmp(p->x_label ? p->x_label : "", label) != 0) continue;
        for (uint32_t k = 0; k < p->n_curves; k++) ry_curve_range(&p->curves[k], x, y);
    }
    return tight_scale(x[0], x[1], t->c.form == RY_FORM_NARROW ? 6 : 11);
}

/* 0 = there is nothing to draw. */
static int make_scales(panel_chart *t)
{
    double x[2] = {0, 0}, y[2] = {INFINITY, -INFINITY};
    for (uint32_t i = 0; i < t->p->n_curves; i++)
        if (!t->p->curves[i].is_faint)
            t->n_labels += (uint32_t)ry_curve_range(&t->p->curves[i], x, y);
    if (!t->n_labels) return 0;
    t->x = common_x(t);
    t->y = ry_scale_of(y[0], y[1], 0, t->c.form == RY_FORM_NARROW ? 6 : 8);
    if (y[0] >= 0 && t->y.low < 0) t->y.low = 0;
    return 1;
}

/* Ticks like 0.00025 need more room than the usual. */
static double left_room(const panel_chart *t)
{
    double most = 0;
    for (int i = 0; i < t->y.n_ticks; i++) {
        char number[RY_NUMBER_MAX];
        number[ry_number(number, t->y.ticks[i], ry_scale_decimals(&t->y, i))] = 0;
        most = fmax(most, ry_text_width(number, 1e9, NULL));
    }
    return fmax(t->c.plot.x0, 14 + most * t->c.font);
}

/* ---- lines ---- */

static void draw_line(panel_chart *t, const renyi_report_curve *c)
{
    const ry_run_look look = ry_run_look_of(c->run);
    int is_down = 0;
    if (end_of(c) == c->n) return;
    if (c->is_faint)
        ry_putf(t->c.s, "<path class=\"rc-faint c%u r%u\" d=\"", look.colour, c->run);
    else
        ry_putf(t->c.s, "<path class=\"rc-curve c%u rc-d%u r%u\" d=\"", look.colour, look.dashes,
                c->run);
    for (size_t i = 0; i < c->n; i++) {
        const int was_down = is_down;
        is_down = is_point(c, i);
        if (is_down)
            ry_putf(t->c.s, was_down ? "L%.1f %.1f" : "M%.1f %.1f", ry_scale_at(&t->x, c->x[i]),
                    ry_scale_at(&t->y, c->y[i]));
    }
    ry_put(t->c.s, "\"/>\n");
}

/* A few points are shown one by one; a single one would not be seen otherwise. */
static void draw_marks(panel_chart *t, const renyi_report_curve *c)
{
    const ry_run_look look = ry_run_look_of(c->run);
    if (c->n > MOST_MARKED) return;
    for (size_t i = 0; i < c->n; i++)
        if (is_point(c, i))
            ry_putf(t->c.s,
                    "<path class=\"rc-dot c%u r%u\" transform=\"translate(%.1f %.1f) scale(.7)\" "
                    "d=\"%s\"/>\n",
                    look.colour, c->run, ry_scale_at(&t->x, c->x[i]), ry_scale_at(&t->y, c->y[i]),
                    ry_shape_path(look.shape));
}

static void draw_lines(panel_chart *t)
{
    for (int faint = 1; faint >= 0; faint--)
        for (uint32_t i = 0; i < t->p->n_curves; i++) {
            const renyi_report_curve *c = &t->p->curves[i];
            if (!!c->is_faint != faint) continue;
            draw_line(t, c);
            if (!faint) draw_marks(t, c);
        }
}

/* ---- labels ---- */

static const char *name_of(const renyi_report_curves *r, uint32_t run)
{
    return r->runs[run] && *r->runs[run] ? r->runs[run] : "unnamed";
}

/* Names of runs differ at their ends: of a long one that is what is shown. */
static const char *tail_of(const char *name)
{
    size_t n;
    while (ry_text_width(name, 1e9, NULL) > LABEL_EMS) {
        ry_utf8_next(name, &n);
        name += n;
    }
    return name;
}

static double label_width(const panel_chart *t, const renyi_report_panel *p,
                          const renyi_report_curve *c)
{
    char number[RY_NUMBER_MAX];
    if (c->is_faint || end_of(c) == c->n) return 0;
    number[ry_number(number, c->y[end_of(c)], (int)p->y_decimals)] = 0;
    double width = ry_text_width(number, 1e9, NULL);
    if (t->has_labels) width += 1.6 + ry_text_width(tail_of(name_of(t->r, c->run)), 1e9, NULL);
    return width;
}

/* For the widest label of all charts: they end at the same place. */
static double label_room(const panel_chart *t)
{
    double most = 0;
    for (uint32_t i = 0; i < t->r->n_panels; i++) {
        const renyi_report_panel *p = &t->r->panels[i];
        for (uint32_t k = 0; k < p->n_curves; k++)
            most = fmax(most, label_width(t, p, &p->curves[k]));
    }
    return 22 + fmin(most, 2 * LABEL_EMS) * (t->c.font - 1);
}

static void draw_label(panel_chart *t, const renyi_report_curve *c, double y)
{
    const ry_run_look look = ry_run_look_of(c->run);
    const size_t end = end_of(c);
    const char *name = name_of(t->r, c->run), *tail = tail_of(name);
    const double x = t->c.plot.x1;
    ry_putf(t->c.s, "<path class=\"rc-to c%u r%u\" d=\"M%.1f %.1fH%.1fL%.1f %.1f\"/>", look.colour,
            c->run, ry_scale_at(&t->x, c->x[end]), ry_scale_at(&t->y, c->y[end]), x + 2, x + 12, y);
    ry_putf(t->c.s, "<text class=\"rc-label rc-own c%u r%u\" x=\"%.1f\" y=\"%.1f\">", look.colour,
            c->run, x + 15, y + 4);
    if (t->has_labels) {
        ry_putf(t->c.s,
                tail > name ? "…%s <tspan class=\"rc-value\">" : "%s <tspan class=\"rc-value\">",
                tail);
        put_value(t->c.s, t->p, c);
        ry_put(t->c.s, "</tspan></text>\n");
    } else {
        put_value(t->c.s, t->p, c);
        ry_put(t->c.s, "</text>\n");
    }
}

/* At the right, in the order of the ends of their lines. */
static void draw_labels(panel_chart *t)
{
    const renyi_report_curve *order[RENYI_REPORT_MAX_RUNS];
    double y[RENYI_REPORT_MAX_RUNS];
    uint32_t n = 0;
    if (t->n_labels > RENYI_REPORT_MAX_RUNS ||
        t->n_labels * APART > t->c.plot.y1 - t->c.plot.y0 + APART)
        return;
    for (uint32_t i = 0; i < t->p->n_curves; i++) {
        const renyi_report_curve *c = &t->p->curves[i];
        if (c->is_faint || end_of(c) == c->n) continue;
        const double end = ry_scale_at(&t->y, c->y[end_of(c)]);
        uint32_t k = n++;
        for (; k && y[k - 1] > end; k--) y[k] = y[k - 1], order[k] = order[k - 1];
        y[k] = end, order[k] = c;
    }
    ry_spread(y, n, APART, t->c.plot.y1);
    ry_put(t->c.s, "<g aria-hidden=\"true\">\n");
    for (uint32_t k = 0; k < n; k++) draw_label(t, order[k], y[k]);
    ry_put(t->c.s, "</g>\n");
}

static void draw_legend(ry_canvas *c, const renyi_report_curves *r)
{
    static const char *const styles[4] = {"rc-curve", "rc-curve rc-d1", "rc-curve rc-d2",
                                          "rc-curve rc-d3"};
    ry_legend l = {.n = 0};
    for (uint32_t i = 0; i < r->n_runs; i++) {
        const ry_run_look look = ry_run_look_of(i);
        const ry_legend_item item = {RY_LEGEND_LINE, styles[look.dashes], look.colour, 0, ""};
        ry_legend_add(&l, item, name_of(r, i), strlen(name_of(r, i)));
    }
    ry_legend_draw(c, &l);
}

/* ---- the chart ---- */

static void describe_panel(ry_sink *s, const renyi_report_curves *r, const renyi_report_panel *p)
{
    for (uint32_t i = 0; i < p->n_curves; i++) {
        const renyi_report_curve *c = &p->curves[i];
        const size_t end = end_of(c);
        if (c->is_faint || end == c->n) continue;
        ry_putf(s, " %s ends at ", name_of(r, c->run));
        put_value(s, p, c);
        ry_put(s, " after ");
        put_decimals(s, c->x[end], p->x_decimals);
        ry_putf(s, " %s.", p->x_label ? p->x_label : "");
    }
}

/* The script finds numbers by these when the pointer is over the chart. */
static void put_place(panel_chart *t)
{
    const ry_box *b = &t->c.plot;
    char low[RY_NUMBER_MAX], high[RY_NUMBER_MAX];
    ry_putf(t->c.s,
            "<g class=\"rc-plot\" data-panel=\"%u\" data-box=\"%.1f %.1f %.1f %.1f\" data-range=\"",
            (unsigned)(t->p - t->r->panels), b->x0, b->y0, b->x1, b->y1);
    for (int i = 0; i < 2; i++) {
        const ry_scale *s = i ? &t->y : &t->x;
        low[ry_number(low, s->low, 6)] = 0;
        high[ry_number(high, s->high, 6)] = 0;
        ry_putf(t->c.s, i ? " %s %s" : "%s %s", low, high);
    }
    ry_put(t->c.s, "\">\n");
}

/* In the page it stands above the chart. */
static void draw_caption(panel_chart *t)
{
    const char *text = t->p->caption ? t->p->caption : "", *cut;
    ry_text_width(text, 0.7 * (t->c.plot.x1 - t->c.plot.x0) / (t->c.font - 1), &cut);
    if (cut == text) return;
    ry_putf(t->c.s, "<text class=\"rc-small-note rc-end\" x=\"%.1f\" y=\"%.1f\">", t->c.plot.x1,
            t->c.plot.y0 - 10);
    ry_put_escaped_part(t->c.s, text, (size_t)(cut - text));
    ry_put(t->c.s, *cut ? "…</text>\n" : "</text>\n");
}

/* Into plot, of which the right part is for labels. */
static void draw_panel(panel_chart *t)
{
    const ry_frame frame = {t->p->title, t->p->x_label ? t->p->x_label : "",
                            t->p->y_label ? t->p->y_label : "", NULL};
    if (!make_scales(t)) {
        ry_putf(t->c.s,
                "<text class=\"rc-none\" x=\"%.1f\" y=\"%.1f\">%s: nothing is known</text>\n",
                t->c.width / 2, (t->c.plot.y0 + t->c.plot.y1) / 2, frame.y_label);
        return;
    }
    t->c.plot.x0 = left_room(t);
    t->c.plot.x1 -= label_room(t) - 8;
    t->x.from = t->c.plot.x0, t->x.to = t->c.plot.x1;
    t->y.from = t->c.plot.y1, t->y.to = t->c.plot.y0;
    if (t->c.form != RY_FORM_FILE) put_place(t);
    ry_draw_axes(&t->c, &frame, &t->x, &t->y);
    if (t->c.form == RY_FORM_FILE) draw_caption(t);
    draw_lines(t);
    draw_labels(t);
    if (t->c.form != RY_FORM_FILE) ry_put(t->c.s, "</g>\n");
}

/* Do the names of all runs fit beside a plot of this height? */
static int fits(const renyi_report_curves *r, double height) { return r->n_runs * APART <= height; }

typedef struct spoken {
    const renyi_report_curves *r;
    uint32_t from, end; /* panels */
} spoken;

static void describe(ry_sink *s, const void *of)
{
    const spoken *said = of;
    for (uint32_t i = said->from; i < said->end; i++) {
        const renyi_report_panel *p = &said->r->panels[i];
        ry_putf(s, i > said->from ? " %s:" : "%s:", p->title ? p->title : "");
        describe_panel(s, said->r, p);
    }
}

void ry_chart_panel(ry_sink *s, const renyi_report_curves *r, uint32_t panel, ry_form form)
{
    const spoken said = {r, panel, panel + 1};
    panel_chart t = {.r = r, .p = &r->panels[panel], .c = ry_canvas_of(s, form)};
    const ry_frame frame = {t.p->title ? t.p->title : "", "", "", describe};
    t.c.height = form == RY_FORM_NARROW ? 330 : 400;
    t.c.plot.y1 = t.c.height - 44;
    t.has_labels = form == RY_FORM_WIDE && fits(r, t.c.plot.y1 - 32);
    if (!t.has_labels) { /* the legend makes the chart taller */
        ry_canvas blind = t.c;
        ry_sink nowhere = {.failed = 1};
        blind.s = &nowhere;
        draw_legend(&blind, r);
        t.c.height += blind.plot.y0 - 32, t.c.plot.y1 += blind.plot.y0 - 32;
    }
    ry_canvas_open(&t.c, &frame, NULL, &said);
    if (t.has_labels)
        t.c.plot.y0 = 32;
    else
        draw_legend(&t.c, r);
    draw_panel(&t);
    ry_canvas_close(&t.c);
}

void ry_chart_panels(ry_sink *s, const renyi_report_curves *r)
{
    const spoken said = {r, 0, r->n_panels};
    const double tall = r->n_panels > 1 ? 330 : 450;
    const int is_one = r->n_panels == 1 && r->panels[0].title;
    const ry_frame frame = {is_one ? r->panels[0].title : "Training runs", "", "", describe};
    ry_canvas c = ry_canvas_of(s, RY_FORM_FILE);
    const int has_labels = fits(r, tall - 92);
    ry_sink nowhere = {.failed = 1};
    ry_canvas blind = c;
    blind.s = &nowhere;
    if (!has_labels) draw_legend(&blind, r);
    const double top = has_labels ? c.plot.y0 + 30 : blind.plot.y0;
    c.height = top - 30 + tall * (r->n_panels ? r->n_panels : 1);
    ry_canvas_open(&c, &frame, r->title, &said);
    if (!has_labels) draw_legend(&c, r);
    for (uint32_t i = 0; i < r->n_panels; i++) {
        panel_chart t = {.r = r, .p = &r->panels[i], .c = c, .has_labels = has_labels};
        t.c.plot.y0 = top + i * tall;
        t.c.plot.y1 = t.c.plot.y0 + tall - 92;
        draw_panel(&t);
    }
    if (!r->n_panels) ry_draw_nothing(&c, "no charts");
    ry_canvas_close(&c);
}
