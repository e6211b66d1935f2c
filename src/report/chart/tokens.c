/* tokens.c - how many tokens are left after each block, as stairs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/chart.h"

#include <stdio.h>

enum { MOST_LINES = 8 };

typedef struct token_chart {
    const ry_view *v;
    ry_canvas c;
    ry_scale x, y;
    uint32_t chosen[MOST_LINES]; /* points, the most accurate first */
    uint32_t n, n_blocks, most;
} token_chart;

static int has_same_tokens(const renyi_report_point *a, const renyi_report_point *b)
{
    if (a->n_blocks != b->n_blocks) return 0;
    for (uint32_t i = 0; i < a->n_blocks; i++)
        if (a->tokens[i] != b->tokens[i]) return 0;
    return 1;
}

/* Could it be the next line? On the front or dense, and unlike those that are chosen. */
static int is_new(const token_chart *t, uint32_t i)
{
    const ry_view_point *p = &t->v->points[i];
    if (!p->of->tokens || !p->of->n_blocks) return 0;
    if (!p->on_front[RENYI_CHART_GMACS] && (!p->is_dense || p->is_resized)) return 0;
    for (uint32_t j = 0; j < t->n; j++)
        if (has_same_tokens(p->of, t->v->points[t->chosen[j]].of)) return 0;
    return 1;
}

/* Dense runs and the front, from the most accurate down. */
static void choose(token_chart *t)
{
    while (t->n < MOST_LINES) {
        uint32_t best = t->v->n;
        for (uint32_t i = 0; i < t->v->n; i++)
            if (is_new(t, i) &&
                (best == t->v->n || t->v->points[i].of->top1 > t->v->points[best].of->top1))
                best = i;
        if (best == t->v->n) return;
        const renyi_report_point *p = t->v->points[best].of;
        t->chosen[t->n++] = best;
        if (p->n_blocks > t->n_blocks) t->n_blocks = p->n_blocks;
        for (uint32_t b = 0; b < p->n_blocks; b++)
            if (p->tokens[b] > t->most) t->most = p->tokens[b];
    }
}

static void describe(ry_sink *s, const void *of)
{
    const ry_view *v = of;
    token_chart t = {.v = v};
    choose(&t);
    ry_put(s, "Tokens that leave each block.");
    for (uint32_t i = 0; i < t.n; i++) {
        const ry_view_point *p = &v->points[t.chosen[i]];
        ry_putf(s, " %s:", p->policy);
        for (uint32_t b = 0; b < p->of->n_blocks && b < 64; b++)
            ry_putf(s, " %u", p->of->tokens[b]);
        ry_put(s, ".");
    }
}

/* Lines of one colour are told apart by their dashes. */
static uint32_t dashes_of(const token_chart *t, uint32_t line)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < line; i++)
        before += t->v->points[t->chosen[i]].colour == t->v->points[t->chosen[line]].colour;
    return before % 4;
}

static void draw_stairs(token_chart *t, uint32_t line)
{
    const ry_view_point *p = &t->v->points[t->chosen[line]];
    ry_putf(t->c.s, "<path class=\"rc-steps c%u rc-d%u\" d=\"M%.1f %.1f", p->colour,
            dashes_of(t, line), ry_scale_at(&t->x, -0.5), ry_scale_at(&t->y, p->of->tokens[0]));
    for (uint32_t b = 0; b < p->of->n_blocks; b++) {
        if (b && p->of->tokens[b] != p->of->tokens[b - 1])
            ry_putf(t->c.s, "V%.1f", ry_scale_at(&t->y, p->of->tokens[b]));
        if (b + 1 == p->of->n_blocks || p->of->tokens[b + 1] != p->of->tokens[b])
            ry_putf(t->c.s, "H%.1f", ry_scale_at(&t->x, b + 0.5));
    }
    ry_put(t->c.s, "\"/>\n");
}

static void draw_label(token_chart *t, uint32_t line, double from, double y)
{
    const ry_view_point *p = &t->v->points[t->chosen[line]];
    const double x = ry_scale_at(&t->x, p->of->n_blocks - 0.5);
    const char *name = p->is_dense ? "dense" : p->policy, *cut;
    ry_text_width(name, t->c.form == RY_FORM_NARROW ? 0 : 23, &cut);
    ry_putf(t->c.s, "<path class=\"rc-steps c%u rc-d%u\" d=\"M%.1f %.1fL%.1f %.1f\"/>", p->colour,
            dashes_of(t, line), x, from, x + 16, y);
    ry_putf(t->c.s, "<text class=\"rc-label c%u rc-own\" x=\"%.1f\" y=\"%.1f\">#%u", p->colour,
            x + 20, y + 4, t->chosen[line] + 1);
    if (t->c.form != RY_FORM_NARROW) {
        ry_put(t->c.s, " ");
        ry_put_escaped_part(t->c.s, name, (size_t)(cut - name));
        if (*cut) ry_put(t->c.s, "…");
        if (p->is_resized) ry_putf(t->c.s, ", %u px", p->of->image_size);
    }
    ry_put(t->c.s, "</text>\n");
}

/* Labels at the right ends, pushed apart: downwards, then up again from the bottom. */
static void draw_labels(token_chart *t)
{
    enum { APART = 16 };
    uint32_t order[MOST_LINES]; /* lines by the place of their ends, highest first */
    double ends[MOST_LINES], y[MOST_LINES];
    for (uint32_t i = 0; i < t->n; i++) {
        const renyi_report_point *p = t->v->points[t->chosen[i]].of;
        const double end = ry_scale_at(&t->y, p->tokens[p->n_blocks - 1]);
        uint32_t k = i;
        for (; k && ends[k - 1] > end; k--) ends[k] = ends[k - 1], order[k] = order[k - 1];
        ends[k] = end, order[k] = i;
    }
    for (uint32_t k = 0; k < t->n; k++) y[k] = ends[k];
    ry_spread(y, t->n, APART, t->c.plot.y1);
    for (uint32_t k = 0; k < t->n; k++) draw_label(t, order[k], ends[k], y[k]);
}

/* Blocks have whole numbers, and each is as wide as the next. */
static ry_scale block_scale(uint32_t n_blocks, int most_ticks)
{
    static const uint32_t steps[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
    ry_scale x = {.low = -0.5, .high = n_blocks - 0.5, .step = 1};
    int i = 0;
    while (i < 9 && n_blocks > steps[i] * (uint32_t)most_ticks) i++;
    for (uint32_t b = 0; b < n_blocks && x.n_ticks < most_ticks; b += steps[i])
        x.ticks[x.n_ticks++] = b;
    return x;
}

static void draw(token_chart *t, const ry_frame *frame)
{
    t->c.plot.y0 += 24;
    t->c.plot.x1 -= t->c.form == RY_FORM_NARROW ? 44 : 270;
    t->x = block_scale(t->n_blocks, t->c.form == RY_FORM_NARROW ? 6 : 12);
    t->y = ry_scale_of(0, t->most, 0, 8);
    t->y.low = 0;
    t->x.from = t->c.plot.x0, t->x.to = t->c.plot.x1;
    t->y.from = t->c.plot.y1, t->y.to = t->c.plot.y0;
    ry_draw_axes(&t->c, frame, &t->x, &t->y);
    for (uint32_t i = 0; i < t->n; i++) draw_stairs(t, i);
    draw_labels(t);
}

void ry_chart_tokens(ry_sink *s, const ry_view *v, ry_form form)
{
    static const ry_frame frame = {"Tokens left after each block", "block",
                                   "tokens that leave the block", describe};
    token_chart t = {.v = v, .c = ry_canvas_of(s, form)};
    choose(&t);
    ry_canvas_open(&t.c, &frame, v->report->title, v);
    if (t.n)
        draw(&t, &frame);
    else
        ry_draw_nothing(&t.c, "no token counts are known");
    ry_canvas_close(&t.c);
}
