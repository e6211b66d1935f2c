/* vqa_run.h - the state of a VQA run (renyi_vqa_run): its questions, its file, the last image.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VQA_RUN_H
#define RY_VQA_RUN_H

#include "eval/run/shared_run.h"
#include "eval/vqa/vqa_questions.h"

typedef struct ry_vqa_run {
    const renyi_vqa *v;
    renyi_vqa_run_options o;
    renyi_vqa_answers *a;
    ry_vqa_run_words words;
    ry_shared_run shared;
    ry_run_file file;
    uint64_t n_lines; /* in FILE, when it was read */
    uint32_t *own;    /* [n_own] questions that this rank answered in this run */
    size_t n_own;
    unsigned char *photo; /* the encoded image of the question before; C heap */
    size_t photo_size;
    const char *photo_name; /* in the pool of a; NULL = none */
    const void *photo_of;   /* which image it is: its name in v; NULL = from a table */
} ry_vqa_run;

/* ---- vqa_run_file.c ------------------------------------------------------------------------ */

/* Reads the answers that exist. */
renyi_status ry_vqa_file_open(ry_vqa_run *r, renyi_error *err) RENYI_CHECK;
/* Writes a line and its newline. */
renyi_status ry_vqa_file_put(ry_vqa_run *r, const char *line, renyi_error *err) RENYI_CHECK;
/* Rank 0: FILE gets all answers in the order of the questions, unless they are so already. */
renyi_status ry_vqa_file_settle(ry_vqa_run *r, renyi_error *err) RENYI_CHECK;

/* Collective: checks that all ranks have the same questions and answers. */
renyi_status ry_vqa_compare_ranks(ry_vqa_run *r, renyi_error *err) RENYI_CHECK;
/* Collective: gives the answers of every rank to all. */
renyi_status ry_vqa_share(ry_vqa_run *r, renyi_error *err) RENYI_CHECK;

#endif
