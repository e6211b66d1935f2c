/* search_arguments.h - what renyi search was asked to do.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_SEARCH_ARGUMENTS_H
#define RENYI_SEARCH_ARGUMENTS_H

#include "cli/search/embed_job.h"
#include "cli/shared/text_side.h"

typedef struct search_arguments {
    embed_arguments e;
    text_arguments text;
    const char *folder, *index;
    cli_strings texts, images; /* questions */
    uint64_t top_k;
    int no_update, json, paths;
} search_arguments;

/* Bring the index up to date, ask, report. Returns an exit code. */
int search_execute(const search_arguments *a);

#endif
