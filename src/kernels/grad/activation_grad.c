/* activation_grad.c - activations and their derivatives in plain C.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grad/grad.h"
#include "kernels/linear/activation.h"

/* Phi(u) + u phi(u): the normal distribution and its density */
static float gelu_slope(float u)
{
    return 0.5f * (1.0f + erff(u * 0.70710678f)) + u * 0.39894228f * expf(-0.5f * u * u);
}

static float quick_gelu_slope(float u)
{
    const float s = 1.0f / (1.0f + expf(-1.702f * u));
    return s + 1.702f * u * s * (1.0f - s);
}

static RY_DECL_ACTIVATION(gelu)
{
    for (size_t i = 0; i < n; i++) y[i] = ry_gelu(u[i]);
}

static RY_DECL_ACTIVATION_GRAD(gelu_grad)
{
    for (size_t i = 0; i < n; i++) {
        du[i] = dy[i] * gelu_slope(u[i]);
        y[i] = ry_gelu(u[i]);
    }
}

static RY_DECL_ACTIVATION(quick_gelu)
{
    for (size_t i = 0; i < n; i++) y[i] = ry_quick_gelu(u[i]);
}

static RY_DECL_ACTIVATION_GRAD(quick_gelu_grad)
{
    for (size_t i = 0; i < n; i++) {
        du[i] = dy[i] * quick_gelu_slope(u[i]);
        y[i] = ry_quick_gelu(u[i]);
    }
}

void ry_activation_grad_init(ry_grad_kernels *k)
{
    k->gelu = gelu;
    k->gelu_grad = gelu_grad;
    k->quick_gelu = quick_gelu;
    k->quick_gelu_grad = quick_gelu_grad;
}
