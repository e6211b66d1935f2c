/* activation_grad_template.h - activations and their derivatives for any vector width, with the
 * same erf and exp as in the forward products.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grad/grad.h"
#include "kernels/simd.h"

#include "kernels/linear/activation.h"

static RY_DECL_ACTIVATION(gelu)
{
    for (size_t i = 0; i < n; i += VL)
        vf_store_upto(y + i, vf_gelu(vf_load_upto(u + i, n - i)), n - i);
}

static RY_DECL_ACTIVATION(quick_gelu)
{
    for (size_t i = 0; i < n; i += VL)
        vf_store_upto(y + i, vf_quick_gelu(vf_load_upto(u + i, n - i)), n - i);
}

static RY_DECL_ACTIVATION(gelu_tanh)
{
    for (size_t i = 0; i < n; i += VL)
        vf_store_upto(y + i, vf_gelu_tanh(vf_load_upto(u + i, n - i)), n - i);
}

/* Phi(u) + u phi(u), the normal distribution and its density; y = gelu(u), the bits of vf_gelu */
RY_INLINE vf gelu_slope(vf u, vf *y)
{
    const vf half = vf_set1(0.5f), erf_u = vf_erf(vf_mul(u, vf_set1(0.70710678f)));
    const vf density = vf_exp(vf_mul(vf_mul(u, u), vf_set1(-0.5f)));
    *y = vf_fma(vf_mul(u, half), erf_u, vf_mul(u, half));
    return vf_fma(vf_mul(u, vf_set1(0.39894228f)), density, vf_fma(erf_u, half, half));
}

/* s + 1.702 u s (1 - s), s = sigmoid(1.702 u); y = quick_gelu(u), the bits of vf_quick_gelu */
RY_INLINE vf quick_gelu_slope(vf u, vf *y)
{
    const vf one = vf_set1(1.0f), t = vf_mul(u, vf_set1(1.702f));
    /* above 87 the exponential would overflow; s and the slope are 0 there anyway */
    const vf e = vf_exp(vf_min(vf_sub(vf_zero(), t), vf_set1(87.0f)));
    const vf s = vf_div(one, vf_add(one, e));
    *y = vf_div(u, vf_add(one, e));
    return vf_fma(vf_mul(t, s), vf_mul(e, s), s);
}

/* s + u (2 z)' s (1 - s), s = sigmoid(2 z) as in activation.h; y has the bits of vf_gelu_tanh */
RY_INLINE vf gelu_tanh_slope(vf u, vf *y)
{
    const vf one = vf_set1(1.0f), e = vf_gelu_tanh_exp(u), s = vf_div(one, vf_add(one, e));
    const vf dz = vf_fma(vf_mul(u, u), vf_set1(0.214064449f), vf_set1(1.59576912f));
    *y = vf_div(u, vf_add(one, e));
    return vf_fma(vf_mul(vf_mul(u, dz), s), vf_mul(e, s), s);
}

static RY_DECL_ACTIVATION_GRAD(gelu_grad)
{
    for (size_t i = 0; i < n; i += VL) {
        vf value;
        const vf slope = gelu_slope(vf_load_upto(u + i, n - i), &value);
        vf_store_upto(du + i, vf_mul(vf_load_upto(dy + i, n - i), slope), n - i);
        vf_store_upto(y + i, value, n - i);
    }
}

static RY_DECL_ACTIVATION_GRAD(quick_gelu_grad)
{
    for (size_t i = 0; i < n; i += VL) {
        vf value;
        const vf slope = quick_gelu_slope(vf_load_upto(u + i, n - i), &value);
        vf_store_upto(du + i, vf_mul(vf_load_upto(dy + i, n - i), slope), n - i);
        vf_store_upto(y + i, value, n - i);
    }
}

static RY_DECL_ACTIVATION_GRAD(gelu_tanh_grad)
{
    for (size_t i = 0; i < n; i += VL) {
        vf value;
        const vf slope = gelu_tanh_slope(vf_load_upto(u + i, n - i), &value);
        vf_store_upto(du + i, vf_mul(vf_load_upto(dy + i, n - i), slope), n - i);
        vf_store_upto(y + i, value, n - i);
    }
}

/* silu' = s + gate s (1 - s), s = sigmoid(gate); silu has the bits of vf_silu */
static RY_DECL_SWIGLU_GRAD(swiglu_grad)
{
    const vf one = vf_set1(1.0f);
    for (size_t i = 0; i < n; i += VL) {
        const size_t left = n - i;
        const vf gate = vf_load_upto(u + i, left), up = vf_load_upto(u + n + i, left);
        const vf e = vf_exp(vf_min(vf_sub(vf_zero(), gate), vf_set1(87.0f)));
        const vf s = vf_div(one, vf_add(one, e)), silu = vf_div(gate, vf_add(one, e));
        const vf slope = vf_fma(vf_mul(gate, s), vf_mul(e, s), s), d = vf_load_upto(dy + i, left);
        vf_store_upto(du + i, vf_mul(vf_mul(d, up), slope), left);
        vf_store_upto(du + n + i, vf_mul(d, silu), left);
        vf_store_upto(y + i, vf_mul(silu, up), left);
    }
}
