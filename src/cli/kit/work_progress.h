/* work_progress.h - callbacks of the library for work over many photos or texts: a bar, Ctrl-C, and
 * what failed on the way.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_WORK_PROGRESS_H
#define RENYI_WORK_PROGRESS_H

#include "cli/kit/cli.h"
#include "cli/kit/terminal.h"

/* Set the title and leave the rest zero. */
typedef struct work_progress {
    const char *title;
    progress_bar bar;
    int is_started;
    cli_strings failed, reasons; /* as reported; work_progress_free */
} work_progress;

/* `user` is the work_progress. The second reports a photo and remembers it. */
int work_on_progress(void *user, uint64_t done, uint64_t total);
void work_on_failure(void *user, const char *file, const char *message);

void work_progress_end(work_progress *p); /* wipes the bar; the next call begins a new one */
void work_progress_free(work_progress *p);

#endif
