/* answer.h - what logits say about one photo, and whether it is right.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ANSWER_H
#define RY_ANSWER_H

#include "renyi/eval.h"

enum { RY_TOP = 5 };

typedef enum ry_answer_state {
    RY_ANSWER_NONE = 0,
    RY_ANSWER_GIVEN = 1,
    RY_ANSWER_NAN = 2 /* the logits were no numbers */
} ry_answer_state;

typedef struct ry_answer {
    double loss; /* NaN without a label */
    float margin, ms;
    float ms_rest; /* what the photo took beside the model, all policies together */
    uint32_t top[RY_TOP];
    uint8_t n_top, state;
    uint8_t right;     /* place of the first right class among the top, from 1; 0 = none is */
    uint8_t is_cold;   /* from the first batch of a run, which pays for fresh memory */
    uint8_t is_fresh;  /* of this run and rank */
    uint8_t is_logged; /* stands in the log of rank 0 */
} ry_answer;

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

#endif
