/* answer.h - what logits say about one photo, and whether it is right.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_EVAL_ANSWER_H
#define RY_EVAL_ANSWER_H

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
    uint32_t top[RY_TOP];
    uint8_t n_top, state;
    uint8_t is_cold; /* from the first batch of a run, which pays for fresh memory */
} ry_answer;

/* Classes that may be predicted: all `n`, or the `n_valid` listed. */
typedef struct ry_choice {
    uint32_t n, n_valid;
    const uint32_t *valid; /* [n_valid] ascending; NULL = all */
} ry_choice;

/* Larger logit first, equal ones to the lower class. ms is left as it is. */
void ry_answer_read(ry_answer *out, const float *logits, const ry_choice *choice, uint32_t label);

/* Is one of the first k classes of the answer right for the photo? */
int ry_answer_is_right(const ry_answer *a, const renyi_dataset_image *photo, uint32_t k);

#endif
