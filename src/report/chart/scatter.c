/* scatter.c - accuracy against cost: one mark per point, its interval, the Pareto front.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/chart.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>

/* With more points than this only the front and dense runs show intervals, and only dense runs show
 * their image size. */
enum { MOST_WHISKERS = 80, MOST_SIZES = 24, MOST_LABELLED = 12 };

typedef struct scatter {
    const ry_point_set *set;
    renyi_chart chart;
    ry_chart c;
    ry_scale x, y;
    uint32_t *order;  /* [n_shown] indices of the points that are drawn, the cheapest first */
    ry_place *places; /* [n_shown] where they are, in that order */
    ry_place *line;   /* [n_line] corners of the front, which is a step line */
    uint32_t n_shown, n_line;
    uint32_t n_below; /* points below the y axis, drawn at its end */
} scatter;

static const ry_point *point_at(const scatter *s, uint32_t i)
{
    return &s->set->points[s->order[i]];
}

static int on_front(const scatter *s, uint32_t i) { return point_at(s, i)->on_front[s->chart]; }

static int is_dense_mark(const ry_point *p) { return p->is_dense && !p->is_resized; }

/* ---- places ---- */

static int comes_before(const scatter *s, uint32_t a, uint32_t b)
{
    const double cost_a = ry_point_cost(&s->set->report->points[a], s->chart);
    const double cost_b = ry_point_cost(&s->set->report->points[b], s->chart);
    return cost_a < cost_b || (cost_a == cost_b && a < b);
}

/* Shell sort: it needs no memory and no globals, and there are at most 10,000 points. */
static void sort_by_cost(scatter *s)
{
    for (uint32_t gap = s->n_shown / 2; gap; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (uint32_t i = gap; i < s->n_shown; i++) {
            const uint32_t moved = s->order[i];
            uint32_t j = i;
            for (; j >= gap && comes_before(s, moved, s->order[j - gap]); j -= gap)
                s->order[j] = s->order[j - gap];
            s->order[j] = moved;
        }
}

/* Where the accuracy axis begins. A few points far below the others would squeeze the chart: if
 * they are at most a tenth, and leaving them out saves a quarter of the axis, they are drawn at its
 * end. */
static double lowest_shown(scatter *s, double y0, double y1)
{
    double low = y1;
    uint32_t n_below = 0;
    for (uint32_t i = 0; i < s->n_shown; i++)
        if (on_front(s, i) || point_at(s, i)->is_dense)
            low = fmin(low, fmin(point_at(s, i)->of->top1, point_at(s, i)->of->top1_low));
    for (uint32_t i = 0; i < s->n_shown; i++) n_below += point_at(s, i)->of->top1 < low;
    if (n_below * 10 > s->n_shown || y1 - low > 0.75 * (y1 - y0)) return y0;
    s->n_below = n_below;
    return low;
}

static void make_scales(scatter *s)
{
    double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY, least = INFINITY;
    for (uint32_t i = 0; i < s->n_shown; i++) {
        const renyi_report_point *p = point_at(s, i)->of;
        const double cost = ry_point_cost(p, s->chart);
        least = fmin(least, p->top1);
        x0 = fmin(x0, cost), x1 = fmax(x1, cost);
        y0 = fmin(y0, fmin(p->top1, p->top1_low)); /* fmin ignores NaN */
        y1 = fmax(y1, fmax(p->top1, p->top1_high));
    }
    if (!isfinite(y0) || !isfinite(y1)) y0 = 0, y1 = 100;
    y0 = lowest_shown(s, y0, y1);
    const double space = x0 > 0 && x1 > 6 * x0 ? 0 : 0.1 * (x1 - x0); /* for labels at the left */
    s->x =
        ry_scale_of(x0 - space > 0 ? x0 - space : x0, x1, 1, s->c.form == RY_CHART_NARROW ? 6 : 11);
    s->y = ry_scale_of(y0, y1, 0, s->c.form == RY_CHART_NARROW ? 7 : 10);
    if (least >= 0 && s->y.low < 0) s->y.low = 0;
    s->x.from = s->c.plot.x0, s->x.to = s->c.plot.x1;
    s->y.from = s->c.plot.y1, s->y.to = s->c.plot.y0;
}

/* The front is a step line: between two of its points one gets the accuracy of the cheaper. */
static void make_places(scatter *s)
{
    for (uint32_t i = 0; i < s->n_shown; i++) {
        const renyi_report_point *p = point_at(s, i)->of;
        const ry_place at = {ry_scale_at(&s->x, ry_point_cost(p, s->chart)),
                             ry_scale_at(&s->y, p->top1)};
        s->places[i] = at;
        if (!on_front(s, i)) continue;
        if (s->n_line) {
            const double before = s->line[s->n_line - 1].y;
            s->line[s->n_line++] = (ry_place){at.x, before};
        }
        s->line[s->n_line++] = at;
    }
}

/* ---- drawing ---- */

static void draw_legend(scatter *s)
{
    ry_legend l = {.n = 0};
    ry_legend_add_families(&l, s->set);
    if (s->set->has_resized) {
        ry_legend_add(&l,
                      (ry_legend_item){RY_LEGEND_MARK, "rc-any rc-hollow", RY_COLOURS, 0, "", 0},
                      "another picture size", 20);
        ry_legend_add(&l, (ry_legend_item){RY_LEGEND_LINE, "rc-small", 0, 0, "", 0},
                      "dense, smaller picture", 22);
    }
    ry_legend_add(&l, (ry_legend_item){RY_LEGEND_LINE, "rc-front", RY_COLOURS, 0, "", 0},
                  "Pareto front", 12);
    ry_legend_add(&l, (ry_legend_item){RY_LEGEND_WHISKER, "", RY_COLOURS, 0, "", 0},
                  "95 % interval", 13);
    ry_legend_draw(&s->c, &l);
}

static void draw_whiskers(scatter *s)
{
    for (uint32_t i = 0; i < s->n_shown; i++) {
        const ry_point *p = point_at(s, i);
        if (!isfinite(p->of->top1_low) || !isfinite(p->of->top1_high)) continue;
        if (s->n_shown > MOST_WHISKERS && !on_front(s, i) && !is_dense_mark(p)) continue;
        ry_open_path(&s->c.d, "rc-w c%u", p->colour);
        ry_move_to(&s->c.d, s->places[i].x, ry_scale_at(&s->y, p->of->top1_low));
        ry_line_to(&s->c.d, s->places[i].x, ry_scale_at(&s->y, p->of->top1_high));
    }
}

/* What pruning competes with: the same model on smaller images, one line per model. */
static void draw_sizes(scatter *s)
{
    for (uint32_t m = 0; s->set->has_resized && m < s->set->n_models; m++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < s->n_shown; i++) {
            const ry_point *p = point_at(s, i);
            if (!p->is_dense || p->model_index != m) continue;
            if (!n) ry_open_path(&s->c.d, "rc-small c0");
            (n++ ? ry_line_to : ry_move_to)(&s->c.d, s->places[i].x, s->places[i].y);
        }
    }
}

static void draw_front(scatter *s)
{
    if (!s->n_line) return;
    ry_open_path(&s->c.d, "rc-front");
    for (uint32_t i = 0; i < s->n_line; i++)
        (i ? ry_line_to : ry_move_to)(&s->c.d, s->line[i].x, s->line[i].y);
    ry_line_to(&s->c.d, s->c.plot.x1, s->line[s->n_line - 1].y);
}

static void describe_point(ry_buffer *out, const scatter *s, uint32_t i)
{
    const ry_point *p = point_at(s, i);
    ry_putf(out, "#%u %s: %.2f %% (%.1f to %.1f), %.3f GMACs, %.1f ms", s->order[i] + 1, p->policy,
            p->of->top1, p->of->top1_low, p->of->top1_high, p->of->gmacs, p->of->ms_model);
    if (s->set->n_models > 1) ry_putf(out, ", %s", p->model);
    if (p->is_resized) ry_putf(out, ", %u pixels", p->of->image_size);
}

/* A smaller image gets a smaller mark. */
static double mark_scale(const renyi_report_point *p)
{
    return fmin(1.3, fmax(0.55, (double)p->image_size / p->native_size));
}

/* In a page a mark links to its row, with or without the script. */
static void draw_mark(scatter *s, uint32_t i)
{
    const ry_point *p = point_at(s, i);
    const char *tag = s->c.form == RY_CHART_FILE ? "g" : "a";
    ry_buffer *attributes =
        ry_open_group(&s->c.d, tag, s->places[i].x, s->places[i].y, "rc-m c%u%s%s%s", p->colour,
                      p->is_resized ? " rc-hollow" : "", on_front(s, i) ? " rc-best" : "",
                      is_dense_mark(p) ? " rc-dense" : "");
    if (s->c.form != RY_CHART_FILE)
        ry_putf(attributes, " href=\"#r%u\" data-i=\"%u\"", s->order[i] + 1, s->order[i]);
    if (s->c.form != RY_CHART_NARROW) /* phones do not hover */
        describe_point(ry_open_title(&s->c.d), s, i);
    if (is_dense_mark(p)) ry_draw_circle(&s->c.d, 0, 0, 10, "rc-ring");
    ry_draw_shape(&s->c.d, p->shape, 0, 0, p->is_resized ? mark_scale(p->of) : 1, RY_NO_STYLE);
    ry_draw_sign(&s->c.d, ry_point_sign(s->set, p));
    ry_close_group(&s->c.d, tag);
}

static void draw_marks(scatter *s)
{
    for (int front = 0; front < 2; front++) /* the front above the rest */
        for (uint32_t i = 0; i < s->n_shown; i++)
            if (on_front(s, i) == front) draw_mark(s, i);
}

/* ---- labels ---- */

/* "#33 mosaic keep=0.7 layers=0,3,6, 160 px"; the policy is cut to `most` ems. */
static void label_text(const scatter *s, uint32_t i, double most, char out[160])
{
    const ry_point *p = point_at(s, i);
    const char *cut;
    ry_text_width(p->policy, most, &cut);
    const int bytes = cut - p->policy < 120 ? (int)(cut - p->policy) : 0;
    int n = snprintf(out, 160, "#%u", s->order[i] + 1);
    if (is_dense_mark(p))
        n += snprintf(out + n, 160 - (size_t)n, " dense");
    else if (bytes && most > 0)
        n += snprintf(out + n, 160 - (size_t)n, " %.*s%s", bytes, p->policy, *cut ? "…" : "");
    if (p->is_resized && s->c.form != RY_CHART_NARROW)
        snprintf(out + n, 160 - (size_t)n, ", %u px", p->of->image_size);
}

/* All points of a short front get a label, if necessary with a line that leads to it. */
static void label_front(scatter *s, ry_label_placer *l)
{
    /* The whole policy, its beginning, only the number. */
    static const double lengths[] = {36, 23, 0};
    const int is_narrow = s->c.form == RY_CHART_NARROW;
    const int is_long = s->n_line > 2 * MOST_LABELLED - 1; /* two corners per point, less one */
    char text[160];
    for (uint32_t i = s->n_shown; i-- > 0;) { /* the most accurate first */
        if (!on_front(s, i) || is_dense_mark(point_at(s, i))) continue;
        for (int k = is_narrow ? 2 : 0, done = 0; k < 3 && !done; k++) {
            const double limit = is_long ? 11 : is_narrow || lengths[k] > 0 ? 14 : 30;
            label_text(s, i, lengths[k], text);
            done = ry_label_place(l, s->places[i], text, "rc-strong", limit);
        }
    }
}

/* Pixels of resized images, and accuracies below the axis. */
static void label_rest(scatter *s, ry_label_placer *l)
{
    char text[160];
    for (int dense = 1; dense >= 0; dense--)
        for (uint32_t i = 0; i < s->n_shown; i++) {
            const ry_point *p = point_at(s, i);
            const int is_below = p->of->top1 < s->y.low;
            if (is_below && !dense) {
                char number[RY_NUMBER_MAX];
                number[ry_number(number, p->of->top1, 1)] = 0;
                snprintf(text, sizeof text, "▾ %.20s %%", number);
            } else if (p->is_resized && !on_front(s, i) && p->is_dense == dense &&
                       (dense || s->n_shown <= MOST_SIZES)) {
                snprintf(text, sizeof text, dense ? "%u px" : "%u", p->of->image_size);
            } else {
                continue;
            }
            ry_label_place(l, s->places[i], text, "rc-size", dense ? 60 : 14);
        }
}

static void note_below(scatter *s, ry_label_placer *l)
{
    const ry_box *plot = &s->c.plot;
    ry_putf(ry_open_label(&s->c.d, plot->x1 - 4, plot->y1 - 8, "rc-label rc-size rc-end"),
            "%u below this range, drawn on its edge", s->n_below);
    l->taken[l->n_taken++] = (ry_box){plot->x1 - 190, plot->y1 - 20, plot->x1, plot->y1 - 4};
}

/* The most important labels first, then what fits. */
static void draw_labels(scatter *s)
{
    ry_label_placer l = {.c = &s->c,
                         .marks = s->places,
                         .n_marks = s->n_shown,
                         .line = s->line,
                         .n_line = s->n_line};
    char text[160];
    ry_buffer_text(ry_open_group(&s->c.d, "g", 0, 0, "rc-labels"), RY_HIDDEN);
    if (s->n_below) note_below(s, &l);
    for (uint32_t i = 0; i < s->n_shown; i++) {
        if (!is_dense_mark(point_at(s, i))) continue;
        label_text(s, i, 1, text);
        ry_label_place(&l, s->places[i], text, "rc-strong", 60);
    }
    label_front(s, &l);
    label_rest(s, &l);
    ry_close_group(&s->c.d, "g");
}

/* ---- the chart ---- */

static void describe_chart(ry_buffer *out, const ry_point_set *set, renyi_chart chart)
{
    uint32_t shown = 0, best = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        shown += (uint32_t)ry_point_is_shown(set->points[i].of, chart);
        best += set->points[i].on_front[chart];
    }
    ry_putf(out, "%u points, %u of them on the Pareto front", shown, best);
    for (uint32_t i = 0, n = 0; i < set->n && n < 20; i++) {
        const ry_point *p = &set->points[i];
        if (!p->on_front[chart]) continue;
        ry_putf(out, n++ ? "; %s" : ": %s", p->policy);
        ry_putf(out, chart == RENYI_CHART_GMACS ? " %.1f %% for %.3f GMACs" : " %.1f %% in %.1f ms",
                p->of->top1, ry_point_cost(p->of, chart));
    }
    ry_buffer_text(out, ".");
}

static void draw_points(scatter *s)
{
    static const char *const x_labels[2] = {"GMACs per photo",
                                            "milliseconds of the model per photo"};
    draw_legend(s);
    make_scales(s);
    make_places(s);
    ry_chart_axes(&s->c, x_labels[s->chart], "top-1 accuracy, %", &s->x, &s->y);
    draw_whiskers(s);
    draw_sizes(s);
    draw_front(s);
    draw_marks(s);
    draw_labels(s);
}

void ry_chart_scatter(ry_buffer *out, const ry_point_set *set, renyi_chart chart,
                      ry_chart_form form)
{
    static const char *const titles[2] = {"Accuracy against arithmetic", "Accuracy against time"};
    scatter s = {.set = set, .chart = chart, .c = ry_chart_new(set->al, form, titles[chart])};
    s.order = ry_alloc(set->al, set->n, sizeof *s.order);
    s.places = ry_alloc(set->al, set->n, sizeof *s.places);
    s.line = ry_alloc(set->al, 2 * (size_t)set->n, sizeof *s.line);
    if (!s.order || !s.places || !s.line) {
        s.c.d.failed = 1;
    } else {
        for (uint32_t i = 0; i < set->n; i++)
            if (ry_point_is_shown(set->points[i].of, chart)) s.order[s.n_shown++] = i;
        sort_by_cost(&s);
        describe_chart(&s.c.d.description, set, chart);
        ry_chart_titles(&s.c, set->report->title);
        if (s.n_shown)
            draw_points(&s);
        else
            ry_chart_message(&s.c, "no point has both numbers");
    }
    ry_chart_write(&s.c, out);
    ry_free(set->al, s.order);
    ry_free(set->al, s.places);
    ry_free(set->al, s.line);
}
