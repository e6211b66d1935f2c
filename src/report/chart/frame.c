/* frame.c - what surrounds a chart: size, title, axes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/chart.h"

ry_canvas ry_canvas_of(ry_sink *s, ry_form form)
{
    ry_canvas c = {.s = s, .form = form};
    c.font = form == RY_FORM_NARROW ? 12 : 13;
    c.width = form == RY_FORM_NARROW ? 380 : 960;
    c.height = form == RY_FORM_NARROW ? 420 : form == RY_FORM_WIDE ? 520 : 560;
    c.plot = (ry_box){form == RY_FORM_NARROW ? 34 : 48, form == RY_FORM_FILE ? 62 : 8,
                      c.width - (form == RY_FORM_NARROW ? 8 : 20), c.height - 44};
    return c;
}

void ry_canvas_open(ry_canvas *c, const ry_frame *frame, const char *subtitle, const void *of)
{
    ry_putf(c->s,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"rc%s\" viewBox=\"0 0 %.0f %.0f\"",
            c->form == RY_FORM_NARROW ? " rc-phone"
            : c->form == RY_FORM_WIDE ? " rc-desk"
                                      : "",
            c->width, c->height);
    if (c->form == RY_FORM_FILE)
        ry_putf(c->s, " width=\"%.0f\" height=\"%.0f\"", c->width, c->height);
    ry_putf(c->s, " role=\"%s\" aria-label=\"%s\">\n<title>%s</title>\n<desc>",
            c->form == RY_FORM_FILE ? "img" : "group", frame->title, frame->title);
    frame->describe(c->s, of);
    ry_put(c->s, "</desc>\n");
    if (c->form != RY_FORM_FILE) return;
    ry_put(c->s, "<style>\n");
    ry_put(c->s, ry_chart_css);
    ry_put(c->s, "</style>\n");
    ry_putf(c->s, "<rect class=\"rc-bg\" width=\"%.0f\" height=\"%.0f\"/>\n", c->width, c->height);
    ry_putf(c->s, "<text class=\"rc-title\" x=\"20\" y=\"30\">%s</text>\n", frame->title);
    if (subtitle && *subtitle) {
        const char *cut;
        ry_text_width(subtitle, (c->width - 40) / c->font, &cut);
        ry_put(c->s, "<text class=\"rc-note\" x=\"20\" y=\"50\">");
        ry_put_escaped_part(c->s, subtitle, (size_t)(cut - subtitle));
        ry_put(c->s, *cut ? "…</text>\n" : "</text>\n");
    }
}

void ry_canvas_close(ry_canvas *c) { ry_put(c->s, "</svg>\n"); }

void ry_draw_axes(ry_canvas *c, const ry_frame *frame, const ry_scale *x, const ry_scale *y)
{
    const ry_box *p = &c->plot;
    ry_put(c->s, "<g class=\"rc-axes\" aria-hidden=\"true\">\n");
    for (int i = 0; i < y->n_ticks; i++) {
        const double at = ry_scale_at(y, y->ticks[i]);
        char text[RY_NUMBER_MAX];
        text[ry_number(text, y->ticks[i], ry_scale_decimals(y, i))] = 0;
        ry_putf(c->s,
                "<path class=\"rc-grid\" d=\"M%.1f %.1fH%.1f\"/><text class=\"rc-y\" x=\"%.1f\" "
                "y=\"%.1f\">%s</text>\n",
                p->x0, at, p->x1, p->x0 - 7, at + 4, text);
    }
    for (int i = 0; i < x->n_ticks; i++) {
        const double at = ry_scale_at(x, x->ticks[i]);
        char text[RY_NUMBER_MAX];
        text[ry_number(text, x->ticks[i], ry_scale_decimals(x, i))] = 0;
        ry_putf(c->s,
                "<path class=\"rc-grid\" d=\"M%.1f %.1fV%.1f\"/><text class=\"rc-x\" x=\"%.1f\" "
                "y=\"%.1f\">%s</text>\n",
                at, p->y0, p->y1, at, p->y1 + 17, text);
    }
    ry_putf(c->s, "<path class=\"rc-line\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", p->x0, p->y0, p->y1,
            p->x1);
    ry_putf(c->s, "<text class=\"rc-name rc-end\" x=\"%.1f\" y=\"%.1f\">%s%s</text>\n", p->x1,
            p->y1 + 36, frame->x_label, x->is_log ? " (logarithmic)" : "");
    ry_putf(c->s, "<text class=\"rc-name\" x=\"%.1f\" y=\"%.1f\">%s</text>\n</g>\n",
            c->form == RY_FORM_NARROW ? 4.0 : 10.0, p->y0 - 10, frame->y_label);
}

void ry_draw_nothing(ry_canvas *c, const char *why)
{
    ry_putf(c->s, "<text class=\"rc-none\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", c->width / 2,
            c->height / 2, why);
}
