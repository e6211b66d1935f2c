/* work_progress.c - see work_progress.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/work_progress.h"

#include "cli/kit/progress.h"

int work_on_progress(void *user, uint64_t done, uint64_t total)
{
    work_progress *p = user;

    if (!p->is_started) progress_start(&p->bar, p->title, total, 1);
    p->is_started = 1;
    progress_update(&p->bar, done);
    return eval_is_interrupted();
}

void work_on_failure(void *user, const char *file, const char *message)
{
    work_progress *p = user;

    work_progress_end(p); /* the message gets a line of its own; the bar comes back below it */
    cli_error("%s: %s", file, message);
    cli_strings_add(&p->failed, cli_copy(file));
    cli_strings_add(&p->reasons, cli_copy(message));
}

void work_progress_end(work_progress *p)
{
    if (p->is_started) progress_end(&p->bar);
    p->is_started = 0;
}

void work_progress_free(work_progress *p)
{
    work_progress_end(p);
    cli_strings_free(&p->failed);
    cli_strings_free(&p->reasons);
}
