/* vqa_run.h - the inside of renyi_vqa_run: what a run has in hand, its file, and what ranks swap.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VQA_RUN_H
#define RY_VQA_RUN_H

#include "base/ranks.h"
#include "eval/vqa/vqa_questions.h"

typedef struct ry_vqa_run_file ry_vqa_run_file;

typedef struct ry_vqa_run {
    const renyi_vqa *v;
    renyi_vqa_run_options o;
    renyi_vqa_answers *a;
    ry_vqa_run_words words;
    ry_ranks ranks;
    ry_vqa_run_file *file; /* vqa_run_file.c; NULL = none is written */
    uint32_t *todo;        /* [n_todo] questions of this rank's share, ascending */
    size_t n_todo;
    uint64_t n_before; /* answers that were there */
    uint32_t *own;     /* [n_own] questions that were answered now, by this rank */
    size_t n_own;
    unsigned char *photo; /* of the question before; C heap */
    size_t photo_size;
    const char *photo_name; /* in the pool of a; NULL = none */
    const void *photo_of;   /* which one that is: its name or base64 in v */
} ry_vqa_run;

/* ---- vqa_run_file.c ------------------------------------------------------------------------ */

/* Reads what there is into the answers. */
renyi_status ry_vqa_file_open(ry_vqa_run *r, renyi_error *err) RENYI_CHECK;
/* Ready to write FILE, or of other ranks FILE.rank<r>: nobody may be reading it any more. */
renyi_status ry_vqa_file_begin(ry_vqa_run *r, renyi_error *err) RENYI_CHECK;
/* A line, which gets its newline, to the system. */
renyi_status ry_vqa_file_put(ry_vqa_run *r, const char *line, renyi_error *err) RENYI_CHECK;
/* The first rank: FILE gets all answers in the order of the questions, unless it has that. */
renyi_status ry_vqa_file_settle(ry_vqa_run *r, renyi_error *err) RENYI_CHECK;
/* FILE has everything: parts that were read, and this rank's own, go. */
void ry_vqa_file_drop_parts(ry_vqa_run *r);
void ry_vqa_file_close(ry_vqa_run *r);

/* ---- vqa_run_share.c, collective ----------------------------------------------------------- */

/* Do all ranks mean the same questions and have the same answers? */
renyi_status ry_vqa_meet(ry_vqa_run *r, renyi_error *err) RENYI_CHECK;
/* Answers of every rank to all. */
renyi_status ry_vqa_share(ry_vqa_run *r, renyi_error *err) RENYI_CHECK;

/* ---- vqa_run_image.c ----------------------------------------------------------------------- */

/* The photo of a question into r->photo; *is_same: it was there already. */
renyi_status ry_vqa_load_photo(ry_vqa_run *r, const ry_vqa_question *q, int *is_same,
                               renyi_error *err) RENYI_CHECK;

#endif
