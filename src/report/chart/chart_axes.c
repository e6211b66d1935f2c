/* chart_axes.c - scales with round ticks, and what surrounds a chart: size, titles, axes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/chart.h"

#include <assert.h>
#include <math.h>

/* ---- scales ---- */

/* The smallest of 1, 2, 2.5, 5 x 10^k that divides `span` into at most `pieces`. */
static double round_step(double span, int pieces)
{
    static const double steps[] = {1, 2, 2.5, 5, 10};
    const double rough = span / pieces, ten = pow(10, floor(log10(rough)));
    for (int i = 0; i < 4; i++)
        if (steps[i] * ten >= rough * (1 - 1e-9)) return steps[i] * ten;
    return 10 * ten;
}

static int decimals_of(double step)
{
    int decimals = 0;
    while (decimals < 6 && fabs(step - rint(step)) > 1e-6 * step) {
        step *= 10;
        decimals++;
    }
    return decimals;
}

static void linear_ticks(ry_scale *s, int most_ticks)
{
    const double step = round_step(s->high - s->low, most_ticks - 1);
    const double first = ceil(s->low / step - 1e-9);
    s->step = step;
    for (int i = 0; s->n_ticks < most_ticks && (first + i) * step <= s->high + 1e-9 * step; i++)
        s->ticks[s->n_ticks++] = (first + i) * step;
}

/* 1, 2, 5 x 10^k; only 10^k if these are too many. */
static void log_ticks(ry_scale *s, int most_ticks)
{
    static const double steps[] = {1, 2, 5};
    const int first = (int)floor(log10(s->low)), last = (int)ceil(log10(s->high));
    for (int stride = 1; stride <= 3; stride += 2) {
        s->n_ticks = 0;
        for (int i = 3 * first; i <= 3 * last && s->n_ticks < most_ticks; i += stride) {
            const int decade = i >= 0 ? i / 3 : -((2 - i) / 3);
            const double v = steps[i - 3 * decade] * pow(10, decade);
            if (v >= s->low && v <= s->high) s->ticks[s->n_ticks++] = v;
        }
        if (s->n_ticks < most_ticks) break;
    }
}

ry_scale ry_scale_of(double least, double most, int may_be_log, int most_ticks)
{
    ry_scale s = {.from = 0, .to = 1};
    assert(most_ticks >= 2 && most_ticks <= RY_MAX_TICKS);
    if (!isfinite(least) || !isfinite(most) || most < least) least = 0, most = 1;
    const double size = fmax(fabs(least), fabs(most));
    if (size > 1e300) least /= 4, most /= 4; /* leaves space for the margins */
    if (!(most - least > 1e-6 * size)) {
        const double around = size > 1e-12 ? 0.1 * size : 1;
        least -= around;
        most += around;
    }
    s.is_log = may_be_log && least > 0 && most > 6 * least && most < 1e9 * least;
    const double margin = s.is_log ? pow(most / least, 0.06) : 0.06 * (most - least);
    s.low = s.is_log ? least / margin : least - margin;
    s.high = s.is_log ? most * margin : most + margin;
    if (s.is_log)
        log_ticks(&s, most_ticks);
    else
        linear_ticks(&s, most_ticks);
    return s;
}

int ry_scale_decimals(const ry_scale *s, int tick)
{
    return decimals_of(s->is_log ? s->ticks[tick] : s->step);
}

double ry_scale_at(const ry_scale *s, double v)
{
    const double clamped = fmin(fmax(v, s->low), s->high);
    const double share = s->is_log ? log(clamped / s->low) / log(s->high / s->low)
                                   : (clamped - s->low) / (s->high - s->low);
    return s->from + share * (s->to - s->from);
}

/* ---- the frame of a chart ---- */

ry_chart ry_chart_new(const renyi_allocator *al, ry_chart_form form, const char *title)
{
    const int is_narrow = form == RY_CHART_NARROW, is_file = form == RY_CHART_FILE;
    ry_chart c = {.form = form, .font = is_narrow ? 12 : 13};
    c.d = (ry_drawing){.al = al,
                       .texts.al = al,
                       .description.al = al,
                       .title = title,
                       .css = ry_chart_css,
                       .svg_style = is_narrow ? "rc rc-phone"
                                    : is_file ? "rc"
                                              : "rc rc-desk",
                       .is_inline = !is_file,
                       .width = is_narrow ? 380 : 960,
                       .height = is_narrow ? 420
                                 : is_file ? 560
                                           : 520};
    c.plot = (ry_box){is_narrow ? 34 : 48, is_file ? 62 : 8, c.d.width - (is_narrow ? 8 : 20),
                      c.d.height - 44};
    return c;
}

void ry_chart_titles(ry_chart *c, const char *subtitle)
{
    if (c->form != RY_CHART_FILE) return;
    ry_put_escaped(ry_open_label(&c->d, 20, 30, "rc-title"), c->d.title);
    if (!subtitle || !*subtitle) return;
    const char *cut;
    ry_text_width(subtitle, (c->d.width - 40) / c->font, &cut);
    ry_buffer *text = ry_open_label(&c->d, 20, 50, "rc-note");
    ry_put_escaped_part(text, subtitle, (size_t)(cut - subtitle));
    if (*cut) ry_buffer_text(text, "…");
}

static void draw_tick(ry_chart *c, const ry_scale *s, int tick, int is_y)
{
    const double at = ry_scale_at(s, s->ticks[tick]);
    const ry_box *p = &c->plot;
    ry_open_path(&c->d, "rc-grid");
    ry_move_to(&c->d, is_y ? p->x0 : at, is_y ? at : p->y0);
    ry_line_to(&c->d, is_y ? p->x1 : at, is_y ? at : p->y1);
    ry_put_number(is_y ? ry_open_label(&c->d, p->x0 - 7, at + 4, "rc-y")
                       : ry_open_label(&c->d, at, p->y1 + 17, "rc-x"),
                  s->ticks[tick], ry_scale_decimals(s, tick));
}

void ry_chart_axes(ry_chart *c, const char *x_label, const char *y_label, const ry_scale *x,
                   const ry_scale *y)
{
    const ry_box *p = &c->plot;
    ry_buffer_text(ry_open_group(&c->d, "g", 0, 0, "rc-axes"), RY_HIDDEN);
    for (int i = 0; i < y->n_ticks; i++) draw_tick(c, y, i, 1);
    for (int i = 0; i < x->n_ticks; i++) draw_tick(c, x, i, 0);
    ry_open_path(&c->d, "rc-line");
    ry_move_to(&c->d, p->x0, p->y0);
    ry_line_to(&c->d, p->x0, p->y1);
    ry_line_to(&c->d, p->x1, p->y1);
    ry_putf(ry_open_label(&c->d, p->x1, p->y1 + 36, "rc-name rc-end"), "%s%s", x_label,
            x->is_log ? " (logarithmic)" : "");
    ry_put_escaped(ry_open_label(&c->d, c->form == RY_CHART_NARROW ? 4 : 10, p->y0 - 10, "rc-name"),
                   y_label);
    ry_close_group(&c->d, "g");
}

void ry_chart_message(ry_chart *c, const char *why)
{
    ry_put_escaped(ry_open_label(&c->d, c->d.width / 2, c->d.height / 2, "rc-none"), why);
}

void ry_chart_write(ry_chart *c, ry_buffer *out)
{
    (void)ry_drawing_svg(&c->d, out, NULL); /* without bitmaps only memory fails: see `out` */
    ry_drawing_free(&c->d);
}
