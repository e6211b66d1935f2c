/* search.h - the parts of renyi search: its arguments, and what the work returns to be printed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_SEARCH_H
#define RENYI_SEARCH_H

#include "cli/search/embed_job.h"

typedef struct search_arguments {
    embed_arguments e;
    text_arguments text;
    const char *folder, *index;
    cli_strings texts, images; /* queries */
    uint64_t top_k;
    int no_update, json, paths;
} search_arguments;

/* A query and its answers. */
typedef struct search_answer {
    const char *text, *image; /* one of them is NULL */
    renyi_hit *hits;          /* [n]; owned */
    size_t n;
} search_answer;

typedef struct search_result {
    const search_arguments *a;
    const renyi_gallery *gallery;
    const renyi_model_info *model;
    const char *index;    /* path; NULL = none */
    renyi_text_info text; /* of the text queries; zero without any */
    renyi_gallery_changes changes;
    search_answer *answers; /* [n_answers]; owned */
    size_t n_answers;
    const work_progress *progress;       /* images of the folder that failed */
    cli_strings bad_images, bad_reasons; /* query images that could not be read */
} search_result;

/* Updates the index, runs the queries and prints the result. Returns an exit code. */
int search_execute(const search_arguments *a);

void search_put_text(const search_result *r);
void search_put_json(const search_result *r);

#endif
