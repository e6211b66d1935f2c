/* tokens.c - the tokens left after each block, as step lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_LINES = 8 };

typedef struct token_chart {
    const ry_point_set *set;
    ry_chart c;
    ry_scale x, y;
    uint32_t chosen[MOST_LINES]; /* indices of points, the most accurate first */
    uint32_t n, n_blocks, most;
} token_chart;

static int has_same_tokens(const renyi_report_point *a, const renyi_report_point *b)
{
    if (a->n_blocks != b->n_blocks) return 0;
    for (uint32_t i = 0; i < a->n_blocks; i++)
        if (a->tokens[i] != b->tokens[i]) return 0;
    return 1;
}

/* May point i be the next line? It must be on the front or dense, and differ from those chosen. */
static int is_candidate(const token_chart *t, uint32_t i)
{
    const ry_point *p = &t->set->points[i];
    if (!p->of->tokens || !p->of->n_blocks) return 0;
    if (!p->on_front[RENYI_CHART_GMACS] && (!p->is_dense || p->is_resized)) return 0;
    for (uint32_t j = 0; j < t->n; j++)
        if (has_same_tokens(p->of, t->set->points[t->chosen[j]].of)) return 0;
    return 1;
}

/* Takes dense runs and the front, the most accurate first. */
static void choose_lines(token_chart *t)
{
    while (t->n < MOST_LINES) {
        uint32_t best = t->set->n;
        for (uint32_t i = 0; i < t->set->n; i++)
            if (is_candidate(t, i) &&
                (best == t->set->n || t->set->points[i].of->top1 > t->set->points[best].of->top1))
                best = i;
        if (best == t->set->n) return;
        const renyi_report_point *p = t->set->points[best].of;
        t->chosen[t->n++] = best;
        if (p->n_blocks > t->n_blocks) t->n_blocks = p->n_blocks;
        for (uint32_t b = 0; b < p->n_blocks; b++)
            if (p->tokens[b] > t->most) t->most = p->tokens[b];
    }
}

static void describe_chart(ry_buffer *out, const token_chart *t)
{
    ry_buffer_text(out, "Tokens that leave each block.");
    for (uint32_t i = 0; i < t->n; i++) {
        const ry_point *p = &t->set->points[t->chosen[i]];
        ry_putf(out, " %s:", p->policy);
        for (uint32_t b = 0; b < p->of->n_blocks && b < 64; b++)
            ry_putf(out, " %u", p->of->tokens[b]);
        ry_buffer_text(out, ".");
    }
}

/* Lines of one colour differ in their dashes. */
static uint32_t dashes_of(const token_chart *t, uint32_t line)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < line; i++)
        before += t->set->points[t->chosen[i]].colour == t->set->points[t->chosen[line]].colour;
    return before % 4;
}

static void draw_steps(token_chart *t, uint32_t line)
{
    const ry_point *p = &t->set->points[t->chosen[line]];
    const uint32_t *tokens = p->of->tokens, n = p->of->n_blocks;
    ry_open_path(&t->c.d, "rc-steps c%u rc-d%u", p->colour, dashes_of(t, line));
    ry_move_to(&t->c.d, ry_scale_at(&t->x, -0.5), ry_scale_at(&t->y, tokens[0]));
    for (uint32_t b = 0; b < n; b++) {
        const double y = ry_scale_at(&t->y, tokens[b]);
        if (b && tokens[b] != tokens[b - 1]) ry_line_to(&t->c.d, ry_scale_at(&t->x, b - 0.5), y);
        if (b + 1 == n || tokens[b + 1] != tokens[b])
            ry_line_to(&t->c.d, ry_scale_at(&t->x, b + 0.5), y);
    }
}

static const double LABEL_LEAD = 20,
                    LABEL_EDGE = 6; /* from the line to its label, from there to the edge */

static const char *name_of(const ry_point *p) { return p->is_dense ? "dense" : p->policy; }

/* Ems of "#12 " and ", 160 px". */
static double ems_besides_name(const token_chart *t, uint32_t line)
{
    const ry_point *p = &t->set->points[t->chosen[line]];
    char text[48];
    const int n = snprintf(text, sizeof text, "#%u ", t->chosen[line] + 1);
    if (p->is_resized) snprintf(text + n, sizeof text - (size_t)n, ", %u px", p->of->image_size);
    return ry_text_width(text, 1e9, NULL);
}

/* Space at the right for the longest label; at most 40 % of the picture. */
static double label_space(const token_chart *t)
{
    double most = 0;
    if (t->c.form == RY_CHART_NARROW) return 52;
    for (uint32_t i = 0; i < t->n; i++) {
        const char *name = name_of(&t->set->points[t->chosen[i]]);
        most = fmax(most, ems_besides_name(t, i) + ry_text_width(name, 1e9, NULL));
    }
    return fmin(LABEL_LEAD + LABEL_EDGE + most * (t->c.font - 1), 0.4 * t->c.d.width);
}

/* "#12 evit keep=0.7 layers=0,3,6, 160 px": a policy that is too long is cut before the edge of the
 * picture. On a phone only the number. */
static void draw_label(token_chart *t, uint32_t line, double from, double y)
{
    const ry_point *p = &t->set->points[t->chosen[line]];
    const double x = ry_scale_at(&t->x, p->of->n_blocks - 0.5);
    const double ems = (t->c.d.width - x - LABEL_LEAD - LABEL_EDGE) / (t->c.font - 1) -
                       ems_besides_name(t, line) + 1e-9;
    const char *name = name_of(p), *cut = name + strlen(name);
    ry_open_path(&t->c.d, "rc-steps c%u rc-d%u", p->colour, dashes_of(t, line));
    ry_move_to(&t->c.d, x, from);
    ry_line_to(&t->c.d, x + 16, y);
    ry_buffer *text =
        ry_open_label(&t->c.d, x + LABEL_LEAD, y + 4, "rc-label c%u rc-own", p->colour);
    ry_putf(text, "#%u", t->chosen[line] + 1);
    if (t->c.form == RY_CHART_NARROW) return;
    ry_buffer_text(text, " ");
    if (ry_text_width(name, 1e9, NULL) > ems) ry_text_width(name, fmax(ems - 1, 0), &cut);
    ry_put_escaped_part(text, name, (size_t)(cut - name));
    if (*cut) ry_buffer_text(text, "…");
    if (p->is_resized) ry_putf(text, ", %u px", p->of->image_size);
}

/* Labels are at the right ends of the lines, moved apart where they would overlap. */
static void draw_labels(token_chart *t)
{
    enum { APART = 16 };
    uint32_t order[MOST_LINES]; /* lines by where they end, from the top down */
    double ends[MOST_LINES], y[MOST_LINES];
    for (uint32_t i = 0; i < t->n; i++) {
        const renyi_report_point *p = t->set->points[t->chosen[i]].of;
        const double end = ry_scale_at(&t->y, p->tokens[p->n_blocks - 1]);
        uint32_t k = i;
        for (; k && ends[k - 1] > end; k--) ends[k] = ends[k - 1], order[k] = order[k - 1];
        ends[k] = end, order[k] = i;
    }
    for (uint32_t k = 0; k < t->n; k++) y[k] = ends[k];
    ry_labels_spread(y, t->n, APART, t->c.plot.y1);
    for (uint32_t k = 0; k < t->n; k++) draw_label(t, order[k], ends[k], y[k]);
}

/* Ticks are at whole block numbers; all blocks have the same width. */
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

static void draw_lines(token_chart *t)
{
    t->c.plot.y0 += 24;
    t->c.plot.x1 = t->c.d.width - label_space(t);
    t->x = block_scale(t->n_blocks, t->c.form == RY_CHART_NARROW ? 6 : 12);
    t->y = ry_scale_of(0, t->most, 0, 8);
    t->y.low = 0;
    t->x.from = t->c.plot.x0, t->x.to = t->c.plot.x1;
    t->y.from = t->c.plot.y1, t->y.to = t->c.plot.y0;
    ry_chart_axes(&t->c, "block", "tokens that leave the block", &t->x, &t->y);
    for (uint32_t i = 0; i < t->n; i++) draw_steps(t, i);
    draw_labels(t);
}

void ry_chart_tokens(ry_buffer *out, const ry_point_set *set, ry_chart_form form)
{
    token_chart t = {.set = set, .c = ry_chart_new(set->al, form, "Tokens left after each block")};
    choose_lines(&t);
    describe_chart(&t.c.d.description, &t);
    ry_chart_titles(&t.c, set->report->title);
    if (t.n)
        draw_lines(&t);
    else
        ry_chart_message(&t.c, "no token counts are known");
    ry_chart_write(&t.c, out);
}
