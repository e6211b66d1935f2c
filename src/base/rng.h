/* rng.h - seeded random numbers: the same seed gives the same numbers on every machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RNG_H
#define RY_RNG_H

#include <math.h>
#include <stdint.h>

typedef struct ry_rng {
    uint64_t state;
} ry_rng;

#define RY_RNG_STEP 0x9e3779b97f4a7c15u

static inline ry_rng ry_rng_new(uint64_t seed) { return (ry_rng){seed}; }
/* The generator of this seed after k numbers have been drawn. */
static inline ry_rng ry_rng_at(uint64_t seed, uint64_t k)
{
    return (ry_rng){seed + k * RY_RNG_STEP};
}

/* SplitMix64 (Steele, Lea, Flood 2014): passes BigCrush, one word of state. */
static inline uint64_t ry_rng_next(ry_rng *r)
{
    uint64_t z = (r->state += RY_RNG_STEP);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [0, 1) with 53 bits. */
static inline double ry_rng_uniform(ry_rng *r) { return (double)(ry_rng_next(r) >> 11) * 0x1p-53; }

/* Mean 0, standard deviation 1. Marsaglia's polar method; its second value is dropped, so that the
 * state stays one word. */
static inline double ry_rng_normal(ry_rng *r)
{
    double u, v, s;
    do {
        u = 2.0 * ry_rng_uniform(r) - 1.0;
        v = 2.0 * ry_rng_uniform(r) - 1.0;
        s = u * u + v * v;
    } while (s >= 1.0 || s == 0.0);
    return u * sqrt(-2.0 * log(s) / s);
}

/* The same, drawn again beyond two standard deviations. */
static inline double ry_rng_truncated_normal(ry_rng *r)
{
    double x;
    do {
        x = ry_rng_normal(r);
    } while (fabs(x) > 2.0);
    return x;
}

#endif
