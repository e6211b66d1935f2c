/* evaluation.h - the inside of renyi_eval.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_EVALUATION_H
#define RY_EVALUATION_H

#include "base/ranks.h"
#include "eval/data/text_lines.h"
#include "eval/run/pipeline.h"
#include "eval/run/sample_log.h"

/* Classes that may be predicted: all `n`, or the `n_valid` listed. */
typedef struct ry_choice {
    uint32_t n, n_valid;
    const uint32_t *valid; /* [n_valid] ascending; NULL = all */
} ry_choice;

/* Larger logit first, equal ones to the lower class. Times and marks are left as they are, and
 * `right` is for ry_answer_judge. */
void ry_answer_read(ry_answer *out, const float *logits, const ry_choice *choice, uint32_t label);

/* Which of the answer's classes is right for the photo? Fills `right`. */
void ry_answer_judge(ry_answer *a, const renyi_dataset_image *photo);

/* What a model was seen to do. */
typedef struct ry_work {
    double macs; /* of the n_run photos of this run */
    uint64_t n_run;
} ry_work;

typedef struct ry_eval_policy {
    const char *text;       /* in full; the session's, or in the pool */
    renyi_session *session; /* NULL in a merged evaluation */
    double gmacs;
    ry_work own, others; /* this rank's, and what the other ranks reported */
} ry_eval_policy;

#define RY_ALL_POLICIES UINT32_MAX

typedef struct ry_failure {
    renyi_eval_failure shown;
    size_t photo;
    uint32_t policy; /* whose answer is no number; RY_ALL_POLICIES = the photo cannot be read */
} ry_failure;

struct renyi_eval {
    renyi_allocator al;
    renyi_eval_options o; /* defaults filled in; its strings are not used after renyi_eval_new */
    const renyi_model *model;  /* borrowed; NULL in a merged evaluation, as data */
    const renyi_dataset *data; /* borrowed */
    struct ry_merged *merged;  /* merge.h; NULL unless merged */
    size_t n_images;
    ry_choice choice;
    ry_photo_spec spec;
    int normalise;            /* other mean or std than the session's */
    ry_eval_policy *policies; /* [o.n_policies] */
    ry_answer *answers;       /* [o.n_policies, n_images] */
    float *logits;            /* [batch, n_classes] */
    ry_pool pool;             /* texts of failures */
    ry_failure *failures;
    size_t n_failures, failure_capacity;
    ry_ranks ranks;
    uint64_t run; /* stands for all that an answer depends on but photo and policy */
    ry_sample_log log;
    double started, batch_end; /* clock at the start of the run and after the last batch */
    renyi_eval_times times;
};

static inline ry_answer *ry_eval_answer(const renyi_eval *e, uint32_t policy, size_t i)
{
    return &e->answers[policy * e->n_images + i];
}

/* Cores for this rank, at least 1. */
uint32_t ry_eval_cores(const renyi_eval *e);

/* evaluation_log.c: reads what the log holds. */
renyi_status ry_eval_open_log(renyi_eval *e, const char *name, renyi_error *err) RENYI_CHECK;
/* Lines; written out by the next flush. */
renyi_status ry_eval_put_answer(renyi_eval *e, uint32_t policy, size_t photo,
                                renyi_error *err) RENYI_CHECK;
renyi_status ry_eval_put_failure(renyi_eval *e, const ry_failure *f, renyi_error *err) RENYI_CHECK;
/* Rank 0: bring what the other ranks found into the log, to the disk. */
renyi_status ry_eval_complete_log(renyi_eval *e, renyi_error *err) RENYI_CHECK;

/* evaluation_share.c, collective: do all ranks mean the same? Then what their logs hold is known to
 * all. */
renyi_status ry_eval_meet(renyi_eval *e, renyi_error *err) RENYI_CHECK;
/* Collective: what this rank ran goes to all others, and theirs comes here; rank 0 puts failures of
 * others into its log. */
renyi_status ry_eval_share(renyi_eval *e, renyi_error *err) RENYI_CHECK;

/* Adds a failure with a copy of the message; the caller reports it. NULL = no memory. */
ry_failure *ry_eval_add_failure(renyi_eval *e, size_t photo, uint32_t policy, const char *message);

#endif
