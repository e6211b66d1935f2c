/* view.h - a report made ready to draw: checked, and with all that is derived from it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VIEW_H
#define RY_VIEW_H

#include "renyi/report.h"
#include "report/page/markup.h"

enum { RY_COLOURS = 9, RY_SHAPES = 6 }; /* of marks; chart.css has the colours */

typedef struct ry_view_point {
    const renyi_report_point *of;
    const char *model, *policy; /* short, to show; not escaped */
    const char *family;         /* not escaped, may be followed by more: family_size bytes count */
    size_t family_size;
    uint32_t model_index;  /* in the order of first appearance */
    uint32_t family_index; /* likewise */
    uint32_t colour;       /* of the family */
    uint32_t shape;        /* of the model; of the family where there is only one model */
    uint8_t is_dense;      /* nothing is pruned */
    uint8_t is_resized;    /* not the model's own size */
    uint8_t is_ambiguous;  /* another model has the same short name */
    uint8_t on_front[2];   /* by renyi_chart */
} ry_view_point;

typedef struct ry_view {
    const renyi_report *report;
    const renyi_allocator *al;
    ry_view_point *points; /* [n] */
    uint32_t n, n_models, n_families;
    uint32_t baseline; /* place of a point; n where there are no points */
    int has_resized;
    ry_sink names; /* what model and policy point into */
} ry_view;

/* Checks the report and fills *v, which borrows it. On failure *v is empty. */
renyi_status ry_view_new(ry_view *v, const renyi_report *r, renyi_error *err);
void ry_view_free(ry_view *v);

/* The cost that a chart is about; NaN for a chart without one. */
double ry_point_cost(const renyi_report_point *p, renyi_chart chart);
/* Has it a place in the chart? */
int ry_point_is_shown(const renyi_report_point *p, renyi_chart chart);
void ry_front_mark(const renyi_report_point *points, uint32_t n, renyi_chart chart,
                   uint8_t *on_front, size_t stride);

/* names.c: into the sink, NUL included. */
void ry_put_short_model(ry_sink *s, const char *model);   /* the last part of a path */
void ry_put_short_policy(ry_sink *s, const char *policy); /* without words that are defaults */

#endif
