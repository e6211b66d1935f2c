/* report.h - evaluations as charts and as a page: what every policy costs and what it buys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The caller says in plain structs what was measured; each call writes one text to memory, which
 * the caller puts in a file. SVG charts stand alone; the HTML page holds all of them, tables and
 * the paired tests, and needs no network. The same structs give the same bytes, in every locale:
 * no clock is read.
 *
 * Texts may be any bytes: they are escaped, and what is not UTF-8 or cannot be printed is shown
 * as U+FFFD. Numbers that are not finite are shown as a dash and are not drawn.
 * The rest is as in renyi.h.
 */
#ifndef RENYI_REPORT_H
#define RENYI_REPORT_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what to draw -------------------------------------------------------------------------- */

/* One model at one image size under one policy: a mark in the charts, a row of the tables. */
typedef struct renyi_report_point {
    const char *model;    /* name or path; of a path the last part is shown. NULL = unnamed */
    const char *policy;   /* in full; NULL = "none" */
    const char *family;   /* gives the colour; NULL = the first word of the policy */
    uint32_t image_size;  /* pixels a side; 0 = the model's own */
    uint32_t native_size; /* what the model was made for; 0 = image_size. A picture of another
                             size is drawn hollow, with its size beside it */
    uint64_t images;      /* answered */
    uint64_t failed;      /* photos that could not be used */
    uint64_t n_top1;      /* right answers among `images` */
    double top1;          /* per cent */
    double top1_low;      /* 95 % interval, per cent */
    double top1_high;
    double top5;     /* per cent */
    double loss;     /* mean; NaN = unknown, as for every number here */
    double gmacs;    /* per photo, 1e9 multiply-accumulates */
    double ms_model; /* per photo, the model alone */
    double ms_total; /* per photo, reading and decoding too */
    double images_per_second;
    const uint32_t *tokens; /* [n_blocks] that leave block b, class token counted; NULL = unknown */
    uint32_t n_blocks;
} renyi_report_point;

/* Two points on the photos that both answered. */
typedef struct renyi_report_pair {
    uint32_t a, b;                          /* places in the list of points, from 0; not equal */
    uint64_t both, only_a, only_b, neither; /* right at top 1 */
    uint64_t same;                          /* predictions that are equal */
    double difference;                      /* accuracy of b minus that of a, in points */
    double p_value;                         /* McNemar's exact test, two-sided */
    int is_noise;                           /* not told apart by these photos */
} renyi_report_pair;

/* All pointers are borrowed for the call; a text that is NULL is left out. */
typedef struct renyi_report {
    uint32_t struct_size;
    uint32_t n_points;
    const renyi_report_point *points; /* [n_points] at most RENYI_REPORT_MAX_POINTS */
    const renyi_report_pair *pairs;   /* [n_pairs] any that are known, each pair once, in any order
                                         and either way round */
    size_t n_pairs;
    uint32_t baseline; /* what the paired tests begin with: number of a point, counted from 1;
                          0 = the first that is not pruned, at its model's own size */
    const char *title;
    const char *command; /* that ran this */
    const char *machine; /* CPU, threads */
    const char *data;    /* which photos */
    const char *date;    /* shown as it is */
    const char *note;    /* a sentence under the headline */
    renyi_allocator allocator;
} renyi_report;

#define RENYI_REPORT_MAX_POINTS 10000

typedef enum renyi_chart {
    RENYI_CHART_GMACS = 0, /* accuracy against multiply-accumulates */
    RENYI_CHART_MS = 1,    /* accuracy against milliseconds of the model per photo */
    RENYI_CHART_TOKENS =
        2 /* tokens after each block: dense, and points of the first chart's front */
} renyi_chart;

/* ---- texts --------------------------------------------------------------------------------- */

typedef struct renyi_report_text {
    char *bytes; /* [size + 1] UTF-8, NUL-terminated */
    size_t size;
    renyi_allocator allocator; /* that made it; for renyi_report_text_free */
} renyi_report_text;

/* On success *out is owned by the caller (renyi_report_text_free); otherwise it is empty. */
RENYI_API RENYI_CHECK renyi_status renyi_report_svg(renyi_report_text *out, const renyi_report *r,
                                                    renyi_chart chart, renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_report_html(renyi_report_text *out, const renyi_report *r,
                                                     renyi_error *err);
RENYI_API void renyi_report_text_free(renyi_report_text *t); /* an empty one is fine */

/* ---- training runs as curves --------------------------------------------------------------- */

typedef struct renyi_report_curve {
    uint32_t run;      /* place in the list of runs: the same colour, dashes and shape everywhere */
    uint32_t is_faint; /* 1 = thin, behind the others and without a label: values before smoothing.
                          The y axis is made for the others */
    const double *x, *y; /* [n] x never falls; where one is not finite the line has a gap */
    size_t n;            /* at most RENYI_REPORT_MAX_CURVE */
} renyi_report_curve;

/* One chart. */
typedef struct renyi_report_panel {
    const char *title, *caption; /* "Training loss"; a sentence about it, in the page */
    const char *x_label, *y_label;
    uint32_t x_decimals, y_decimals; /* of values that are said, 0 to 6 */
    uint32_t n_curves;
    const renyi_report_curve *curves; /* [n_curves] */
} renyi_report_panel;

/* One column of the table of runs. */
typedef struct renyi_report_column {
    const char *name;
    const char *const *cells; /* [n_runs] a NULL is shown as a dash */
    uint32_t is_text;         /* 0 = numbers */
} renyi_report_column;

#define RENYI_REPORT_MAX_RUNS 24
#define RENYI_REPORT_MAX_PANELS 16
#define RENYI_REPORT_MAX_CURVE 100000

/* All pointers are borrowed for the call; a text that is NULL is left out. */
typedef struct renyi_report_curves {
    uint32_t struct_size;
    uint32_t n_runs, n_panels, n_columns;
    const char *const *runs;            /* [n_runs] names */
    const renyi_report_panel *panels;   /* [n_panels] charts, one below the other */
    const renyi_report_column *columns; /* [n_columns] of the page's table, behind the names */
    const char *title, *note, *command, *date;
    renyi_allocator allocator;
} renyi_report_curves;

/* All charts as one SVG file; a page with the charts, values where the pointer is, and the table.
 * On success *out is owned by the caller (renyi_report_text_free); otherwise it is empty. */
RENYI_API RENYI_CHECK renyi_status renyi_report_curves_svg(renyi_report_text *out,
                                                           const renyi_report_curves *r,
                                                           renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_report_curves_html(renyi_report_text *out,
                                                            const renyi_report_curves *r,
                                                            renyi_error *err);

/* ---- the Pareto front ---------------------------------------------------------------------- */

/* on_front[i] = 1 if no other point is at least as accurate (top1) for at most the cost, and
 * better in one of the two; points with a number that is not finite are on no front. `chart` says
 * which cost: gmacs, or ms_model. RENYI_ERR_ARG for NULL arguments or another chart. */
RENYI_API RENYI_CHECK renyi_status renyi_report_front(const renyi_report *r, renyi_chart chart,
                                                      uint8_t *on_front, renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
