/* answer.c - see answer.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/run/answer.h"

#include <math.h>

static uint32_t class_at(const ry_choice *c, uint32_t i) { return c->valid ? c->valid[i] : i; }

static void insert(ry_answer *a, const float *logits, uint32_t class)
{
    uint32_t at = a->n_top;
    while (at > 0 && logits[class] > logits[a->top[at - 1]]) at--;
    if (at == RY_TOP) return;
    if (a->n_top < RY_TOP) a->n_top++;
    for (uint32_t i = a->n_top - 1u; i > at; i--) a->top[i] = a->top[i - 1];
    a->top[at] = class;
}

void ry_answer_read(ry_answer *out, const float *logits, const ry_choice *choice, uint32_t label)
{
    const uint32_t n = choice->valid ? choice->n_valid : choice->n;
    int has_label = 0, is_number = n > 0;
    double sum = 0.0;
    out->n_top = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t class = class_at(choice, i);
        is_number &= !isnan(logits[class]);
        has_label |= class == label;
        insert(out, logits, class);
    }
    is_number = is_number && isfinite(logits[out->top[0]]);
    out->state = is_number ? RY_ANSWER_GIVEN : RY_ANSWER_NAN;
    if (!is_number) return;
    const double best = logits[out->top[0]];
    for (uint32_t i = 0; i < n; i++) sum += exp(logits[class_at(choice, i)] - best);
    out->loss = has_label ? log(sum) + best - logits[label] : NAN;
    out->margin = out->n_top > 1 ? logits[out->top[0]] - logits[out->top[1]] : NAN;
}

void ry_answer_judge(ry_answer *a, const renyi_dataset_image *photo)
{
    a->right = 0;
    for (uint8_t i = 0; i < a->n_top && !a->right; i++)
        for (uint32_t j = 0; j < photo->n_right; j++)
            if (a->top[i] == photo->right[j]) a->right = (uint8_t)(i + 1);
}
