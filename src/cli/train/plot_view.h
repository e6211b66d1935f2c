/* plot_view.h - renyi plot: its options, and the curves and numbers of the runs that were read.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_PLOT_VIEW_H
#define RENYI_PLOT_VIEW_H

#include "cli/kit/cli.h"

#include "renyi/report.h"
#include "renyi/train.h"

typedef struct plot_arguments {
    const char *output, *names, *what, *axis, *title;
    char *command;   /* owned */
    uint64_t smooth; /* 0 = by the length of the runs */
    int json, term;
} plot_arguments;

/* What a chart can show. */
typedef struct plot_kind {
    const char *name; /* in --what */
    renyi_run_quantity what;
    const char *title, *y_label;
    uint32_t decimals;
    double scale;    /* factor of the values that are drawn */
    int is_smoothed; /* the values of single steps are noisy */
} plot_kind;

typedef struct plot_chart {
    const plot_kind *kind;
    renyi_run_curve lines[RENYI_REPORT_MAX_RUNS], raw[RENYI_REPORT_MAX_RUNS]; /* [n] */
    renyi_report_curve curves[2 * RENYI_REPORT_MAX_RUNS];
    uint32_t n_curves;
    char *caption;
} plot_chart;

typedef struct plot_view {
    const plot_arguments *a;
    uint32_t n, n_charts;
    renyi_run_log *logs[RENYI_REPORT_MAX_RUNS];
    renyi_run_info infos[RENYI_REPORT_MAX_RUNS];
    char *names[RENYI_REPORT_MAX_RUNS];
    renyi_run_axis axis;
    const char *x_label;
    double x_scale;
    uint32_t x_decimals;
    uint64_t smooth; /* steps in a mean */
    plot_chart charts[RENYI_REPORT_MAX_PANELS];
} plot_view;

/* Reads the runs and their curves. 0, or an exit code after reporting; plot_view_free either way.
 */
int plot_view_make(plot_view *v, const plot_arguments *a, const cli_strings *paths);
void plot_view_free(plot_view *v);

#endif
