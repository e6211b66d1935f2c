/* page.h - the HTML page.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PAGE_H
#define RY_PAGE_H

#include "report/chart/view.h"

typedef struct ry_pairs {
    renyi_report_pair *items; /* [n] each with a < b; by a, then b */
    size_t n;
    int is_partial; /* there were too many: only those with a dense run or a front are left */
} ry_pairs;

renyi_status ry_pairs_new(ry_pairs *p, const ry_view *v, renyi_error *err);
void ry_pairs_free(ry_pairs *p, const ry_view *v);
/* The pair of two points, seen from a: 1 and *out, or 0 if it is not known. */
int ry_pairs_find(const ry_pairs *p, uint32_t a, uint32_t b, renyi_report_pair *out);

/* 95 % interval of the difference b - a on paired photos, in points (Agresti and Min 2005: Wald's
 * with half a photo more in each cell, which also serves when few answers differ). */
void ry_pair_interval(const renyi_report_pair *p, double *low, double *high);
void ry_put_interval(ry_sink *s, const renyi_report_pair *p); /* "−18.4 to +2.0" */

renyi_status ry_page(ry_sink *s, const ry_view *v, renyi_error *err);

/* What every page has: everything up to <body>, a fact of its head (NULL = left out), everything
 * behind <main>, and its end with the script. */
void ry_page_head(ry_sink *s, const char *title, const char *css); /* more css, or NULL */
void ry_page_fact(ry_sink *s, const char *name, const char *text);
void ry_page_foot(ry_sink *s);
void ry_page_script(ry_sink *s, const char *script);

/* "#3 mosaic keep=0.7, vit_tiny, 160 px": what it takes to know a point. page.js does the same. */
void ry_page_title(ry_sink *s, const ry_view *v, uint32_t i);

/* Its parts, in the order of the page. */
void ry_page_verdict(ry_sink *s, const ry_view *v, const ry_pairs *p); /* what it means */
void ry_page_results(ry_sink *s, const ry_view *v);                    /* table of all points */
void ry_page_tests(ry_sink *s, const ry_view *v, const ry_pairs *p);   /* against the baseline */
void ry_page_data(ry_sink *s, const ry_view *v, const ry_pairs *p);    /* all pairs, for page.js */

#endif
