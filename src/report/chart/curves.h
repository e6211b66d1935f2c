/* curves.h - training runs over time: charts of lines, and their page.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CURVES_H
#define RY_CURVES_H

#include "report/chart/chart.h"

/* How a run looks everywhere: told apart by colour, and without colour by dashes and shape. */
typedef struct ry_run_look {
    uint32_t colour, dashes, shape;
} ry_run_look;

ry_run_look ry_run_look_of(uint32_t run);

/* One chart as an <svg> of its own, for the page. */
void ry_chart_panel(ry_sink *s, const renyi_report_curves *r, uint32_t panel, ry_form form);
/* All charts, one below the other, as a file. */
void ry_chart_panels(ry_sink *s, const renyi_report_curves *r);

void ry_curves_page(ry_sink *s, const renyi_report_curves *r);

/* Decimals that tell 20,000 places between two numbers apart, at most 6. */
int ry_fine_decimals(double low, double high);
int ry_curve_range(const renyi_report_curve *c, double x[2], double y[2]); /* 0 = nothing finite */

extern const char ry_curves_js[]; /* file of this folder */

#endif
