/* chart.h - SVG charts: what they share, and the charts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CHART_H
#define RY_CHART_H

#include "report/chart/scale.h"
#include "report/chart/view.h"

typedef enum ry_form {
    RY_FORM_FILE,  /* stands alone: with title, colours and background */
    RY_FORM_WIDE,  /* in the page, for wide windows */
    RY_FORM_NARROW /* in the page, for phones */
} ry_form;

typedef struct ry_box {
    double x0, y0, x1, y1;
} ry_box;

/* A chart that is being drawn. Pixels, y downwards. */
typedef struct ry_canvas {
    ry_sink *s;
    ry_form form;
    double width, height;
    ry_box plot; /* between the axes */
    double font; /* size of its text; small text is smaller */
} ry_canvas;

/* ---- frame.c ---- */

typedef struct ry_frame {
    const char *title, *x_label, *y_label;
    void (*describe)(ry_sink *s, const void *of); /* for people who hear the chart */
} ry_frame;

ry_canvas ry_canvas_of(ry_sink *s, ry_form form);
/* <svg> and title; `subtitle` may be NULL, `of` is for describe. */
void ry_canvas_open(ry_canvas *c, const ry_frame *frame, const char *subtitle, const void *of);
void ry_canvas_close(ry_canvas *c);
void ry_draw_axes(ry_canvas *c, const ry_frame *frame, const ry_scale *x, const ry_scale *y);
void ry_draw_nothing(ry_canvas *c, const char *why); /* instead of a chart */

/* ---- legend.c ---- */

typedef enum ry_legend_kind { RY_LEGEND_MARK, RY_LEGEND_LINE, RY_LEGEND_WHISKER } ry_legend_kind;

typedef struct ry_legend_item {
    ry_legend_kind kind;
    const char *style; /* class of the drawing; of marks the class besides the colour, or "" */
    uint32_t colour, shape;
    char text[48];
} ry_legend_item;

enum { RY_LEGEND_MAX = 24 };

typedef struct ry_legend {
    ry_legend_item items[RY_LEGEND_MAX];
    int n;
} ry_legend;

void ry_legend_add(ry_legend *l, ry_legend_item item, const char *text, size_t size);
void ry_legend_add_families(ry_legend *l, const ry_view *v);
/* Draws from plot.y0 on and moves plot.y0 below it. */
void ry_legend_draw(ry_canvas *c, const ry_legend *l);

const char *ry_shape_path(uint32_t shape); /* round the origin, about 11 pixels wide */

/* ---- labels.c ---- */

enum { RY_LABELS_MAX = 64 };

typedef struct ry_place {
    double x, y;
} ry_place;

/* Finds room for labels: not over each other, and over few marks and lines. */
typedef struct ry_labels {
    ry_canvas *c;
    const ry_place *marks; /* [n_marks] */
    uint32_t n_marks;
    const ry_place *line; /* [n_line] corners of the front, which labels should not cross */
    uint32_t n_line;
    ry_box taken[RY_LABELS_MAX];
    int n_taken;
} ry_labels;

/* Writes `text` beside a mark, in class `style`; 0 if there is no room. A mark that would be hidden
 * costs 12, a piece of the line 9, distance up to 30: more than `limit` is no room. */
int ry_label_put(ry_labels *l, ry_place mark, const char *text, const char *style, double limit);

/* Places of `n` labels one above the other, given from the top down: moved until they are `apart`
 * and, if there is room, none is below `most`. */
void ry_spread(double *y, uint32_t n, double apart, double most);

/* ---- the charts ---- */

void ry_chart_scatter(ry_sink *s, const ry_view *v, renyi_chart chart, ry_form form);
void ry_chart_tokens(ry_sink *s, const ry_view *v, ry_form form);

extern const char ry_chart_css[], ry_page_css[], ry_page_js[]; /* files of this folder */

#endif
