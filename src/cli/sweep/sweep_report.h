/* sweep_report.h - what a sweep found, once for all forms it is told in: table, CSV, JSON, charts.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_SWEEP_REPORT_H
#define RENYI_SWEEP_REPORT_H

#include "cli/sweep/sweep_arguments.h"

#include "renyi/report.h"
#include <jansson.h>

#define SWEEP_NO_POINT SIZE_MAX

typedef struct sweep_view {
    const sweep_arguments *a;
    const renyi_sweep *sweep;
    size_t n;
    renyi_sweep_point *points; /* [n] in the order of the sweep, as are all arrays here */
    size_t *baseline;          /* [n] the same model, dense, at its own size or else the largest */
    uint8_t *on_gmacs, *on_ms; /* [n] on the Pareto front */
    size_t *order;             /* [n] dear points first: GMACs, then accuracy */
    char **titles;             /* [n] owned: short names of the models */
    renyi_report_point *drawn; /* [n] for the library's charts */
    renyi_report_pair *pairs;  /* [n_pairs] all of them, or those that matter if there are many */
    size_t n_pairs;
    renyi_report report;                      /* of these */
    char *title, *note, *machine, *data_text; /* owned; note may be NULL */
    double peak_rss_mb;
    int is_interrupted;
} sweep_view;

/* -1 after reporting. */
int sweep_view_make(sweep_view *v, const sweep_arguments *a, const renyi_sweep *s,
                    int is_interrupted);
void sweep_view_free(sweep_view *v);

void sweep_table(const sweep_view *v);
/* A policy without the words that are its rule's defaults; it means the same. Owned. */
char *sweep_short_policy(const char *full);

json_t *sweep_json(const sweep_view *v); /* owned; NULL = no memory */
char *sweep_csv(const sweep_view *v);    /* owned */

/* The folder of -o: made and tried before a long run, filled after it. -1 after reporting. */
int sweep_folder_make(const sweep_arguments *a);
int sweep_folder_write(const sweep_view *v);

#endif
