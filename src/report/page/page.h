/* page.h - HTML pages: what they share, and the parts of each.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PAGE_H
#define RY_PAGE_H

#include "renyi/viz.h"
#include "report/chart/point_set.h"

/* ---- report_page.c: what all pages share ---- */

static inline int ry_has_text(const char *text) { return text && *text; }

void ry_page_head(ry_buffer *s, const char *title,
                  const char *css); /* up to <body>; css may be NULL */
/* <header> of a page without facts but a date; texts may be NULL, except the title. */
void ry_page_header(ry_buffer *s, const char *title, const char *note, const char *date,
                    const char *command);
void ry_page_fact(ry_buffer *s, const char *name,
                  const char *text);                   /* in the header; skipped if empty */
void ry_page_foot(ry_buffer *s);                       /* from </main> on */
void ry_page_script(ry_buffer *s, const char *script); /* the script and </html> */

/* Returns the finished text in *out, or frees it if status or the sink says that it failed. */
renyi_status ry_text_finish(renyi_report_text *out, ry_buffer *s, renyi_status status,
                            renyi_error *err);

/* ---- report_pairs.c: paired tests ---- */

typedef struct ry_pairs {
    renyi_report_pair *items; /* [n] each with a < b; sorted by a, then b */
    size_t n;
    int is_partial; /* there were too many: only those with a dense run or a front are left */
} ry_pairs;

renyi_status ry_pairs_new(ry_pairs *p, const ry_point_set *set, renyi_error *err);
void ry_pairs_free(ry_pairs *p, const ry_point_set *set);

/* 95 % interval of the difference b - a on paired images, in points (Agresti and Min 2005: Wald's
 * with half an image added to each cell, which also works when few answers differ). */
void ry_pair_interval(const renyi_report_pair *p, double *low, double *high);

void ry_put_verdict(ry_buffer *s, const ry_point_set *set, const ry_pairs *p);    /* a paragraph */
void ry_put_tests(ry_buffer *s, const ry_point_set *set, const ry_pairs *p);      /* the table */
void ry_put_pairs_data(ry_buffer *s, const ry_point_set *set, const ry_pairs *p); /* for page.js */

/* ---- viz_data.c ---- */

/* Everything the script of the viz page reads, as JSON in its own element. */
void ry_put_viz_data(ry_buffer *s, const renyi_viz_page *page);

/* Files of this folder, see renyi_embed in CMakeLists.txt. */
extern const char ry_dom_js[], ry_page_css[], ry_page_js[], ry_curves_js[], ry_viz_css[],
    ry_viz_html[], ry_viz_draw_js[], ry_viz_patch_js[], ry_viz_js[];

#endif
