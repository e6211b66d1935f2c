/* report.h - draws results of evaluations and trainings as SVG charts and HTML pages.
 *
 * Call order: fill a renyi_report -> renyi_report_svg or renyi_report_html -> write the text to a
 * file -> renyi_report_text_free. Curves of training runs are the same with renyi_report_curves.
 *
 * A page contains charts, tables and paired tests in one file and needs no network. The same
 * structs give the same bytes in every locale; no clock is used. Texts may be any bytes: they are
 * escaped, and U+FFFD replaces what is not UTF-8 or not printable. Numbers that are not finite are
 * shown as a dash and not drawn. The rules of renyi.h apply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_REPORT_H
#define RENYI_REPORT_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- input ----------------------------------------------------------------------------------- */

/* What was measured, as plain structs. */

/* One model at one image size under one policy: a mark in the charts, a row in the tables. */
typedef struct renyi_report_point {
    const char *model;    /* name or path; only the last part of a path is shown. NULL = unnamed */
    const char *policy;   /* with all defaults; NULL = "none" */
    const char *family;   /* decides the color; NULL = the first word of the policy */
    uint32_t image_size;  /* side in pixels; 0 = that of the model */
    uint32_t native_size; /* size the model was made for; 0 = image_size. Points at another size are
                             drawn hollow, labeled with the size */
    uint64_t images;      /* images with a result */
    uint64_t failed;      /* images that could not be used */
    uint64_t n_top1;      /* correct predictions among `images` */
    double top1;          /* percent */
    double top1_low;      /* 95 % interval, percent */
    double top1_high;
    double top5;     /* percent */
    double loss;     /* mean; NaN = unknown, as for every number here */
    double gmacs;    /* per image, 1e9 multiply-accumulates */
    double ms_model; /* per image, model only */
    double ms_total; /* per image, with reading and decoding */
    double images_per_second;
    const uint32_t *tokens; /* [n_blocks] tokens after each block, class token included; NULL =
                               unknown */
    uint32_t n_blocks;
} renyi_report_point;

/* Two points compared on the images for which both have a result. */
typedef struct renyi_report_pair {
    uint32_t a, b;                          /* indices into the points; not equal */
    uint64_t both, only_a, only_b, neither; /* images that both, only one or neither of them
                                               classifies correctly (top 1) */
    uint64_t same;                          /* equal predictions */
    double difference;                      /* accuracy of b minus accuracy of a, percentage
                                               points */
    double p_value;                         /* McNemar's exact test, two-sided */
    int is_noise;                           /* 1 = these images cannot separate the two */
} renyi_report_pair;

/* All pointers are borrowed for the call. A text that is NULL is left out. */
typedef struct renyi_report {
    uint32_t struct_size;
    uint32_t n_points;
    const renyi_report_point *points; /* [n_points] at most RENYI_REPORT_MAX_POINTS */
    const renyi_report_pair *pairs;   /* [n_pairs] known pairs, each once, in any order and
                                         direction */
    size_t n_pairs;
    uint32_t baseline; /* first point of the paired tests, counted from 1; 0 = the first without
                          pruning at its model's own size */
    const char *title;
    const char *command; /* command line that was run */
    const char *machine; /* CPU, threads */
    const char *data;    /* which images */
    const char *date;    /* shown as given */
    const char *note;    /* a sentence below the title */
    renyi_allocator allocator;
} renyi_report;

#define RENYI_REPORT_MAX_POINTS 10000

typedef enum renyi_chart {
    RENYI_CHART_GMACS = 0, /* accuracy against multiply-accumulates */
    RENYI_CHART_MS = 1,    /* accuracy against model time per image in ms */
    RENYI_CHART_TOKENS = 2 /* tokens after each block: dense, and points of the first chart's
                              front */
} renyi_chart;

/* ---- charts and pages ------------------------------------------------------------------------ */

/* renyi_report_svg draws one chart, renyi_report_html a page with all charts, tables and paired
 * tests. */

typedef struct renyi_report_text {
    char *bytes; /* [size + 1] UTF-8, NUL-terminated */
    size_t size;
    renyi_allocator allocator; /* used by renyi_report_text_free */
} renyi_report_text;

/* On success *out is owned by the caller (renyi_report_text_free); otherwise it is empty. */
RENYI_API RENYI_CHECK renyi_status renyi_report_svg(renyi_report_text *out, const renyi_report *r,
                                                    renyi_chart chart, renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_report_html(renyi_report_text *out, const renyi_report *r,
                                                     renyi_error *err);
RENYI_API void renyi_report_text_free(renyi_report_text *t); /* an empty text is allowed */

/* ---- curves of training runs ----------------------------------------------------------------- */

/* Call order: renyi_run_log_get_curve (train.h) or own numbers -> fill a renyi_report_curves ->
 * renyi_report_curves_svg or renyi_report_curves_html -> renyi_report_text_free. */

typedef struct renyi_report_curve {
    uint32_t run;        /* index into the runs; decides color, dashes and marker */
    uint32_t is_faint;   /* 1 = thin, behind the others, without a label: values before smoothing.
                            Ignored when the y axis is scaled */
    const double *x, *y; /* [n] x never decreases; the line has a gap where x or y is not finite */
    size_t n;            /* at most RENYI_REPORT_MAX_CURVE */
} renyi_report_curve;

/* One chart. */
typedef struct renyi_report_panel {
    const char *title, *caption; /* "Training loss"; a sentence about it, for the page */
    const char *x_label, *y_label;
    uint32_t x_decimals, y_decimals; /* decimals of printed values, 0 to 6 */
    uint32_t n_curves;
    const renyi_report_curve *curves; /* [n_curves] */
} renyi_report_panel;

/* One column of the table of runs. */
typedef struct renyi_report_column {
    const char *name;
    const char *const *cells; /* [n_runs] or [n_rows]; NULL is shown as a dash */
    uint32_t is_text;         /* 0 = numbers */
} renyi_report_column;

#define RENYI_REPORT_MAX_RUNS 24
#define RENYI_REPORT_MAX_PANELS 16
#define RENYI_REPORT_MAX_CURVE 100000

/* All pointers are borrowed for the call. A text that is NULL is left out. */
typedef struct renyi_report_curves {
    uint32_t struct_size;
    uint32_t n_runs, n_panels, n_columns;
    const char *const *runs;            /* [n_runs] names */
    const renyi_report_panel *panels;   /* [n_panels] charts, drawn one below the other */
    const renyi_report_column *columns; /* [n_columns] of the page's table, after the names */
    const char *title, *note, *command, *date;
    renyi_allocator allocator;
} renyi_report_curves;

/* All charts as one SVG file; or a page with the charts, values under the pointer, and the table.
 * On success *out is owned by the caller (renyi_report_text_free); otherwise it is empty. */
RENYI_API RENYI_CHECK renyi_status renyi_report_curves_svg(renyi_report_text *out,
                                                           const renyi_report_curves *r,
                                                           renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_report_curves_html(renyi_report_text *out,
                                                            const renyi_report_curves *r,
                                                            renyi_error *err);
/* All charts as UTF-8 text for a terminal of `columns` (40 to 1000) characters: lines of braille
 * dots, each run with a letter, and with colours as escape sequences unless has_colours is 0. */
RENYI_API RENYI_CHECK renyi_status renyi_report_curves_terminal(renyi_report_text *out,
                                                                const renyi_report_curves *r,
                                                                uint32_t columns,
                                                                uint32_t has_colours,
                                                                renyi_error *err);

/* ---- tables ---------------------------------------------------------------------------------- */

/* Call order: fill a renyi_report_tables -> renyi_report_tables_html -> renyi_report_text_free. */

typedef struct renyi_report_table {
    const char *title, *about; /* a heading; a sentence below it */
    uint32_t n_rows, n_columns;
    const renyi_report_column *columns; /* [n_columns], cells [n_rows] */
} renyi_report_table;

/* All pointers are borrowed for the call. A text that is NULL is left out. */
typedef struct renyi_report_tables {
    uint32_t struct_size;
    uint32_t n_tables;
    const renyi_report_table *tables; /* [n_tables] one below the other */
    const char *title, *note, *command, *date;
    renyi_allocator allocator;
} renyi_report_tables;

/* A page of tables. On success *out is owned by the caller (renyi_report_text_free); otherwise it
 * is empty. */
RENYI_API RENYI_CHECK renyi_status renyi_report_tables_html(renyi_report_text *out,
                                                            const renyi_report_tables *r,
                                                            renyi_error *err);

/* ---- Pareto front ---------------------------------------------------------------------------- */

/* Sets on_front[i] to 1 if no other point is at least as accurate (top1) at no higher cost and
 * better in one of the two. on_front: [n_points]. Points with a number that is not finite are never
 * on the front. chart: which cost, RENYI_CHART_GMACS or RENYI_CHART_MS; another chart or a NULL
 * argument is RENYI_ERR_ARG. */
RENYI_API RENYI_CHECK renyi_status renyi_report_front(const renyi_report *r, renyi_chart chart,
                                                      uint8_t *on_front, renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
