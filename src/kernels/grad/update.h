/* update.h - the arithmetic of an optimizer update on flat blocks of floats. One plain C template
 * is compiled for every CPU level; all levels give the same bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_UPDATE_H
#define RY_UPDATE_H

#include "renyi/renyi.h"

#include <stddef.h>

/* g = grad_scale grad;  p *= keep;  m += (1 - beta1)(g - m);  v = beta2 v + (1 - beta2) g g;
 * p -= rate m / (sqrt(v) / correction + eps). */
typedef struct ry_adamw {
    float grad_scale;
    float keep;       /* 1 - lr * weight decay */
    float rate;       /* lr / (1 - beta1^t) */
    float correction; /* sqrt(1 - beta2^t) */
    float rest1;      /* 1 - beta1 */
    float beta2, rest2;
    float eps;
} ry_adamw;

#define RY_DECL_ADAMW(fn) \
    void fn(const ry_adamw *a, float *p, float *m, float *v, const float *grad, size_t n)

/* mean += rest (x - mean). Unlike decay * mean + rest * x it does not drift while x is constant. */
#define RY_DECL_AVERAGE(fn) void fn(float *mean, const float *x, float rest, size_t n)

/* Sum of squares in double, always in the same order. */
#define RY_DECL_SQUARES(fn) double fn(const float *x, size_t n)

typedef struct ry_update_kernels {
    RY_DECL_ADAMW((*adamw));
    RY_DECL_AVERAGE((*average));
    RY_DECL_SQUARES((*squares));
} ry_update_kernels;

void ry_update_kernels_init(ry_update_kernels *k, renyi_cpu level);

/* One function per level. */
void ry_update_init_scalar(ry_update_kernels *k);
void ry_update_init_vec8(ry_update_kernels *k);
void ry_update_init_avx512(ry_update_kernels *k);

#endif
