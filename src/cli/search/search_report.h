/* search_report.h - what renyi search found, for people and machines.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_SEARCH_REPORT_H
#define RENYI_SEARCH_REPORT_H

#include "cli/search/search_arguments.h"

/* A question and its answers. */
typedef struct search_answer {
    const char *text, *image; /* one of them is NULL */
    renyi_hit *hits;          /* [n]; owned */
    size_t n;
} search_answer;

typedef struct search_report {
    const search_arguments *a;
    const renyi_gallery *gallery;
    const renyi_model_info *model;
    const char *index; /* path; NULL = none */
    renyi_gallery_changes changes;
    search_answer *answers; /* [n_answers]; owned */
    size_t n_answers;
    const work_progress *progress;       /* photos of the folder that failed */
    cli_strings bad_images, bad_reasons; /* questions that could not be read */
} search_report;

void search_report_text(const search_report *r);
void search_report_json(const search_report *r);

#endif
