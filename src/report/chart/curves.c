/* curves.c - charts of training runs: one line per run, labelled where it ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/chart.h"

#include "base/visible.h"

#include <math.h>
#include <string.h>

enum { MOST_MARKED = 40 };          /* points of a line that shows each of them */
static const double APART = 16;     /* pixels between labels */
static const double LABEL_EMS = 20; /* longest name in a label */

typedef struct panel_chart {
    const renyi_report_curves *r;
    const renyi_report_panel *p;
    ry_chart *c;
    ry_scale x, y;
    uint32_t n_labels; /* lines that have a point */
    int has_labels;    /* names are at the ends of lines; else in a legend above */
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

size_t ry_curve_end(const renyi_report_curve *c)
{
    for (size_t i = c->n; i-- > 0;)
        if (is_point(c, i)) return i;
    return c->n;
}

static void put_end_value(ry_buffer *s, const renyi_report_panel *p, const renyi_report_curve *c)
{
    ry_put_number(s, c->y[ry_curve_end(c)], (int)p->y_decimals);
}

/* ---- scales ---- */

/* Without a margin; starts at 0 and ends at the next tick if these are near. */
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

/* Charts with the same unit have the same x axis, so that they can be compared downwards. */
static ry_scale common_x(const renyi_report_curves *r, const renyi_report_panel *of, int most_ticks)
{
    double x[2] = {INFINITY, -INFINITY}, y[2] = {0, 0};
    const char *label = of->x_label ? of->x_label : "";
    for (uint32_t i = 0; i < r->n_panels; i++) {
        const renyi_report_panel *p = &r->panels[i];
        if (strcmp(p->x_label ? p->x_label : "", label) != 0) continue;
        for (uint32_t k = 0; k < p->n_curves; k++) ry_curve_range(&p->curves[k], x, y);
    }
    return tight_scale(x[0], x[1], most_ticks);
}

uint32_t ry_panel_scales(const renyi_report_curves *r, const renyi_report_panel *p, int is_small,
                         ry_scale *x_axis, ry_scale *y_axis)
{
    double x[2] = {0, 0}, y[2] = {INFINITY, -INFINITY};
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_curves; i++)
        if (!p->curves[i].is_faint) n += (uint32_t)ry_curve_range(&p->curves[i], x, y);
    if (!n) return 0;
    *x_axis = common_x(r, p, is_small ? 6 : 11);
    *y_axis = ry_scale_of(y[0], y[1], 0, is_small ? 6 : 8);
    if (y[0] >= 0 && y_axis->low < 0) y_axis->low = 0;
    return n;
}

/* Space for the ticks of the y axis: those like 0.00025 need more than usual. */
static double left_space(const panel_chart *t)
{
    double most = 0;
    for (int i = 0; i < t->y.n_ticks; i++) {
        char number[RY_NUMBER_MAX];
        number[ry_number(number, t->y.ticks[i], ry_scale_decimals(&t->y, i))] = 0;
        most = fmax(most, ry_text_width(number, 1e9, NULL));
    }
    return fmax(t->c->plot.x0, 14 + most * t->c->font);
}

/* ---- lines ---- */

static void draw_line(panel_chart *t, const renyi_report_curve *c)
{
    const ry_run_look look = ry_run_look_of(c->run);
    int has_pen = 0;
    if (ry_curve_end(c) == c->n) return;
    if (c->is_faint)
        ry_open_path(&t->c->d, "rc-faint c%u r%u", look.colour, c->run);
    else
        ry_open_path(&t->c->d, "rc-curve c%u rc-d%u r%u", look.colour, look.dashes, c->run);
    for (size_t i = 0; i < c->n; i++) {
        if (is_point(c, i))
            (has_pen ? ry_line_to : ry_move_to)(&t->c->d, ry_scale_at(&t->x, c->x[i]),
                                                ry_scale_at(&t->y, c->y[i]));
        has_pen = is_point(c, i);
    }
}

/* A line of few points shows each of them; a single point would not be visible otherwise. */
static void draw_marks(panel_chart *t, const renyi_report_curve *c)
{
    const ry_run_look look = ry_run_look_of(c->run);
    if (c->n > MOST_MARKED) return;
    for (size_t i = 0; i < c->n; i++)
        if (is_point(c, i))
            ry_draw_shape(&t->c->d, look.shape, ry_scale_at(&t->x, c->x[i]),
                          ry_scale_at(&t->y, c->y[i]), 0.7, "rc-dot c%u r%u", look.colour, c->run);
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

const char *ry_run_name(const renyi_report_curves *r, uint32_t run)
{
    return r->runs[run] && *r->runs[run] ? r->runs[run] : "unnamed";
}

/* Names of runs usually differ at the end, so a long name is cut at the beginning. */
static const char *tail_of(const char *name)
{
    size_t n;
    while (ry_text_width(name, 1e9, NULL) > LABEL_EMS) {
        ry_visible_next(name, &n);
        name += n;
    }
    return name;
}

static double label_width(const panel_chart *t, const renyi_report_panel *p,
                          const renyi_report_curve *c)
{
    char number[RY_NUMBER_MAX];
    if (c->is_faint || ry_curve_end(c) == c->n) return 0;
    number[ry_number(number, c->y[ry_curve_end(c)], (int)p->y_decimals)] = 0;
    double width = ry_text_width(number, 1e9, NULL);
    if (t->has_labels) width += 1.6 + ry_text_width(tail_of(ry_run_name(t->r, c->run)), 1e9, NULL);
    return width;
}

/* Space for the widest label of all charts, so that all plots have the same width. */
static double label_space(const panel_chart *t)
{
    double most = 0;
    for (uint32_t i = 0; i < t->r->n_panels; i++) {
        const renyi_report_panel *p = &t->r->panels[i];
        for (uint32_t k = 0; k < p->n_curves; k++)
            most = fmax(most, label_width(t, p, &p->curves[k]));
    }
    return 22 + fmin(most, 2 * LABEL_EMS) * (t->c->font - 1);
}

static void draw_label(panel_chart *t, const renyi_report_curve *c, double y)
{
    const ry_run_look look = ry_run_look_of(c->run);
    const size_t end = ry_curve_end(c);
    const char *name = ry_run_name(t->r, c->run), *tail = tail_of(name);
    const double x = t->c->plot.x1, from = ry_scale_at(&t->y, c->y[end]);
    ry_open_path(&t->c->d, "rc-to c%u r%u", look.colour, c->run);
    ry_move_to(&t->c->d, ry_scale_at(&t->x, c->x[end]), from);
    ry_line_to(&t->c->d, x + 2, from);
    ry_line_to(&t->c->d, x + 12, y);
    ry_buffer *text =
        ry_open_label(&t->c->d, x + 15, y + 4, "rc-label rc-own c%u r%u", look.colour, c->run);
    if (t->has_labels)
        ry_putf(text,
                tail > name ? "…%s <tspan class=\"rc-value\">" : "%s <tspan class=\"rc-value\">",
                tail);
    put_end_value(text, t->p, c);
    if (t->has_labels) ry_buffer_text(text, "</tspan>");
}

/* Labels are at the right, in the order in which the lines end. */
static void draw_labels(panel_chart *t)
{
    const renyi_report_curve *order[RENYI_REPORT_MAX_RUNS];
    double y[RENYI_REPORT_MAX_RUNS];
    uint32_t n = 0;
    if (t->n_labels > RENYI_REPORT_MAX_RUNS ||
        t->n_labels * APART > t->c->plot.y1 - t->c->plot.y0 + APART)
        return;
    for (uint32_t i = 0; i < t->p->n_curves; i++) {
        const renyi_report_curve *c = &t->p->curves[i];
        if (c->is_faint || ry_curve_end(c) == c->n) continue;
        const double end = ry_scale_at(&t->y, c->y[ry_curve_end(c)]);
        uint32_t k = n++;
        for (; k && y[k - 1] > end; k--) y[k] = y[k - 1], order[k] = order[k - 1];
        y[k] = end, order[k] = c;
    }
    ry_labels_spread(y, n, APART, t->c->plot.y1);
    ry_buffer_text(ry_open_group(&t->c->d, "g", 0, 0, "rc-labels"), RY_HIDDEN);
    for (uint32_t k = 0; k < n; k++) draw_label(t, order[k], y[k]);
    ry_close_group(&t->c->d, "g");
}

static void draw_legend(ry_chart *c, const renyi_report_curves *r)
{
    static const char *const styles[4] = {"rc-curve", "rc-curve rc-d1", "rc-curve rc-d2",
                                          "rc-curve rc-d3"};
    ry_legend l = {.n = 0};
    for (uint32_t i = 0; i < r->n_runs; i++) {
        const ry_run_look look = ry_run_look_of(i);
        const ry_legend_item item = {RY_LEGEND_LINE, styles[look.dashes], look.colour, 0, "", 0};
        ry_legend_add(&l, item, ry_run_name(r, i), strlen(ry_run_name(r, i)));
    }
    ry_legend_draw(c, &l);
}

/* ---- the chart ---- */

static void describe_panel(ry_buffer *s, const renyi_report_curves *r, const renyi_report_panel *p)
{
    ry_putf(s, s->size ? " %s:" : "%s:", p->title ? p->title : "");
    for (uint32_t i = 0; i < p->n_curves; i++) {
        const renyi_report_curve *c = &p->curves[i];
        const size_t end = ry_curve_end(c);
        if (c->is_faint || end == c->n) continue;
        ry_putf(s, " %s ends at ", ry_run_name(r, c->run));
        put_end_value(s, p, c);
        ry_buffer_text(s, " after ");
        ry_put_number(s, c->x[end], (int)p->x_decimals);
        ry_putf(s, " %s.", p->x_label ? p->x_label : "");
    }
}

/* The script of the page reads these to find the values under the pointer. */
static void open_plot(panel_chart *t)
{
    const ry_box *b = &t->c->plot;
    const double range[4] = {t->x.low, t->x.high, t->y.low, t->y.high};
    ry_buffer *attributes = ry_open_group(&t->c->d, "g", 0, 0, "rc-plot");
    ry_putf(attributes, " data-panel=\"%u\" data-box=\"%.1f %.1f %.1f %.1f\" data-range=\"",
            (unsigned)(t->p - t->r->panels), b->x0, b->y0, b->x1, b->y1);
    for (int i = 0; i < 4; i++) {
        if (i) ry_buffer_text(attributes, " ");
        ry_put_number(attributes, range[i], 6);
    }
    ry_buffer_text(attributes, "\"");
}

/* Only in a file: a page has it above the chart. */
static void draw_caption(panel_chart *t)
{
    const ry_box *plot = &t->c->plot;
    const char *text = t->p->caption ? t->p->caption : "", *cut;
    ry_text_width(text, 0.7 * (plot->x1 - plot->x0) / (t->c->font - 1), &cut);
    if (cut == text) return;
    ry_buffer *out = ry_open_label(&t->c->d, plot->x1, plot->y0 - 10, "rc-small-note rc-end");
    ry_put_escaped_part(out, text, (size_t)(cut - text));
    if (*cut) ry_buffer_text(out, "…");
}

/* Draws into t->c->plot; its right part is for labels. */
static void draw_panel(panel_chart *t)
{
    ry_box *plot = &t->c->plot;
    const int is_file = t->c->form == RY_CHART_FILE;
    const char *y_label = t->p->y_label ? t->p->y_label : "";
    t->n_labels = ry_panel_scales(t->r, t->p, t->c->form == RY_CHART_NARROW, &t->x, &t->y);
    if (!t->n_labels) {
        ry_putf(ry_open_label(&t->c->d, t->c->d.width / 2, (plot->y0 + plot->y1) / 2, "rc-none"),
                "%s: nothing is known", y_label);
        return;
    }
    plot->x0 = left_space(t);
    plot->x1 -= label_space(t) - 8;
    t->x.from = plot->x0, t->x.to = plot->x1;
    t->y.from = plot->y1, t->y.to = plot->y0;
    if (!is_file) open_plot(t);
    ry_chart_axes(t->c, t->p->x_label ? t->p->x_label : "", y_label, &t->x, &t->y);
    if (is_file) draw_caption(t);
    draw_lines(t);
    draw_labels(t);
    if (!is_file) ry_close_group(&t->c->d, "g");
}

/* Do the names of all runs fit beside a plot of this height? */
static int names_fit(const renyi_report_curves *r, double height)
{
    return r->n_runs * APART <= height;
}

void ry_chart_panel(ry_buffer *out, const renyi_report_curves *r, uint32_t panel,
                    ry_chart_form form)
{
    const renyi_report_panel *p = &r->panels[panel];
    const double bottom = 44, height = form == RY_CHART_NARROW ? 330 : 400;
    ry_chart c = ry_chart_new(&r->allocator, form, p->title ? p->title : "");
    panel_chart t = {.r = r, .p = p, .c = &c};
    describe_panel(&c.d.description, r, p);
    t.has_labels = form == RY_CHART_WIDE && names_fit(r, height - bottom - 32);
    if (t.has_labels)
        c.plot.y0 = 32;
    else
        draw_legend(&c, r);
    c.d.height = height + c.plot.y0 - 32; /* a legend makes the chart taller */
    c.plot.y1 = c.d.height - bottom;
    draw_panel(&t);
    ry_chart_write(&c, out);
}

void ry_chart_panels(ry_buffer *out, const renyi_report_curves *r)
{
    const double tall = r->n_panels > 1 ? 330 : 450;
    const int is_one = r->n_panels == 1 && r->panels[0].title;
    const int has_labels = names_fit(r, tall - 92);
    ry_chart c =
        ry_chart_new(&r->allocator, RY_CHART_FILE, is_one ? r->panels[0].title : "Training runs");
    ry_chart_titles(&c, r->title);
    if (has_labels)
        c.plot.y0 += 30;
    else
        draw_legend(&c, r);
    const ry_box first = c.plot;
    c.d.height = first.y0 - 30 + tall * (r->n_panels ? r->n_panels : 1);
    for (uint32_t i = 0; i < r->n_panels; i++) {
        panel_chart t = {.r = r, .p = &r->panels[i], .c = &c, .has_labels = has_labels};
        c.plot = first;
        c.plot.y0 += i * tall;
        c.plot.y1 = c.plot.y0 + tall - 92;
        describe_panel(&c.d.description, r, t.p);
        draw_panel(&t);
    }
    if (!r->n_panels) ry_chart_message(&c, "no charts");
    ry_chart_write(&c, out);
}
