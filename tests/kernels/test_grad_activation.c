/* test_grad_activation.c - activations against double, and their derivatives against finite
 * differences in double: the whole range of arguments, all tail sizes and alignments, in place.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/grad_test.h"

#define RY_SIMD_EMU16
#include "kernels/grad/activation_grad_template.h"

static const ry_grad_kernels sixteen = {.gelu = gelu,
                                        .gelu_grad = gelu_grad,
                                        .quick_gelu = quick_gelu,
                                        .quick_gelu_grad = quick_gelu_grad,
                                        .gelu_tanh = gelu_tanh,
                                        .gelu_tanh_grad = gelu_tanh_grad,
                                        .swiglu_grad = swiglu_grad};

static double gelu_double(double u) { return 0.5 * u * (1.0 + erf(u / sqrt(2.0))); }
static double quick_gelu_double(double u) { return u / (1.0 + exp(-1.702 * u)); }

static double gelu_tanh_double(double u)
{
    return 0.5 * u * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (u + 0.044715 * u * u * u)));
}

static double gelu_loss(const double *u, const void *unused)
{
    (void)unused;
    return gelu_double(*u);
}

static double quick_gelu_loss(const double *u, const void *unused)
{
    (void)unused;
    return quick_gelu_double(*u);
}

static double gelu_tanh_loss(const double *u, const void *unused)
{
    (void)unused;
    return gelu_tanh_double(*u);
}

typedef struct pair { /* an activation, its derivative, and the reference in double */
    RY_DECL_ACTIVATION((*value));
    RY_DECL_ACTIVATION_GRAD((*slope));
    loss_fn want;
} pair;

static void check_slope(const pair *p, float u, float dy, float got)
{
    double x = (double)u;
    const double want = (double)dy * slope_of(p->want, &x, 0, NULL);
    if (!(fabs((double)got - want) <= 2e-6))
        fail_msg("slope at %g: %.9g, want %.9g", (double)u, (double)got, want);
}

static void check_range(const pair *p)
{
    enum { N = 4001 };
    static float u[N], y[N], again[N], dy[N], du[N];
    for (int i = 0; i < N; i++) u[i] = (float)(i - N / 2) * 0.01f, dy[i] = unit();
    p->value(y, u, N);
    p->slope(du, again, dy, u, N);
    assert_memory_equal(again, y, sizeof y);
    for (int i = 0; i < N; i++) {
        const double x = (double)u[i], want = p->want(&x, NULL);
        assert_true(fabs((double)y[i] - want) <= 1e-6 * (1.0 + fabs(want)));
        check_slope(p, u[i], dy[i], du[i]);
    }
}

/* For large |u| the function is 0 or u, and its slope 0 or 1. */
static void check_far(const pair *p)
{
    const float u[4] = {-1e4f, 1e4f, -60.0f, 60.0f}, dy[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    float y[4], du[4];
    p->slope(du, y, dy, u, 4);
    for (int i = 0; i < 4; i++) {
        assert_true(fabsf(y[i] - (u[i] > 0.0f ? u[i] : 0.0f)) <= 1e-6f);
        assert_true(fabsf(du[i] - (u[i] > 0.0f ? 1.0f : 0.0f)) <= 1e-6f);
    }
}

static void check_tails(const pair *p)
{
    for (size_t n = 0; n <= 50; n++) {
        guarded u = guard_new(n, n % 16), y = guard_new(n, n % 16), dy = guard_new(n, n % 16),
                du = guard_new(n, n % 16), again = guard_new(n, n % 16);
        fill_random(u.data, n);
        fill_random(dy.data, n);
        p->value(y.data, u.data, n);
        p->slope(du.data, again.data, dy.data, u.data, n);
        assert_true(guard_intact(&y) && guard_intact(&again) && guard_intact(&du));
        for (size_t i = 0; i < n; i++) check_slope(p, u.data[i], dy.data[i], du.data[i]);
        memcpy(again.data, dy.data, n * sizeof(float));
        p->slope(du.data, again.data, again.data, u.data, n); /* y in place of dy */
        p->slope(dy.data, u.data, dy.data, u.data, n);        /* in place: the same bits */
        if (n) assert_memory_equal(dy.data, du.data, n * sizeof(float));
        if (n) assert_memory_equal(u.data, y.data, n * sizeof(float));
        if (n) assert_memory_equal(again.data, y.data, n * sizeof(float));
        assert_true(guard_intact(&u) && guard_intact(&dy));
        guard_free(&u), guard_free(&y), guard_free(&dy), guard_free(&du), guard_free(&again);
    }
}

/* ---- the gate of a SwiGLU MLP ---------------------------------------------------------------- */

/* u: [gate, up] */
static double swiglu_loss(const double *u, const void *unused)
{
    (void)unused;
    return u[0] / (1.0 + exp(-u[0])) * u[1];
}

static void check_swiglu_at(const float *u, const float *dy, const float *du, const float *y,
                            size_t n, size_t i)
{
    double at[2] = {(double)u[i], (double)u[n + i]};
    const double value = swiglu_loss(at, NULL);
    const double want[2] = {(double)dy[i] * slope_of(swiglu_loss, at, 0, NULL),
                            (double)dy[i] * slope_of(swiglu_loss, at, 1, NULL)};
    assert_true(fabs((double)y[i] - value) <= 1e-6 * (1.0 + fabs(value)));
    assert_true(fabs((double)du[i] - want[0]) <= 3e-6 * (1.0 + fabs(at[1])));
    assert_true(fabs((double)du[n + i] - want[1]) <= 2e-6 * (1.0 + fabs(at[0])));
}

static void check_swiglu(const ry_grad_kernels *k)
{
    for (size_t n = 0; n <= 50; n++) {
        guarded u = guard_new(2 * n, n % 16), dy = guard_new(n, n % 16), y = guard_new(n, n % 16),
                du = guard_new(2 * n, n % 16);
        fill_random(u.data, 2 * n);
        fill_random(dy.data, n);
        for (size_t i = 0; i < n; i++) u.data[i] *= n % 3 ? 1.0f : 20.0f; /* the far ends too */
        k->swiglu_grad(du.data, y.data, dy.data, u.data, n);
        for (size_t i = 0; i < n; i++) check_swiglu_at(u.data, dy.data, du.data, y.data, n, i);
        assert_true(guard_intact(&y) && guard_intact(&du));
        k->swiglu_grad(du.data, dy.data, dy.data, u.data, n); /* y in place of dy */
        if (n) assert_memory_equal(dy.data, y.data, n * sizeof(float));
        assert_true(guard_intact(&u) && guard_intact(&dy));
        guard_free(&u), guard_free(&y), guard_free(&dy), guard_free(&du);
    }
}

static void check_all(const ry_grad_kernels *k)
{
    check_swiglu(k);
    const pair pairs[] = {{k->gelu, k->gelu_grad, gelu_loss},
                          {k->quick_gelu, k->quick_gelu_grad, quick_gelu_loss},
                          {k->gelu_tanh, k->gelu_tanh_grad, gelu_tanh_loss}};
    for (int i = 0; i < 3; i++) {
        check_range(&pairs[i]);
        check_far(&pairs[i]);
        check_tails(&pairs[i]);
    }
}

static void test_differences(void **state)
{
    (void)state;
    at_every_grad_level(check_all, &sixteen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
