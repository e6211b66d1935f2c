/* train_arguments.h - what renyi train was asked to do.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_TRAIN_ARGUMENTS_H
#define RENYI_TRAIN_ARGUMENTS_H

#include "cli/kit/options.h"

#include "renyi/train.h"

enum { TRAIN_MAX_SETTINGS = 100 };

typedef struct train_arguments {
    const char *out, *cpu;
    uint64_t log_freq;
    int resume, json, dry_run;
    const char *texts[TRAIN_MAX_SETTINGS]; /* of each setting of the library, as typed, or NULL */
    int is_on[TRAIN_MAX_SETTINGS], is_off[TRAIN_MAX_SETTINGS]; /* --flag, --no-flag */
    char *model, *teacher;                                     /* where those words lead; owned */
    renyi_train_options opt;
} train_arguments;

/* Open, train, report. Returns an exit code. */
int train_execute(const train_arguments *a);

/* train_report.c: the settings on stderr, by groups; the outcome on stdout. */
void train_put_settings(const renyi_train *t, const char *folder, int is_resumed);
void train_put_result(const train_arguments *a, const renyi_train *t, int is_interrupted);

#endif
