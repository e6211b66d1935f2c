/* rng.h - small seeded generators: the same seed gives the same numbers on every machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RNG_H
#define RY_RNG_H

#include <stdint.h>

typedef struct ry_rng {
    uint64_t state;
} ry_rng;

#define RY_RNG_STEP 0x9e3779b97f4a7c15u

static inline ry_rng ry_rng_new(uint64_t seed) { return (ry_rng){seed}; }
/* Whose next number is number k, from 0, of those that this seed gives. */
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

double ry_rng_normal(ry_rng *r);           /* mean 0, deviation 1 */
double ry_rng_truncated_normal(ry_rng *r); /* the same, drawn again beyond two deviations */

#endif
