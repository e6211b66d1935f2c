/* rng.c -
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include <math.h>

/* Marsaglia's polar method; the second value is thrown away to keep the state one word. */
double ry_rng_normal(ry_rng *r)
{
    double u, v, s;
    do {
        u = 2.0 * ry_rng_uniform(r) - 1.0;
        v = 2.0 * ry_rng_uniform(r) - 1.0;
        s = u * u + v * v;
    } while (s >= 1.0 || s == 0.0);
    return u * sqrt(-2.0 * log(s) / s);
}

double ry_rng_truncated_normal(ry_rng *r)
{
    double x;
    do {
        x = ry_rng_normal(r);
    } while (fabs(x) > 2.0);
    return x;
}
