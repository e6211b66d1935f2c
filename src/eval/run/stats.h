/* stats.h - mean and spread of numbers that come one by one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_STATS_H
#define RY_STATS_H

#include "renyi/eval.h"

typedef struct ry_moments {
    uint64_t n;
    double mean, m2; /* m2: squared distances to the mean, in sum */
} ry_moments;

/* Welford's update: no cancellation, whatever the mean. */
static inline void ry_moments_add(ry_moments *m, double x)
{
    const double before = x - m->mean;
    m->mean += before / (double)++m->n;
    m->m2 += before * (x - m->mean);
}

/* The mean with Student's 95 % interval; without numbers all NaN, with one an infinite interval. */
renyi_estimate ry_moments_estimate(const ry_moments *m);

/* 97.5 % point of Student's t distribution with `df` >= 1 degrees of freedom, to 2e-4. */
double ry_student_975(uint64_t df);

/* One photo more that both answered; then, after the last, what the counts mean. */
void ry_pair_add(renyi_eval_pair *out, uint32_t a_right, uint32_t b_right, int is_same);
void ry_pair_finish(renyi_eval_pair *out);

#endif
