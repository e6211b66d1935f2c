/* tokens.c - how many tokens are left after each block, as stairs. SPDX-License-Identifier:
 * Apache-2.0 */
#include "report/chart.h"

#include <stdio.h>

enum { MOST_LINES = 12 };

typedef struct token_chart {
    const ry_view *v;
    ry_canvas c;
    ry_scale x, y;
    uint32_t chosen[MOST_LINES]; /* points, in the order of the list */
    uint32_t n, n_blocks, most;
} token_chart;

static int has_same_tokens(const renyi_report_point *a, const renyi_report_point *b)
{
    if (a->n_blocks != b->n_blocks) return 0;
    for (uint32_t i = 0; i < a->n_blocks; i++)
        if (a->tokens[i] != b->tokens[i]) return 0;
    return 1;
}

/* Points of the front; of equal lines the first. */
static void choose(token_chart *t)
{
    for (uint32_t i = 0; i < t->v->n && t->n < MOST_LINES; i++) {
        const renyi_report_point *p = t->v->points[i].of;
        int is_new = t->v->points[i].on_front[RENYI_CHART_GMACS] && p->tokens && p->n_blocks;
        for (uint32_t j = 0; is_new && j < t->n; j++)
            is_new = !has_same_tokens(p, t->v->points[t->chosen[j]].of);
        if (!is_new) continue;
        t->chosen[t->n++] = i;
        if (p->n_blocks > t->n_blocks) t->n_blocks = p->n_blocks;
        for (uint32_t b = 0; b < p->n_blocks; b++)
            if (p->tokens[b] > t->most) t->most = p->tokens[b];
    }
}

static void describe(ry_sink *s, const ry_view *v)
{
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

/* Labels at the right ends, pushed apart: from the top line down, each at least a line lower. */
static void draw_labels(token_chart *t)
{
    uint8_t done[MOST_LINES] = {0};
    const int is_narrow = t->c.form == RY_FORM_NARROW;
    double lowest = t->c.plot.y0 - 16;
    for (uint32_t k = 0; k < t->n; k++) {
        uint32_t next = 0;
        double highest = 1e9;
        for (uint32_t i = 0; i < t->n; i++) {
            const renyi_report_point *p = t->v->points[t->chosen[i]].of;
            const double at = ry_scale_at(&t->y, p->tokens[p->n_blocks - 1]);
            if (!done[i] && at < highest) highest = at, next = i;
        }
        done[next] = 1;
        const ry_view_point *p = &t->v->points[t->chosen[next]];
        const double x = ry_scale_at(&t->x, p->of->n_blocks - 0.5);
        const double y = highest < lowest + 16 ? lowest + 16 : highest;
        const char *cut;
        lowest = y;
        ry_text_width(p->policy, is_narrow ? 0 : 23, &cut);
        ry_putf(t->c.s, "<path class=\"rc-steps c%u rc-d%u\" d=\"M%.1f %.1fL%.1f %.1f\"/>",
                p->colour, dashes_of(t, next), x, highest, x + 16, y);
        ry_putf(t->c.s, "<text class=\"rc-label c%u rc-own\" x=\"%.1f\" y=\"%.1f\">#%u ", p->colour,
                x + 20, y + 4, t->chosen[next] + 1);
        if (p->is_dense && !is_narrow)
            ry_put(t->c.s, "dense");
        else if (!is_narrow)
            ry_put_escaped_part(t->c.s, p->policy, (size_t)(cut - p->policy));
        if (!p->is_dense && !is_narrow && *cut) ry_put(t->c.s, "…");
        if (p->is_resized) ry_putf(t->c.s, " %upx", p->of->image_size);
        ry_put(t->c.s, "</text>\n");
    }
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
    ry_canvas_open(&t.c, v, &frame);
    if (t.n)
        draw(&t, &frame);
    else
        ry_draw_nothing(&t.c, "no token counts are known");
    ry_canvas_close(&t.c);
}
