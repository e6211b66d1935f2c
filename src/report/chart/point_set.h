/* point_set.h - the points of a report, checked, with all that is derived from them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_POINT_SET_H
#define RY_POINT_SET_H

#include "renyi/report.h"
#include "report/drawing.h"

enum { RY_COLOURS = 9 }; /* of marks; chart.css has them */

typedef struct ry_point {
    const renyi_report_point *of;
    const char *model, *policy; /* short; not escaped */
    const char *family;         /* not escaped; family_size bytes, more may follow */
    size_t family_size;
    const char *metric; /* "col n=2" of the policy, metric_size bytes; NULL = it has none */
    size_t metric_size;
    uint32_t metric_index; /* in order of first appearance */
    uint32_t model_index;  /* in order of first appearance */
    uint32_t family_index; /* in order of first appearance */
    uint32_t colour;       /* of the family */
    uint32_t shape;        /* of the model; of the family if there is only one model */
    uint8_t is_dense;      /* nothing is pruned */
    uint8_t is_resized;    /* not the model's own image size */
    uint8_t is_ambiguous;  /* another model has the same short name */
    uint8_t on_front[2];   /* by renyi_chart */
} ry_point;

typedef struct ry_point_set {
    const renyi_report *report;
    const renyi_allocator *al;
    ry_point *points; /* [n] */
    uint32_t n, n_models, n_families, n_metrics;
    uint32_t baseline; /* index of a point; n if there are no points */
    int has_resized;
    ry_buffer names; /* holds the texts of `model` and `policy` */
} ry_point_set;

/* Checks the report and fills *set, which borrows it. On failure *set is empty. */
renyi_status ry_point_set_new(ry_point_set *set, const renyi_report *r, renyi_error *err);
void ry_point_set_free(ry_point_set *set);

/* The cost on the x axis of a chart; NaN for RENYI_CHART_TOKENS. */
double ry_point_cost(const renyi_report_point *p, renyi_chart chart);
/* 1 if accuracy and cost are finite. */
int ry_point_is_shown(const renyi_report_point *p, renyi_chart chart);

/* Short names with their NUL: the last part of a path; a policy without settings that are defaults.
 */
void ry_put_short_model(ry_buffer *s, const char *model);
void ry_put_short_policy(ry_buffer *s, const char *policy);

#endif
