/* chart.h - SVG charts: axes, legend and labels that they share, and the charts themselves.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CHART_H
#define RY_CHART_H

#include "report/chart/point_set.h"

/* ---- chart_axes.c ---- */

enum { RY_MAX_TICKS = 16 };

typedef struct ry_scale {
    double low, high; /* values at both ends; low < high, finite */
    double from, to;  /* their places */
    int is_log;
    int n_ticks;
    double ticks[RY_MAX_TICKS];
    double step; /* between the ticks of a linear axis */
} ry_scale;

/* An axis that shows least..most with a margin, and at most `most_ticks` (2 to RY_MAX_TICKS) round
 * values on it. An empty, reversed or infinite range still gives an axis. The axis is logarithmic
 * if may_be_log and most is above 6 times least. */
ry_scale ry_scale_of(double least, double most, int may_be_log, int most_ticks);
int ry_scale_decimals(const ry_scale *s, int tick); /* to write a tick with */
/* The place of v, which must be finite; values outside the axis are placed at its end. */
double ry_scale_at(const ry_scale *s, double v);

typedef enum ry_chart_form {
    RY_CHART_FILE,  /* a file of its own, with title, style sheet and background */
    RY_CHART_WIDE,  /* in a page, for wide windows */
    RY_CHART_NARROW /* in a page, for phones */
} ry_chart_form;

/* A chart while it is drawn. */
typedef struct ry_chart {
    ry_drawing d;
    ry_chart_form form;
    ry_box plot; /* between the axes */
    double font; /* size of its text */
} ry_chart;

ry_chart ry_chart_new(const renyi_allocator *al, ry_chart_form form, const char *title);
void ry_chart_titles(ry_chart *c, const char *subtitle); /* of a file; subtitle may be NULL */
void ry_chart_axes(ry_chart *c, const char *x_label, const char *y_label, const ry_scale *x,
                   const ry_scale *y);
void ry_chart_message(ry_chart *c, const char *why); /* instead of a chart */
void ry_chart_write(ry_chart *c, ry_buffer *out);    /* and frees it */

/* ---- chart_legend.c: legend and labels ---- */

typedef enum ry_legend_kind { RY_LEGEND_MARK, RY_LEGEND_LINE, RY_LEGEND_WHISKER } ry_legend_kind;

typedef struct ry_legend_item {
    ry_legend_kind kind;
    const char *style; /* classes of a line; classes of a mark besides its colour, or "" */
    uint32_t colour, shape;
    char text[48];
    uint32_t sign; /* in a mark */
} ry_legend_item;

enum { RY_LEGEND_MAX = 24 };

typedef struct ry_legend {
    ry_legend_item items[RY_LEGEND_MAX];
    int n;
} ry_legend;

void ry_legend_add(ry_legend *l, ry_legend_item item, const char *text, size_t size);
/* The sign in a mark that tells its metric, 1 and above; 0 = none: there is one metric at most. */
uint32_t ry_point_sign(const ry_point_set *set, const ry_point *p);
void ry_draw_sign(ry_drawing *d, uint32_t sign); /* around 0, 0 */

void ry_legend_add_families(ry_legend *l, const ry_point_set *set);
void ry_legend_draw(ry_chart *c, const ry_legend *l); /* at plot.y0, which moves below it */

enum { RY_LABELS_MAX = 64 };

typedef struct ry_place {
    double x, y;
} ry_place;

/* Places labels where they do not overlap each other and hide few marks and lines. */
typedef struct ry_label_placer {
    ry_chart *c;
    const ry_place *marks; /* [n_marks] */
    uint32_t n_marks;
    const ry_place *line; /* [n_line] corners of the front, which labels should not cross */
    uint32_t n_line;
    ry_box taken[RY_LABELS_MAX];
    int n_taken;
} ry_label_placer;

/* Writes `text` beside a mark, in class `style`. A hidden mark costs 12, a hidden piece of the line
 * 9, distance up to 30; returns 0 and writes nothing if every place costs more than `limit`. */
int ry_label_place(ry_label_placer *l, ry_place mark, const char *text, const char *style,
                   double limit);

/* Moves `n` labels, sorted from the top down, until they are `apart` and, if they fit, none is
 * below `most`. */
void ry_labels_spread(double *y, uint32_t n, double apart, double most);

/* ---- scatter.c, tokens.c: charts of a sweep ---- */

void ry_chart_scatter(ry_buffer *out, const ry_point_set *set, renyi_chart chart,
                      ry_chart_form form);
void ry_chart_tokens(ry_buffer *out, const ry_point_set *set, ry_chart_form form);

/* ---- curves.c: charts of training runs ---- */

/* How a run looks in all charts: dashes and shape tell runs apart without colour. */
typedef struct ry_run_look {
    uint32_t colour, dashes, shape;
} ry_run_look;

ry_run_look ry_run_look_of(uint32_t run);
const char *ry_run_name(const renyi_report_curves *r, uint32_t run);

void ry_chart_panel(ry_buffer *out, const renyi_report_curves *r, uint32_t panel,
                    ry_chart_form form);
void ry_chart_panels(ry_buffer *out, const renyi_report_curves *r); /* all in one file */

/* curves_terminal.c: all as text of this many columns. */
void ry_chart_text(ry_buffer *out, const renyi_report_curves *r, uint32_t columns, int has_colours);

/* Extends the ranges x and y to hold the curve; 0 if it has no finite point. */
int ry_curve_range(const renyi_report_curve *c, double x[2], double y[2]);
size_t ry_curve_end(const renyi_report_curve *c); /* its last finite point; n if there is none */
/* The axes of a chart; the x axis is that of all charts with the same unit. Returns how many lines
 * have a point and no faint look; if 0, there are no axes. is_small: fewer ticks. */
uint32_t ry_panel_scales(const renyi_report_curves *r, const renyi_report_panel *p, int is_small,
                         ry_scale *x_axis, ry_scale *y_axis);
/* Decimals that resolve 1/20000 of a range, at most 6. */
int ry_fine_decimals(double low, double high);

extern const char ry_chart_css[]; /* chart.css */

#endif
