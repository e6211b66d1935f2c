/* stats.h - running means with confidence intervals, and counts of two answers side by side.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_STATS_H
#define RY_STATS_H

#include "renyi/eval.h"

/* Mean and variance of numbers that are added one by one. */
typedef struct ry_moments {
    uint64_t n;
    double mean, m2; /* m2: sum of squared distances to the mean */
} ry_moments;

/* Welford's update, which has no cancellation. */
static inline void ry_moments_add(ry_moments *m, double x)
{
    const double before = x - m->mean;
    m->mean += before / (double)++m->n;
    m->m2 += before * (x - m->mean);
}

/* The mean with Student's 95 % interval. Without numbers all NaN; with one the interval is
 * infinite. */
renyi_estimate ry_moments_estimate(const ry_moments *m);

/* 97.5 % point of Student's t distribution with `df` >= 1 degrees of freedom, to 2e-4. */
double ry_student_975(uint64_t df);

/* Counts an image that both policies answered. */
void ry_pair_add(renyi_eval_pair *out, uint32_t a_right, uint32_t b_right, int is_same);
/* After the last image: fills difference, p_value and is_noise. */
void ry_pair_finish(renyi_eval_pair *out);

#endif
