/* sweep_report.h - renyi sweep: its options, and what is reported of a finished sweep.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_SWEEP_REPORT_H
#define RENYI_SWEEP_REPORT_H

#include "cli/eval/eval_job.h"

#include "renyi/report.h"
#include "renyi/sweep.h"
#include <jansson.h>

typedef struct sweep_arguments {
    eval_arguments e; /* data, how to run, --json, --resume; its model and policies are not used */
    const char *spec, *output;
    uint64_t memory_mb;
    int dry_run;
    cli_strings models, sizes, policies; /* each as given */
    cli_strings frameworks, metrics, n, c, keep, p, r, tokens, layers;
    zeroshot_arguments z; /* for CLIP models; used when e.zeroshot points here */
    char *command;        /* the command line, for the report; owned */
} sweep_arguments;

/* Runs the grid and reports it (sweep_execute.c). Returns an exit code. */
int sweep_execute(const sweep_arguments *a, const renyi_grid *grid);

/* ---- what is reported (sweep_view.c) ------------------------------------------------------- */

#define SWEEP_NO_POINT SIZE_MAX

typedef struct sweep_view {
    const sweep_arguments *a;
    const renyi_sweep *sweep;
    size_t n;
    renyi_sweep_point *points; /* [n] in the order of the sweep, like all arrays here */
    size_t *baseline;          /* [n] the same model, dense, at its own size or else the largest */
    uint8_t *on_gmacs, *on_ms; /* [n] on the Pareto front */
    size_t *order;             /* [n] expensive points first: by GMACs, then by accuracy */
    char **titles;             /* [n] short names of the models; owned */
    char **labels;             /* [n] the same, and the dtype if there are several; owned */
    renyi_report_point *drawn; /* [n] for the library's charts */
    renyi_report_pair *pairs;  /* [n_pairs] all, or the most important if there are many */
    size_t n_pairs;
    renyi_report report;                      /* of these */
    char *title, *note, *machine, *data_text; /* owned; note may be NULL */
    double peak_rss_mb;
    int is_interrupted;
} sweep_view;

/* 0, or -1 after reporting; sweep_view_free either way. */
int sweep_view_make(sweep_view *v, const sweep_arguments *a, const renyi_sweep *s,
                    int is_interrupted);
void sweep_view_free(sweep_view *v);

/* ---- its forms (sweep_report.c) ------------------------------------------------------------ */

void sweep_table(const sweep_view *v);
json_t *sweep_json(const sweep_view *v); /* owned; NULL = no memory */

/* A policy without the keys that have their default values; it means the same. Owned. */
char *sweep_short_policy(const char *full);

/* The folder of -o: made and tested before a long run, filled after it. 0, or -1 after reporting.
 */
int sweep_folder_make(const sweep_arguments *a);
int sweep_folder_write(const sweep_view *v);

#endif
