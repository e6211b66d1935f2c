/* paper_subjects.h - the models that renyi paper makes tables for: those given, those of the paper
 * in the Hugging Face cache, and the paper's others by their architecture alone.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_PAPER_SUBJECTS_H
#define RENYI_PAPER_SUBJECTS_H

#include "cli/eval/eval_job.h"

#include "renyi/paper.h"

enum { PAPER_MAX_TABLES = 32 };

typedef struct paper_arguments {
    eval_arguments run;                /* data and how to run; results_file = --csv */
    cli_strings models;                /* each -m */
    cli_strings table_lists;           /* each --table */
    cli_strings results;               /* files of zeroshot and vqa, folders of train */
    uint32_t tables[PAPER_MAX_TABLES]; /* numbers of tables that are run here */
    uint32_t n_tables;
    uint32_t given[PAPER_MAX_TABLES]; /* numbers of the others, with results from files */
    uint32_t n_given;                 /* none of either kind = all tables */
    int no_mosaic, markdown;
} paper_arguments;

/* Why there are no accuracies; PAPER_RUN: there are. */
typedef enum paper_state {
    PAPER_RUN,
    PAPER_NO_WEIGHTS,
    PAPER_NO_IMAGES,
    PAPER_NOT_RUN /* other models were given, or the run was interrupted before */
} paper_state;
const char *paper_state_name(paper_state state); /* "measured", "no weights", ... */

typedef struct paper_subject {
    char *name;          /* after -m, or in the cache; owned; NULL = no weights */
    char *title;         /* short; owned */
    char *architecture;  /* owned */
    const char *dtype;   /* that it computes in; static, NULL without weights */
    const char *weights; /* what to pull for it; NULL = not one of the paper's */
    renyi_paper *paper;
    paper_state state;
    uint64_t n_images, n_failed; /* of the first policy */
    const eval_arguments *run;   /* how it was run; NULL = it was not. Borrowed */
    renyi_dataset_info data;
    renyi_eval_times times;
    cli_strings failed_files; /* "file: what is wrong with it" */
} paper_subject;

typedef struct paper_subjects {
    paper_subject *items;
    size_t count, n_started; /* n_started: evaluations that were begun */
    int is_interrupted;
} paper_subjects;

int paper_in_cache(const char *repository); /* are its weights in the Hugging Face cache? */

/* Finds all models and runs those that can be run. CLI_OK: there is something to report,
 * interrupted or not; else the exit code after an error was reported. The caller frees. */
int paper_subjects_make(paper_subjects *list, const paper_arguments *a);
int paper_subjects_exit_code(const paper_subjects *list);
void paper_subjects_free(paper_subjects *list);

#endif
