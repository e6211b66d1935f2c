/* tune_arguments.h - what renyi tune was asked to do.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_TUNE_ARGUMENTS_H
#define RENYI_TUNE_ARGUMENTS_H

#include "cli/eval/eval_job.h"

#include "renyi/sweep.h"

typedef struct tune_arguments {
    eval_arguments e; /* model, photos, how to run; its policies are not used */
    option_reals max_drop, target_ms, target_gmacs, search;
    renyi_tune_goal goal; /* the one of them that was given */
    double bound;
    const char *space;    /* a spec file */
    cli_strings policies; /* with alternatives a|b */
    option_counts sizes;
    int unlabelled;
} tune_arguments;

/* Open model and data, search, report. Returns an exit code. */
int tune_execute(const tune_arguments *a);

#endif
