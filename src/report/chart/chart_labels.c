/* chart_labels.c - labels that find a free place beside their marks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/chart.h"

#include <math.h>

enum { MARK_RADIUS = 6, TEXT_UP = 11, TEXT_DOWN = 4 };

/* Where a label may stand, as an offset of its baseline from the mark and which side of the text is
 * there: -1 its end, 0 its middle, 1 its start. Best first: left above the front nothing is drawn.
 */
static const struct candidate {
    signed char dx, dy, side;
} candidates[] = {{-9, -7, -1},   {0, -12, 0},  {-11, 4, -1}, {9, -7, 1},     {11, 4, 1},
                  {9, 15, 1},     {-9, 15, -1}, {0, 21, 0},   {-16, -22, -1}, {16, -22, 1},
                  {-30, -40, -1}, {0, -40, 0},  {30, -40, 1}, {22, 30, 1},    {-22, 30, -1},
                  {-44, -62, -1}, {44, -62, 1}, {40, 48, 1},  {-60, -90, -1}, {60, -90, 1}};

static int overlap(const ry_box *a, const ry_box *b)
{
    return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1;
}

static ry_box box_of(ry_place mark, const struct candidate *k, double width)
{
    const double x = mark.x + k->dx - (k->side < 0 ? width : k->side ? 0 : width / 2);
    return (ry_box){x, mark.y + k->dy - TEXT_UP, x + width, mark.y + k->dy + TEXT_DOWN};
}

/* What it would hide; infinite where it must not stand. */
static double price(const ry_labels *l, const ry_box *box)
{
    double sum = 0;
    if (box->x0 < l->c->plot.x0 + 2 || box->x1 > l->c->plot.x1 + 6 || box->y0 < l->c->plot.y0 - 6 ||
        box->y1 > l->c->plot.y1 - 1)
        return INFINITY;
    for (int i = 0; i < l->n_taken; i++)
        if (overlap(box, &l->taken[i])) return INFINITY;
    for (uint32_t i = 0; i < l->n_marks; i++) {
        const ry_place m = l->marks[i];
        const ry_box around = {m.x - MARK_RADIUS, m.y - MARK_RADIUS, m.x + MARK_RADIUS,
                               m.y + MARK_RADIUS};
        sum += overlap(box, &around) ? 12 : 0;
    }
    for (uint32_t i = 1; i < l->n_line; i++) { /* its pieces are level or upright */
        const ry_place a = l->line[i - 1], b = l->line[i];
        const ry_box piece = {fmin(a.x, b.x) - 1, fmin(a.y, b.y) - 1, fmax(a.x, b.x) + 1,
                              fmax(a.y, b.y) + 1};
        sum += overlap(box, &piece) ? 9 : 0;
    }
    return sum;
}

static void write_label(const ry_labels *l, ry_place mark, const struct candidate *k,
                        const char *text, const char *style)
{
    const int is_far = k->dx * k->dx + k->dy * k->dy > 500;
    if (is_far)
        ry_putf(l->c->s, "<path class=\"rc-lead\" d=\"M%.1f %.1fL%.1f %.1f\"/>", mark.x, mark.y,
                mark.x + k->dx, mark.y + k->dy + (k->dy < 0 ? 4 : -11));
    ry_putf(l->c->s, "<text class=\"rc-label %s%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", style,
            k->side < 0 ? " rc-end"
            : k->side   ? ""
                        : " rc-mid",
            mark.x + k->dx, mark.y + k->dy, text);
}

int ry_label_put(ry_labels *l, ry_place mark, const char *text, const char *style, double limit)
{
    const size_t n = sizeof candidates / sizeof *candidates;
    const double width = ry_text_width(text, 1e9, NULL) * (l->c->font - 1);
    double best = INFINITY;
    size_t chosen = 0;
    if (l->n_taken == RY_LABELS_MAX) return 0;
    for (size_t i = 0; i < n; i++) {
        const ry_box box = box_of(mark, &candidates[i], width);
        const double cost = price(l, &box) + (double)i * 1.5;
        if (cost < best) best = cost, chosen = i;
    }
    if (!(best < limit)) return 0;
    l->taken[l->n_taken++] = box_of(mark, &candidates[chosen], width);
    write_label(l, mark, &candidates[chosen], text, style);
    return 1;
}

void ry_spread(double *y, uint32_t n, double apart, double most)
{
    for (uint32_t k = 1; k < n; k++) y[k] = fmax(y[k], y[k - 1] + apart);
    for (uint32_t k = n; k-- > 0; most -= apart) y[k] = fmin(y[k], most);
}
