/* chart_legend.c - texts that explain a chart: its legend, and labels beside marks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/chart.h"

#include "base/visible.h"

#include <math.h>
#include <string.h>

/* ---- legend ---- */

void ry_legend_add(ry_legend *l, ry_legend_item item, const char *text, size_t size)
{
    if (l->n == RY_LEGEND_MAX) return;
    ry_legend_item *to = &l->items[l->n++];
    *to = item;
    size_t used = 0;
    for (size_t i = 0, n; i < size; i += n) { /* as many whole characters as fit */
        ry_visible_next(text + i, &n);
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

uint32_t ry_point_sign(const ry_point_set *set, const ry_point *p)
{
    return set->n_metrics > 1 && p->metric ? 1 + p->metric_index : 0;
}

/* Strokes that can be told apart in a mark of 10 pixels: · | – + x and a ring; then again. */
void ry_draw_sign(ry_drawing *d, uint32_t sign)
{
    static const int8_t strokes[5][2][4] = {{{0, 0, 0, 0}},
                                            {{0, -3, 0, 3}},
                                            {{-3, 0, 3, 0}},
                                            {{0, -3, 0, 3}, {-3, 0, 3, 0}},
                                            {{-2, -2, 2, 2}, {-2, 2, 2, -2}}};
    if (!sign) return;
    const uint32_t at = (sign - 1) % 6;
    if (at == 5) {
        ry_draw_circle(d, 0, 0, 2.5, "rc-sign");
        return;
    }
    ry_open_path(d, "rc-sign");
    for (int i = 0; i < (at > 2 ? 2 : 1); i++) {
        ry_move_to(d, strokes[at][i][0], strokes[at][i][1]);
        ry_line_to(d, strokes[at][i][2], strokes[at][i][3]);
    }
}

/* Signs are metrics, if there are several. */
static void add_metrics(ry_legend *l, const ry_point_set *set)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < set->n && l->n < RY_LEGEND_MAX - 6; i++) {
        const ry_point *p = &set->points[i];
        const uint32_t sign = ry_point_sign(set, p);
        if (sign <= next) continue;
        next = sign;
        const ry_legend_item item = {RY_LEGEND_MARK, "rc-any", RY_COLOURS, 0, "", sign};
        ry_legend_add(l, item, p->metric, p->metric_size);
    }
}

/* Colours are families. Shapes are models if there are several, else families too. */
void ry_legend_add_families(ry_legend *l, const ry_point_set *set)
{
    uint32_t next_family = 0, next_model = 0;
    for (uint32_t i = 0; i < set->n && l->n < RY_LEGEND_MAX - 10; i++) {
        const ry_point *p = &set->points[i];
        if (p->family_index < next_family) continue;
        next_family++;
        const ry_legend_item item = {.kind = RY_LEGEND_MARK,
                                     .style = "",
                                     .colour = p->colour,
                                     .shape = set->n_models > 1 ? 0 : p->shape};
        ry_legend_add(l, item, p->is_dense ? "dense" : p->family, p->is_dense ? 5 : p->family_size);
    }
    add_metrics(l, set);
    if (set->n_models < 2) return;
    for (uint32_t i = 0; i < set->n && l->n < RY_LEGEND_MAX - 4; i++) {
        const ry_point *p = &set->points[i];
        if (p->model_index < next_model) continue;
        next_model++;
        const ry_legend_item item = {RY_LEGEND_MARK, "rc-any", RY_COLOURS, p->shape, "", 0};
        ry_legend_add(l, item, p->model, strlen(p->model));
    }
}

static void draw_item(ry_drawing *d, const ry_legend_item *item, double x, double y)
{
    if (item->kind == RY_LEGEND_MARK) {
        ry_open_group(d, "g", x + 7, y - 4, "rc-k c%u %s", item->colour, item->style);
        ry_draw_shape(d, item->shape, 0, 0, 1, RY_NO_STYLE);
        ry_draw_sign(d, item->sign);
        ry_close_group(d, "g");
    } else if (item->kind == RY_LEGEND_LINE) {
        ry_open_path(d, "%s c%u", item->style, item->colour);
        ry_move_to(d, x - 2, y - 4);
        ry_line_to(d, x + 16, y - 4);
    } else {
        ry_open_path(d, "rc-w c%u", item->colour);
        ry_move_to(d, x + 7, y - 11);
        ry_line_to(d, x + 7, y + 3);
    }
    ry_put_escaped(ry_open_label(d, x + 20, y, RY_NO_STYLE), item->text);
}

void ry_legend_draw(ry_chart *c, const ry_legend *l)
{
    const double left = c->form == RY_CHART_NARROW ? 4 : c->form == RY_CHART_WIDE ? 10 : 20;
    double x = left, y = c->plot.y0 + 14;
    ry_buffer_text(ry_open_group(&c->d, "g", 0, 0, "rc-legend"), RY_HIDDEN);
    for (int i = 0; i < l->n; i++) {
        const double width = 34 + 0.93 * c->font * ry_text_width(l->items[i].text, 1e9, NULL);
        if (x > left && x + width > c->d.width) {
            x = left;
            y += 20;
        }
        draw_item(&c->d, &l->items[i], x, y);
        x += width;
    }
    ry_close_group(&c->d, "g");
    c->plot.y0 = y + 40;
}

/* ---- labels ---- */

static const double MARK_RADIUS = 6, TEXT_UP = 11, TEXT_DOWN = 4;

/* Where a label may be: the offset of its baseline from the mark, and which part of the text is
 * there: -1 its end, 0 its middle, 1 its start. The best comes first: the space above and left of
 * the front is empty. */
static const struct candidate {
    signed char dx, dy, side;
} candidates[] = {{-9, -7, -1},   {0, -12, 0},  {-11, 4, -1}, {9, -7, 1},     {11, 4, 1},
                  {9, 15, 1},     {-9, 15, -1}, {0, 21, 0},   {-16, -22, -1}, {16, -22, 1},
                  {-30, -40, -1}, {0, -40, 0},  {30, -40, 1}, {22, 30, 1},    {-22, 30, -1},
                  {-44, -62, -1}, {44, -62, 1}, {40, 48, 1},  {-60, -90, -1}, {60, -90, 1}};

static int boxes_overlap(const ry_box *a, const ry_box *b)
{
    return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1;
}

static ry_box label_box(ry_place mark, const struct candidate *k, double width)
{
    const double x = mark.x + k->dx - (k->side < 0 ? width : k->side ? 0 : width / 2);
    return (ry_box){x, mark.y + k->dy - TEXT_UP, x + width, mark.y + k->dy + TEXT_DOWN};
}

/* What a label in this box would hide; infinite where it must not be. */
static double place_cost(const ry_label_placer *l, const ry_box *box)
{
    double sum = 0;
    if (box->x0 < l->c->plot.x0 + 2 || box->x1 > l->c->plot.x1 + 6 || box->y0 < l->c->plot.y0 - 6 ||
        box->y1 > l->c->plot.y1 - 1)
        return INFINITY;
    for (int i = 0; i < l->n_taken; i++)
        if (boxes_overlap(box, &l->taken[i])) return INFINITY;
    for (uint32_t i = 0; i < l->n_marks; i++) {
        const ry_place m = l->marks[i];
        const ry_box around = {m.x - MARK_RADIUS, m.y - MARK_RADIUS, m.x + MARK_RADIUS,
                               m.y + MARK_RADIUS};
        sum += boxes_overlap(box, &around) ? 12 : 0;
    }
    for (uint32_t i = 1; i < l->n_line; i++) { /* pieces are horizontal or vertical */
        const ry_place a = l->line[i - 1], b = l->line[i];
        const ry_box piece = {fmin(a.x, b.x) - 1, fmin(a.y, b.y) - 1, fmax(a.x, b.x) + 1,
                              fmax(a.y, b.y) + 1};
        sum += boxes_overlap(box, &piece) ? 9 : 0;
    }
    return sum;
}

static void draw_label(ry_drawing *d, ry_place mark, const struct candidate *k, const char *text,
                       const char *style)
{
    const double x = mark.x + k->dx, y = mark.y + k->dy;
    const int is_far = k->dx * k->dx + k->dy * k->dy > 500;
    if (is_far) {
        ry_open_path(d, "rc-lead");
        ry_move_to(d, mark.x, mark.y);
        ry_line_to(d, x, y + (k->dy < 0 ? 4 : -11));
    }
    const char *side = k->side < 0 ? " rc-end" : k->side ? "" : " rc-mid";
    ry_put_escaped(ry_open_label(d, x, y, "rc-label %s%s", style, side), text);
}

int ry_label_place(ry_label_placer *l, ry_place mark, const char *text, const char *style,
                   double limit)
{
    const size_t n = sizeof candidates / sizeof *candidates;
    const double width = ry_text_width(text, 1e9, NULL) * (l->c->font - 1);
    double best = INFINITY;
    size_t chosen = 0;
    if (l->n_taken == RY_LABELS_MAX) return 0;
    for (size_t i = 0; i < n; i++) {
        const ry_box box = label_box(mark, &candidates[i], width);
        const double cost = place_cost(l, &box) + (double)i * 1.5;
        if (cost < best) best = cost, chosen = i;
    }
    if (!(best < limit)) return 0;
    l->taken[l->n_taken++] = label_box(mark, &candidates[chosen], width);
    draw_label(&l->c->d, mark, &candidates[chosen], text, style);
    return 1;
}

void ry_labels_spread(double *y, uint32_t n, double apart, double most)
{
    for (uint32_t k = 1; k < n; k++) y[k] = fmax(y[k], y[k - 1] + apart);
    for (uint32_t k = n; k-- > 0; most -= apart) y[k] = fmin(y[k], most);
}
