/* sweep_arguments.h - what renyi sweep was asked to do.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_SWEEP_ARGUMENTS_H
#define RENYI_SWEEP_ARGUMENTS_H

#include "cli/eval/eval_job.h"

#include "renyi/sweep.h"

typedef struct sweep_arguments {
    eval_arguments e; /* photos, the run, --json, --resume; not its model and policies */
    const char *spec, *output;
    uint64_t memory_mb;
    int dry_run;
    cli_strings models, sizes, policies; /* each as given */
    cli_strings frameworks, metrics, n, c, keep, p, r, tokens, layers;
    zeroshot_arguments z; /* for CLIPs; used when e.zeroshot points here */
    char *command;        /* owned: the command line, for the report */
} sweep_arguments;

/* The grid that spec file and options mean; NULL and *code after reporting. */
renyi_grid *sweep_grid(const sweep_arguments *a, int *code);

/* Run the grid and report. Returns an exit code. */
int sweep_execute(const sweep_arguments *a);

#endif
