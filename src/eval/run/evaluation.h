/* evaluation.h - the state of an evaluation (renyi_eval): policies, their answers, failures, log.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_EVALUATION_H
#define RY_EVALUATION_H

#include "eval/data/text_lines.h"
#include "eval/run/pipeline.h"
#include "eval/run/sample_log.h"

/* Classes that may be predicted: all `n`, or the `n_valid` listed. */
typedef struct ry_choice {
    uint32_t n, n_valid;
    const uint32_t *valid; /* [n_valid] ascending; NULL = all */
} ry_choice;

typedef struct ry_work {
    double macs; /* executed for n_run images */
    uint64_t n_run;
} ry_work;

typedef struct ry_eval_policy {
    const char *text;         /* in full; owned by the session or in the pool */
    const renyi_model *model; /* borrowed; NULL in a merged evaluation, like the next */
    renyi_session *session;
    renyi_dtype dtype;
    char run[17];        /* `run` of its lines in the log: 16 hexadecimal digits */
    double gmacs;        /* of a cascade: the most */
    double gmacs_second; /* part of gmacs: the second pass of a cascade; 0 = not one */
    double macs_second;  /* the same as executed; NaN in a merged evaluation */
    ry_work own, others; /* of this rank, and as the other ranks reported */
} ry_eval_policy;

#define RY_ALL_POLICIES UINT32_MAX

typedef struct ry_failure {
    renyi_eval_failure shown;
    size_t image;
    uint32_t policy; /* whose logits were not numbers; RY_ALL_POLICIES = the image is unreadable */
} ry_failure;

struct renyi_eval {
    renyi_allocator al;
    renyi_eval_options o; /* defaults filled in; its strings are not used after renyi_eval_new */
    const renyi_model *model; /* borrowed, like data; both NULL in a merged evaluation */
    const renyi_dataset *data;
    struct ry_merged *merged; /* merge.h; NULL unless merged */
    size_t n_images;
    ry_choice choice;
    ry_image_spec spec;
    int normalize;            /* mean or std differ from the session's */
    ry_eval_policy *policies; /* [o.n_policies] */
    ry_answer *answers;       /* [o.n_policies, n_images] */
    float *logits;            /* [batch, n_classes] */
    ry_pool pool;             /* messages of failures */
    ry_failure *failures;
    size_t n_failures, failure_capacity;
    ry_shared_run shared;
    uint32_t images_per_run; /* a batch for each stream */
    uint64_t run; /* hash of the runs of all policies: what answers depend on besides the image */
    ry_sample_log log;
    double started, batch_end; /* clock at the start of the run and after the last batch */
    renyi_eval_times times;
};

static inline ry_answer *ry_eval_answer(const renyi_eval *e, uint32_t policy, size_t i)
{
    return &e->answers[policy * e->n_images + i];
}

/* ---- evaluation.c -------------------------------------------------------------------------- */

/* Times before a run. */
renyi_eval_times ry_eval_no_times(const renyi_eval *e);

/* Cores for this rank, at least 1. */
uint32_t ry_eval_cores(const renyi_eval *e);

/* Add a line to the log; the next flush writes it. */
renyi_status ry_eval_put_answer(renyi_eval *e, uint32_t policy, size_t image,
                                renyi_error *err) RENYI_CHECK;
renyi_status ry_eval_put_failure(renyi_eval *e, const ry_failure *f, renyi_error *err) RENYI_CHECK;
/* Rank 0: writes the answers of the other ranks to the log and syncs it to the disk. */
renyi_status ry_eval_complete_log(renyi_eval *e, renyi_error *err) RENYI_CHECK;

/* ---- evaluation_run.c ---------------------------------------------------------------------- */

/* Adds a failure with a copy of the message; the caller reports it. NULL = no memory. */
ry_failure *ry_eval_add_failure(renyi_eval *e, size_t image, uint32_t policy, const char *message);

/* ---- evaluation_share.c, collective -------------------------------------------------------- */

/* Checks that all ranks evaluate the same, then gives each rank the answers in the logs of all. */
renyi_status ry_eval_compare_ranks(renyi_eval *e, renyi_error *err) RENYI_CHECK;
/* Exchanges what each rank ran. Rank 0 puts failures of the others into its log. */
renyi_status ry_eval_share(renyi_eval *e, renyi_error *err) RENYI_CHECK;

/* ---- evaluation_results.c ------------------------------------------------------------------ */

/* Fills top, n_top, margin, loss and state. Larger logits first; of equal ones the lower class. */
void ry_answer_read(ry_answer *out, const float *logits, const ry_choice *choice, uint32_t label);
/* Fills `right`. */
void ry_answer_judge(ry_answer *a, const renyi_dataset_image *image);

#endif
