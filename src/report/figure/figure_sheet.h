/* figure_sheet.h - results and options, checked, and the sheet they give.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_FIGURE_SHEET_H
#define RY_FIGURE_SHEET_H

#include "renyi/viz.h"
#include "report/figure/sheet.h"

typedef struct ry_figure {
    const renyi_viz_result *const *results;
    size_t n;
    renyi_figure_options opt; /* defaults filled in */
} ry_figure;

renyi_status ry_figure_check(ry_figure *f, const renyi_viz_result *const *results, size_t n,
                             const renyi_figure_options *opt, renyi_error *err);

/* Borrows f. On failure there is nothing to free. */
renyi_status ry_figure_sheet(ry_sheet *out, const ry_figure *f, renyi_error *err);
renyi_status ry_figure_blank(ry_sheet *out, const ry_figure *f, renyi_error *err); /* no marks */
void ry_figure_sheet_free(ry_sheet *s);

/* figure.c: the figure as PNG; and a finished sink as a file, or on failure nothing. */
renyi_status ry_figure_png(ry_sink *out, const ry_figure *f, renyi_error *err);
renyi_status ry_figure_finish(renyi_figure_file *out, ry_sink *s, renyi_status status,
                              renyi_error *err);

#endif
