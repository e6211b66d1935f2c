/* train_arguments.h - renyi train: its options, from the library's table of settings.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TRAIN_ARGUMENTS_H
#define RENYI_TRAIN_ARGUMENTS_H

#include "cli/kit/options.h"

#include "renyi/train.h"

enum { TRAIN_MAX_SETTINGS = 100 };

typedef struct train_arguments {
    const char *out, *cpu;
    uint64_t log_freq;
    int resume, json, dry_run;
    /* One item per setting of the library. */
    const char *texts[TRAIN_MAX_SETTINGS];                     /* as typed, or NULL */
    int is_on[TRAIN_MAX_SETTINGS], is_off[TRAIN_MAX_SETTINGS]; /* --flag, --no-flag */
    char *model, *teacher;                                     /* their paths; owned */
    renyi_train_options opt;
} train_arguments;

/* Opens, trains and reports. Returns an exit code. */
int train_execute(const train_arguments *a);

#endif
