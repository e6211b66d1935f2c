/* plot_view.h - renyi plot: runs that were read, and what is told of them.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_PLOT_VIEW_H
#define RENYI_PLOT_VIEW_H

#include "cli/kit/cli.h"

#include "renyi/report.h"
#include "renyi/train.h"
#include <jansson.h>

typedef struct plot_arguments {
    const char *output, *names, *what, *axis, *title;
    char *command;   /* owned */
    uint64_t smooth; /* 0 = by the length of the runs */
    int json;
} plot_arguments;

/* What a chart can show. */
typedef struct plot_kind {
    const char *word; /* of --what */
    renyi_run_quantity what;
    const char *title, *y_label;
    uint32_t decimals;
    double scale;    /* of values that are drawn */
    int is_smoothed; /* steps are noisy */
} plot_kind;

typedef struct plot_chart {
    const plot_kind *kind;
    renyi_run_curve lines[RENYI_REPORT_MAX_RUNS], raw[RENYI_REPORT_MAX_RUNS]; /* [n] */
    renyi_report_curve curves[2 * RENYI_REPORT_MAX_RUNS];
    uint32_t n_curves;
    char *caption;
} plot_chart;

enum { PLOT_MAX_COLUMNS = 12 };

typedef struct plot_column {
    const char *name;
    int is_text;
    char *cells[RENYI_REPORT_MAX_RUNS]; /* owned; NULL = unknown */
} plot_column;

typedef struct plot_view {
    const plot_arguments *a;
    uint32_t n, n_charts, n_columns;
    renyi_run_log *logs[RENYI_REPORT_MAX_RUNS];
    renyi_run_info infos[RENYI_REPORT_MAX_RUNS];
    char *names[RENYI_REPORT_MAX_RUNS];
    renyi_run_axis axis;
    const char *x_label;
    double x_scale;
    uint32_t x_decimals;
    uint64_t smooth; /* steps in a mean */
    plot_chart charts[RENYI_REPORT_MAX_PANELS];
    plot_column columns[PLOT_MAX_COLUMNS];
} plot_view;

/* Reads the runs and their curves. 0, or an exit code after reporting why. */
int plot_view_make(plot_view *v, const plot_arguments *a, const cli_strings *paths);
void plot_view_free(plot_view *v);

/* plot_report.c: for people, for programs, and as a file (0, or -1 after reporting why). */
void plot_columns_make(plot_view *v);
void plot_table(const plot_view *v);
json_t *plot_json(const plot_view *v);
int plot_draw(const plot_view *v);

extern const plot_kind plot_kinds[]; /* the last has word NULL */

#endif
