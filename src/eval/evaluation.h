/* evaluation.h - the inside of renyi_eval. SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_EVAL_EVALUATION_H
#define RY_EVAL_EVALUATION_H

#include "eval/answer.h"
#include "eval/photo_file.h"
#include "eval/sample_log.h"
#include "eval/text.h"

typedef struct ry_eval_policy {
    renyi_session *session;
    double gmacs;
    double seconds; /* in the model, this run */
    double macs;    /* in the model, of the n_run photos of this run */
    uint64_t n_run;
} ry_eval_policy;

struct renyi_eval {
    renyi_allocator al;
    renyi_eval_options o; /* defaults filled in; its strings are not used after renyi_eval_new */
    const renyi_model *model;  /* borrowed */
    const renyi_dataset *data; /* borrowed */
    size_t n_images;
    ry_choice choice;
    ry_photo_spec spec;
    int normalise;            /* other mean or std than the session's */
    ry_eval_policy *policies; /* [o.n_policies] */
    ry_answer *answers;       /* [o.n_policies, n_images] */
    float *logits;            /* [batch, n_classes] */
    ry_pool pool;             /* texts of failures */
    renyi_eval_failure *failures;
    size_t n_failures, failure_capacity;
    size_t n_unreadable; /* photos; a failure may also be an answer that is no number */
    ry_sample_log log;
    double started; /* clock at the start of the run */
    renyi_eval_times times;
};

static inline ry_answer *ry_eval_answer(const renyi_eval *e, uint32_t policy, size_t i)
{
    return &e->answers[policy * e->n_images + i];
}

/* One photo more that both answered; then, after the last, what the counts mean. */
void ry_pair_add(renyi_eval_pair *out, uint32_t a_right, uint32_t b_right, int is_same);
void ry_pair_finish(renyi_eval_pair *out);

#endif
