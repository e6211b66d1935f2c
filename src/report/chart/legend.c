/* legend.c - what the marks and lines of a chart mean.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/chart.h"

#include <string.h>

const char *ry_shape_path(uint32_t shape)
{
    static const char *const paths[RY_SHAPES] = {"M-5 0a5 5 0 1 1 10 0a5 5 0 1 1-10 0z",
                                                 "M-4.5-4.5h9v9h-9z",
                                                 "M0-6L5.6 4.2H-5.6z",
                                                 "M0-6.3L6.3 0L0 6.3L-6.3 0z",
                                                 "M0 6L5.6-4.2H-5.6z",
                                                 "M-5.5 0L-2.8-4.8H2.8L5.5 0L2.8 4.8H-2.8z"};
    return paths[shape % RY_SHAPES];
}

void ry_legend_add(ry_legend *l, ry_legend_item item, const char *text, size_t size)
{
    if (l->n == RY_LEGEND_MAX) return;
    ry_legend_item *to = &l->items[l->n++];
    *to = item;
    size_t used = 0;
    for (size_t i = 0, n; i < size; i += n) { /* whole characters that fit */
        ry_utf8_next(text + i, &n);
        if (used + n > sizeof to->text - 4) {
            memcpy(to->text + used, "…", 3);
            used += 3;
            break;
        }
        memcpy(to->text + used, text + i, n);
        used += n;
    }
    to->text[used] = 0;
}

/* A family is a colour; with several models shapes are theirs, else the family's too. */
void ry_legend_add_families(ry_legend *l, const ry_view *v)
{
    uint32_t next_family = 0, next_model = 0;
    for (uint32_t i = 0; i < v->n && l->n < RY_LEGEND_MAX - 10; i++) {
        const ry_view_point *p = &v->points[i];
        if (p->family_index < next_family) continue;
        next_family++;
        const ry_legend_item item = {.kind = RY_LEGEND_MARK,
                                     .style = "",
                                     .colour = p->colour,
                                     .shape = v->n_models > 1 ? 0 : p->shape};
        ry_legend_add(l, item, p->is_dense ? "dense" : p->family, p->is_dense ? 5 : p->family_size);
    }
    if (v->n_models < 2) return;
    for (uint32_t i = 0; i < v->n && l->n < RY_LEGEND_MAX - 4; i++) {
        const ry_view_point *p = &v->points[i];
        if (p->model_index < next_model) continue;
        next_model++;
        const ry_legend_item item = {RY_LEGEND_MARK, "rc-any", RY_COLOURS, p->shape, ""};
        ry_legend_add(l, item, p->model, strlen(p->model));
    }
}

static void draw_item(ry_canvas *c, const ry_legend_item *item, double x, double y)
{
    if (item->kind == RY_LEGEND_MARK)
        ry_putf(c->s,
                "<g class=\"rc-k c%u %s\" transform=\"translate(%.1f %.1f)\"><path d=\"%s\"/></g>",
                item->colour, item->style, x + 7, y - 4, ry_shape_path(item->shape));
    else if (item->kind == RY_LEGEND_LINE)
        ry_putf(c->s, "<path class=\"%s c%u\" d=\"M%.1f %.1fh18\"/>", item->style, item->colour,
                x - 2, y - 4);
    else
        ry_putf(c->s, "<path class=\"rc-w c%u\" d=\"M%.1f %.1fv14\"/>", item->colour, x + 7,
                y - 11);
    ry_putf(c->s, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 20, y, item->text);
}

void ry_legend_draw(ry_canvas *c, const ry_legend *l)
{
    const double left = c->form == RY_FORM_NARROW ? 4 : c->form == RY_FORM_WIDE ? 10 : 20;
    double x = left, y = c->plot.y0 + 14;
    ry_put(c->s, "<g class=\"rc-legend\" aria-hidden=\"true\">\n");
    for (int i = 0; i < l->n; i++) {
        const double width = 34 + 0.93 * c->font * ry_text_width(l->items[i].text, 1e9, NULL);
        if (x > left && x + width > c->width) {
            x = left;
            y += 20;
        }
        draw_item(c, &l->items[i], x, y);
        x += width;
    }
    ry_put(c->s, "</g>\n");
    c->plot.y0 = y + 40;
}
