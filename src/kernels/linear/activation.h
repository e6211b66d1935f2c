/* activation.h - the activation functions: exact in plain C, and as vector functions for files that
 * include simd.h before.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ACTIVATION_H
#define RY_ACTIVATION_H

#include <math.h>

static inline float ry_gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
static inline float ry_quick_gelu(float x) { return x / (1.0f + expf(-1.702f * x)); }
/* GELU with tanh in place of erf: x/2 (1 + tanh(z)) is x sigmoid(2 z), z = sqrt(2/pi) (x + 0.044715
 * x^3). This is -2 z. */
static inline float ry_gelu_tanh_exponent(float x)
{
    return x * (-1.59576912f - 0.0713548163f * x * x);
}
static inline float ry_gelu_tanh(float x) { return x / (1.0f + expf(ry_gelu_tanh_exponent(x))); }
static inline float ry_silu(float x) { return x / (1.0f + expf(-x)); }

#ifdef RY_SIMD_H
/* erf on [-3.92, 3.92] as x P(x^2) / Q(x^2), 1 outside: absolute error below 4e-7 in floats. P and
 * Q were fitted by reweighted least squares to the relative error (2e-8 before rounding). */
RY_INLINE vf vf_erf(vf x)
{
    x = vf_min(vf_max(x, vf_set1(-3.92f)), vf_set1(3.92f));
    const vf t = vf_mul(x, x);
    vf p = vf_set1(2.05009067e-06f);
    p = vf_fma(p, t, vf_set1(0.000284881489f));
    p = vf_fma(p, t, vf_set1(0.0037655763f));
    p = vf_fma(p, t, vf_set1(0.0527486004f));
    p = vf_fma(p, t, vf_set1(0.190405567f));
    p = vf_fma(p, t, vf_set1(1.12837915f));
    vf q = vf_set1(3.80916839e-05f);
    q = vf_fma(q, t, vf_set1(0.00116252497f));
    q = vf_fma(q, t, vf_set1(0.0149691368f));
    q = vf_fma(q, t, vf_set1(0.114108736f));
    q = vf_fma(q, t, vf_set1(0.502075282f));
    q = vf_fma(q, t, vf_set1(1.0f));
    return vf_div(vf_mul(x, p), q);
}

RY_INLINE vf vf_gelu(vf x)
{
    const vf half = vf_mul(x, vf_set1(0.5f));
    return vf_fma(half, vf_erf(vf_mul(x, vf_set1(0.70710678f))), half);
}

RY_INLINE vf vf_quick_gelu(vf x)
{
    /* below -51 the exponential would overflow; the result is 0 there anyway */
    const vf e = vf_exp(vf_min(vf_mul(x, vf_set1(-1.702f)), vf_set1(87.0f)));
    return vf_div(x, vf_add(vf_set1(1.0f), e));
}

RY_INLINE vf vf_gelu_tanh_exp(vf x) /* exp(-2 z), see above */
{
    const vf slope = vf_fma(vf_mul(x, x), vf_set1(-0.0713548163f), vf_set1(-1.59576912f));
    return vf_exp(vf_min(vf_mul(x, slope), vf_set1(87.0f))); /* as above */
}

RY_INLINE vf vf_gelu_tanh(vf x) { return vf_div(x, vf_add(vf_set1(1.0f), vf_gelu_tanh_exp(x))); }

RY_INLINE vf vf_silu(vf x)
{
    const vf e = vf_exp(vf_min(vf_sub(vf_zero(), x), vf_set1(87.0f))); /* as above */
    return vf_div(x, vf_add(vf_set1(1.0f), e));
}
#endif

#endif
