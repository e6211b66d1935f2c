/* grad_test.h - what the tests of backward kernels share: finite differences in double, and the
 * levels to run at. SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAD_TEST_H
#define GRAD_TEST_H

#include "kernel_test.h"
#include "kernels/grad.h"

/* Loss as a function of one vector of numbers, written anew in double by each test. */
typedef double (*loss_fn)(const double *x, const void *problem);

/* dL/dx[i] by central differences; exact to some 1e-9 of the loss's size. */
static inline double slope_of(loss_fn loss, double *x, size_t i, const void *problem)
{
    const double h = 1e-5, was = x[i];
    x[i] = was + h;
    const double up = loss(x, problem);
    x[i] = was - h;
    const double down = loss(x, problem);
    x[i] = was;
    return (up - down) / (2.0 * h);
}

static inline double *doubles_of(const float *x, size_t n)
{
    double *d = malloc(n * sizeof *d);
    for (size_t i = 0; i < n; i++) d[i] = (double)x[i];
    return d;
}

static inline float *scratch_new(size_t floats)
{
    return aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
}

/* Calls check for every level that this machine has; says what it leaves out. `sixteen` are the
 * 16-lane bodies compiled in plain C, so that their logic is tested where AVX-512 is missing; NULL
 * = none. */
static inline void at_every_level(void (*check)(const ry_grad_kernels *k),
                                  const ry_grad_kernels *sixteen)
{
    if (sixteen) check(sixteen);
    for (int level = RENYI_CPU_SCALAR; level <= RENYI_CPU_AVX512; level++) {
        ry_grad_kernels k;
        if (level > (int)renyi_cpu_detect()) { /* even filling the table may need them */
            printf("SKIP: %s kernels: this machine lacks the instructions\n",
                   renyi_cpu_name((renyi_cpu)level));
            continue;
        }
        ry_grad_kernels_init(&k, (renyi_cpu)level);
        check(&k);
    }
}

#endif
