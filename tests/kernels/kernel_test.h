/* kernel_test.h - what the kernel tests share: seeded numbers, guarded buffers, the levels of this
 * machine. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_TEST_H
#define KERNEL_TEST_H

#include "base/rng.h"
#include "renyi/renyi.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static ry_rng test_rng = {42};

static inline float unit(void) { return (float)(2.0 * ry_rng_uniform(&test_rng) - 1.0); }

static inline void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = unit();
}

/* A buffer with room to be shifted off its alignment and NaN all round: reading outside poisons the
 * result, writing outside is seen by guard_intact. */
enum { GUARD = 64 };
typedef struct guarded {
    float *base, *data;
    size_t n, shift;
} guarded;

static inline guarded guard_new(size_t n, size_t shift)
{
    guarded g = {malloc((n + 2 * GUARD + 16) * sizeof(float)), NULL, n, shift};
    for (size_t i = 0; i < n + 2 * GUARD + 16; i++) g.base[i] = NAN;
    g.data = g.base + GUARD + shift;
    return g;
}

static inline int guard_intact(const guarded *g)
{
    for (size_t i = 0; i < GUARD + g->shift; i++)
        if (!isnan(g->base[i])) return 0;
    for (size_t i = GUARD + g->shift + g->n; i < g->n + 2 * GUARD + 16; i++)
        if (!isnan(g->base[i])) return 0;
    return 1;
}

static inline void guard_free(guarded *g) { free(g->base); }

/* Calls run(level) for every level above scalar that this machine has; says what it leaves out. */
static inline void for_levels(void (*run)(renyi_cpu level))
{
    for (int level = RENYI_CPU_AVX2; level <= RENYI_CPU_AVX512; level++) {
        if (level <= (int)renyi_cpu_detect())
            run((renyi_cpu)level);
        else
            printf("SKIP: %s kernels: this machine lacks the instructions\n",
                   renyi_cpu_name((renyi_cpu)level));
    }
}

/* Bound of a sum of n products whatever the order of the additions: gamma(n) * sum |a b|. */
static inline double dot_bound(size_t n, double magnitude)
{
    const double u = 0x1p-24, gamma = (double)(n + 2) * u / (1.0 - (double)(n + 2) * u);
    return gamma * magnitude;
}

#endif
