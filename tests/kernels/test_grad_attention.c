/* test_grad_attention.c - the backward pass of attention. Small problems are checked against finite
 * differences of a forward pass in double; these also prove the derivative in double that large
 * problems are checked against. All tails of head sizes and token counts, a prefix of rows, key
 * biases, gradients of the head-mean matrix; nothing is read or written outside.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/grad_test.h"

#define RY_SIMD_EMU16
#include "kernels/grad/attention_grad_template.h"

static const ry_grad_kernels sixteen = {.attention_grad = attention_grad,
                                        .attention_mean = attention_mean};

typedef struct problem {
    size_t N, H, d, n_rows;
    size_t qkv_row, dqkv_row, dout_row;
    guarded qkv, dqkv, dout;
    float *key_bias, *dclass_row, *dmean; /* or NULL */
    float factor;                         /* of the logits; 0 = 1 */
} problem;

enum { BIAS = 1, CLASS = 2, MEAN = 4 };

static float *random_if(int wanted, size_t n)
{
    float *x = wanted ? malloc(n * sizeof(float)) : NULL;
    if (x) fill_random(x, n);
    return x;
}

static problem problem_new(size_t N, size_t H, size_t d, size_t n_rows, int with)
{
    const size_t C = H * d;
    problem p = {N, H, d, n_rows, 3 * C + 5, 3 * C + 2, C + 3};
    p.qkv = guard_new(N * p.qkv_row, N % 16);
    p.dqkv = guard_new(N * p.dqkv_row, d % 16);
    p.dout = guard_new(n_rows * p.dout_row, (N + d) % 16);
    for (size_t i = 0; i < N; i++) fill_random(p.qkv.data + i * p.qkv_row, 3 * C);
    for (size_t i = 0; i < N * p.qkv_row; i++) p.qkv.data[i] *= 2.0f;
    for (size_t i = 0; i < n_rows; i++) fill_random(p.dout.data + i * p.dout_row, C);
    p.key_bias = random_if(with & BIAS, N);
    p.factor = with & BIAS ? 0.75f : 0.0f;
    p.dclass_row = random_if(with & CLASS, N);
    p.dmean = random_if(with & MEAN, n_rows * N);
    return p;
}

static void problem_free(problem *p)
{
    guard_free(&p->qkv), guard_free(&p->dqkv), guard_free(&p->dout);
    free(p->key_bias), free(p->dclass_row), free(p->dmean);
}

static ry_attention_grad grad_of(const problem *p)
{
    return (ry_attention_grad){.n_tokens = p->N,
                               .n_heads = p->H,
                               .head = p->d,
                               .qkv = p->qkv.data,
                               .qkv_row = p->qkv_row,
                               .key_bias = p->key_bias,
                               .logit_factor = p->factor,
                               .n_rows = p->n_rows,
                               .dout = p->dout.data,
                               .dout_row = p->dout_row,
                               .dclass_row = p->dclass_row,
                               .dmean = p->dmean,
                               .dqkv = p->dqkv.data,
                               .dqkv_row = p->dqkv_row};
}

static void solve(const problem *p, const ry_grad_kernels *k)
{
    const ry_attention_grad g = grad_of(p);
    float *scratch = scratch_new(ry_attention_grad_scratch(p->N, p->d));
    for (size_t h = p->H; h-- > 0;) k->attention_grad(&g, h, scratch); /* in any order */
    assert_true(guard_intact(&p->dqkv));
    for (size_t i = 0; i < p->N; i++)
        for (size_t c = 3 * p->H * p->d; c < p->dqkv_row; c++)
            assert_true(isnan(p->dqkv.data[i * p->dqkv_row + c]));
    free(scratch);
}

static double scale_of(const problem *p)
{
    return (p->factor != 0.0f ? (double)p->factor : 1.0) / sqrt((double)p->d);
}

/* a[N] of query i in head h; qkv: [N, 3*H*d] without gaps */
static void exact_row(const problem *p, const double *qkv, size_t h, size_t i, double *a)
{
    const size_t C = p->H * p->d;
    const double scale = scale_of(p);
    double top = -INFINITY, sum = 0.0;
    for (size_t j = 0; j < p->N; j++) {
        a[j] = p->key_bias ? (double)p->key_bias[j] : 0.0;
        for (size_t c = 0; c < p->d; c++)
            a[j] += scale * qkv[i * 3 * C + h * p->d + c] * qkv[j * 3 * C + C + h * p->d + c];
        top = fmax(top, a[j]);
    }
    for (size_t j = 0; j < p->N; j++) sum += a[j] = exp(a[j] - top);
    for (size_t j = 0; j < p->N; j++) a[j] /= sum;
}

/* The direct gradient of a probability (dclass_row, dmean). */
static double direct_gradient_of(const problem *p, size_t i, size_t j)
{
    double w = p->dmean ? (double)p->dmean[i * p->N + j] : 0.0;
    if (p->dclass_row && i == 0) w += (double)p->dclass_row[j];
    return w / (double)p->H;
}

/* sum of dout * out, of dclass_row * class row, of dmean * head mean */
static double loss(const double *qkv, const void *problem_)
{
    const problem *p = problem_;
    const size_t C = p->H * p->d;
    double *a = malloc(p->N * sizeof *a), sum = 0.0;
    for (size_t h = 0; h < p->H; h++)
        for (size_t i = 0; i < p->n_rows; i++) {
            exact_row(p, qkv, h, i, a);
            for (size_t j = 0; j < p->N; j++) {
                double value = direct_gradient_of(p, i, j);
                for (size_t c = 0; c < p->d; c++)
                    value += (double)p->dout.data[i * p->dout_row + h * p->d + c] *
                             qkv[j * 3 * C + 2 * C + h * p->d + c];
                sum += a[j] * value;
            }
        }
    free(a);
    return sum;
}

/* The derivative in double, [N, 3*H*d]. */
static double *reference(const problem *p, const double *qkv)
{
    const size_t C = p->H * p->d, N = p->N, d = p->d;
    double *g = calloc(N * 3 * C, sizeof *g), *a = malloc(N * sizeof *a),
           *ds = malloc(N * sizeof *ds);
    for (size_t h = 0; h < p->H; h++)
        for (size_t i = 0; i < p->n_rows; i++) {
            const float *dout = p->dout.data + i * p->dout_row + h * d;
            double mean = 0.0;
            exact_row(p, qkv, h, i, a);
            for (size_t j = 0; j < N; j++) {
                ds[j] = direct_gradient_of(p, i, j);
                for (size_t c = 0; c < d; c++) {
                    ds[j] += (double)dout[c] * qkv[j * 3 * C + 2 * C + h * d + c];
                    g[j * 3 * C + 2 * C + h * d + c] += a[j] * (double)dout[c];
                }
                mean += a[j] * ds[j];
            }
            for (size_t j = 0; j < N; j++)
                for (size_t c = 0; c < d; c++) {
                    const double s = a[j] * (ds[j] - mean) * scale_of(p);
                    g[i * 3 * C + h * d + c] += s * qkv[j * 3 * C + C + h * d + c];
                    g[j * 3 * C + C + h * d + c] += s * qkv[i * 3 * C + h * d + c];
                }
        }
    free(a), free(ds);
    return g;
}

static double *dense_qkv(const problem *p)
{
    const size_t width = 3 * p->H * p->d;
    double *qkv = malloc(p->N * width * sizeof *qkv);
    for (size_t i = 0; i < p->N; i++)
        for (size_t c = 0; c < width; c++)
            qkv[i * width + c] = (double)p->qkv.data[i * p->qkv_row + c];
    return qkv;
}

static void check_size(const ry_grad_kernels *k, size_t N, size_t H, size_t d, size_t n_rows,
                       int with)
{
    problem p = problem_new(N, H, d, n_rows, with);
    const size_t width = 3 * H * d;
    double *qkv = dense_qkv(&p), *want = reference(&p, qkv);
    solve(&p, k);
    for (size_t i = 0; i < N; i++)
        for (size_t c = 0; c < width; c++) {
            const double got = (double)p.dqkv.data[i * p.dqkv_row + c], w = want[i * width + c];
            if (i >= n_rows && c < H * d) assert_true(got == 0.0);
            if (!(fabs(got - w) <= 2e-5 * (1.0 + fabs(w))))
                fail_msg("N %zu H %zu d %zu rows %zu with %d: [%zu, %zu] %g, want %g", N, H, d,
                         n_rows, with, i, c, got, w);
        }
    free(qkv), free(want);
    problem_free(&p);
}

static void check_shapes(const ry_grad_kernels *k)
{
    for (size_t N = 1; N <= 40; N++)
        check_size(k, N, 1 + N % 3, 1 + N * 7 % 33, N % 4 ? N : 1, (int)N % 8);
    for (size_t d = 1; d <= 90; d += d < 36 ? 1 : 9) check_size(k, 11, 2, d, 11, BIAS);
    check_size(k, 70, 2, 48, 2, CLASS);
    check_size(k, 197, 1, 64, 197, BIAS | CLASS | MEAN);
    check_size(k, 150, 1, 80, 150, 0);
#ifndef RENYI_SANITIZED
    check_size(k, 577, 1, 32, 577, MEAN);
#endif
}

/* Every entry of a few small problems: the kernel, and the derivative in double. */
static void check_differences(const ry_grad_kernels *k)
{
    for (int with = 0; with < 8; with++) {
        problem p = problem_new(7, 2, 5, with % 3 ? 7 : 2, with);
        const size_t width = 3 * p.H * p.d;
        double *qkv = dense_qkv(&p), *want = reference(&p, qkv);
        solve(&p, k);
        for (size_t i = 0; i < p.N * width; i++) {
            const double slope = slope_of(loss, qkv, i, &p);
            const float got = p.dqkv.data[i / width * p.dqkv_row + i % width];
            assert_true(fabs(want[i] - slope) <= 1e-8);
            assert_true(fabs((double)got - slope) <= 1e-5);
        }
        free(qkv), free(want);
        problem_free(&p);
    }
}

static void check_mean_of(const ry_grad_kernels *k, size_t N, size_t H, size_t d, size_t n_rows)
{
    problem p = problem_new(N, H, d, n_rows, BIAS);
    const ry_attention_grad g = grad_of(&p);
    guarded mean = guard_new(n_rows * N, N % 16);
    float *scratch = scratch_new(ry_attention_grad_scratch(N, d));
    double *qkv = dense_qkv(&p), *a = malloc(N * sizeof *a), *want = malloc(N * sizeof *want);
    k->attention_mean(&g, mean.data, scratch);
    for (size_t i = 0; i < n_rows; i++) {
        for (size_t j = 0; j < N; j++) want[j] = 0.0;
        for (size_t h = 0; h < H; h++) {
            exact_row(&p, qkv, h, i, a);
            for (size_t j = 0; j < N; j++) want[j] += a[j] / (double)H;
        }
        for (size_t j = 0; j < N; j++)
            assert_true(fabs((double)mean.data[i * N + j] - want[j]) <= 2e-6 * (1e-3 + want[j]));
    }
    assert_true(guard_intact(&mean));
    guard_free(&mean);
    free(scratch), free(qkv), free(a), free(want);
    problem_free(&p);
}

static void check_mean(const ry_grad_kernels *k)
{
    for (size_t N = 1; N <= 40; N += 3) check_mean_of(k, N, 1 + N % 3, 1 + N % 20, N % 4 ? N : 1);
    check_mean_of(k, 197, 3, 64, 197);
}

static void test_shapes(void **state)
{
    (void)state;
    at_every_grad_level(check_shapes, &sixteen);
}

static void test_differences(void **state)
{
    (void)state;
    at_every_grad_level(check_differences, &sixteen);
}

static void test_mean(void **state)
{
    (void)state;
    at_every_grad_level(check_mean, &sixteen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_differences),
                                       cmocka_unit_test(test_mean)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
