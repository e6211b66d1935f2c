/* moments.c - see moments.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/masks/moments.h"

#include <math.h>

double ry_student_975(uint64_t df)
{
    static const double few[] = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582,
                                 2.446912,  2.364624, 2.306004, 2.262157};
    if (df <= sizeof few / sizeof *few) return few[df - 1];
    /* Cornish and Fisher's expansion about the normal distribution (Abramowitz and Stegun 26.7.5)
     */
    const double z = 1.959963984540054, v = (double)df, z2 = z * z;
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
