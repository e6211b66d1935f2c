/* stats.c - confidence intervals of accuracies and means, and tests whether two accuracies differ.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/run/stats.h"
#include "renyi/eval.h"

#include <math.h>

#define Z95 1.959963984540054 /* 97.5 % point of the normal distribution */
#define PI 3.14159265358979323846

renyi_interval renyi_stats_interval(uint64_t k, uint64_t n)
{
    if (n == 0) return (renyi_interval){0.0, 1.0};
    const double N = (double)n, p = (double)k / N, z2 = Z95 * Z95;
    const double centre = (p + z2 / (2 * N)) / (1 + z2 / N);
    const double half = Z95 / (1 + z2 / N) * sqrt(p * (1 - p) / N + z2 / (4 * N * N));
    /* At 0 and 1 the formula is exact, but its rounding is not. */
    return (renyi_interval){k == 0 ? 0.0 : fmax(0.0, centre - half),
                            k == n ? 1.0 : fmin(1.0, centre + half)};
}

renyi_interval renyi_stats_difference(uint64_t only_a, uint64_t only_b, uint64_t n)
{
    if (n == 0) return (renyi_interval){-1.0, 1.0};
    const double a = (double)only_a, b = (double)only_b, N = (double)n + 2;
    const double centre = (a - b) / N;
    const double half = Z95 * sqrt((a + b + 1) / N - centre * centre) / sqrt(N);
    return (renyi_interval){fmax(-1.0, centre - half), fmin(1.0, centre + half)};
}

/* log(n!) minus Stirling's sqrt(2 pi n) (n/e)^n. */
static double stirling_error(double n)
{
    if (n < 16) {
        double factorial = 1.0;
        for (double i = 2; i <= n; i++) factorial *= i;
        return log(factorial) - (n > 0 ? 0.5 * log(2 * PI * n) + n * log(n) - n : 0.0);
    }
    const double n2 = n * n; /* the series is good to 1e-16 from 16 on */
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - (1.0 / 1680 - 1.0 / 1188 / n2) / n2) / n2) / n2) /
           n;
}

/* x log(x / m) + m - x, without cancellation near x = m. */
static double deviance(double x, double m)
{
    const double d = (x - m) / (x + m);
    if (fabs(d) >= 0.1) return x * log(x / m) + m - x;
    double sum = (x - m) * d, power = 2 * x * d;
    for (int j = 3; j < 60; j += 2) { /* log(x / m) = 2 atanh d as a series */
        power *= d * d;
        const double next = sum + power / j;
        if (next == sum) break;
        sum = next;
    }
    return sum;
}

/* C(n, k) / 2^n by Loader's formula (2000), which is accurate for any n and k. */
static double half_binomial(double n, double k)
{
    if (k == 0) return exp(-n * log(2.0));
    const double m = n / 2;
    return exp(stirling_error(n) - stirling_error(k) - stirling_error(n - k) - deviance(k, m) -
               deviance(n - k, m)) *
           sqrt(n / (2 * PI * k * (n - k)));
}

double renyi_stats_mcnemar(uint64_t b, uint64_t c)
{
    if (b == c) return 1.0;
    const double n = (double)b + (double)c;
    double k = (double)(b < c ? b : c), term = half_binomial(n, k), tail = 0.0;
    /* The lower tail from its largest term down: each term is k / (n - k + 1) times the one before.
     */
    for (; term > tail * 0x1p-60; k--) {
        tail += term;
        if (k == 0) break;
        term *= k / (n - k + 1);
    }
    return fmin(1.0, 2 * tail);
}

/* ---- means --------------------------------------------------------------------------------- */

double ry_student_975(uint64_t df)
{
    static const double few[] = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582,
                                 2.446912,  2.364624, 2.306004, 2.262157};
    if (df <= sizeof few / sizeof *few) return few[df - 1];
    /* expansion of Cornish and Fisher (Abramowitz and Stegun 26.7.5) */
    const double z = Z95, v = (double)df, z2 = z * z;
    return z + z * (z2 + 1) / (4 * v) + z * ((5 * z2 + 16) * z2 + 3) / (96 * v * v) +
           z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * v * v * v);
}

renyi_estimate ry_moments_estimate(const ry_moments *m)
{
    if (!m->n) return (renyi_estimate){NAN, {NAN, NAN}};
    const double n = (double)m->n;
    const double half = m->n > 1 ? ry_student_975(m->n - 1) * sqrt(m->m2 / (n - 1) / n) : INFINITY;
    return (renyi_estimate){m->mean, {m->mean - half, m->mean + half}};
}

/* ---- pairs --------------------------------------------------------------------------------- */

void ry_pair_add(renyi_eval_pair *out, uint32_t a_right, uint32_t b_right, int is_same)
{
    out->both += a_right && b_right;
    out->only_a += a_right && !b_right;
    out->only_b += !a_right && b_right;
    out->none += !a_right && !b_right;
    out->same += is_same != 0;
}

void ry_pair_finish(renyi_eval_pair *out)
{
    const uint64_t n = out->both + out->only_a + out->only_b + out->none;
    out->difference = n ? 100.0 * ((double)out->only_b - (double)out->only_a) / (double)n : NAN;
    out->p_value = renyi_stats_mcnemar(out->only_a, out->only_b);
    out->is_noise = !(out->p_value < 0.05);
}
