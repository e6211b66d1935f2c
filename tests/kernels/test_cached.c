/* test_cached.c - attention to a cache against double arithmetic at every level, in floats and in
 * halves; the same bits however many queries are asked for at once; nothing behind a row's own
 * place is looked at.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"
#include "fixtures/kernel_test.h"
#include "kernels/kernels.h"

#ifndef RENYI_SANITIZED /* it would take a minute to compile */
#define RY_SIMD_EMU16
#include "kernels/attention/cached_template.h"
#endif

typedef struct problem {
    size_t N, H, G, d; /* rows of the sequence, query heads, heads of the cache, floats of each */
    int half;
    float *q, *k, *v; /* [N, H, d], [N, G, d] */
    ry_cache cache;
} problem;

/* What stands in a half. */
static void round_to_half(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = ry_half_to_float(ry_half_of(x[i]));
}

static float *numbers(size_t n, int half)
{
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = 2.0f * unit();
    if (half) round_to_half(x, n);
    return x;
}

static problem problem_new(const size_t shape[4], int half, const ry_kernels *k)
{
    problem p = {.N = shape[0], .H = shape[1], .G = shape[2], .d = shape[3], .half = half};
    p.q = numbers(p.N * p.H * p.d, 0);
    p.k = numbers(p.N * p.G * p.d, half);
    p.v = numbers(p.N * p.G * p.d, half);
    p.cache = (ry_cache){.n_heads = p.G, .head = p.d, .half = half};
    p.cache.context = (p.N + 40) / RY_CACHE_BLOCK * RY_CACHE_BLOCK;
    const size_t bytes = ry_cache_elements(&p.cache) * (half ? 2 : 4);
    p.cache.k = malloc(bytes), p.cache.v = malloc(bytes);
    memset(p.cache.k, 0xff, bytes), memset(p.cache.v, 0xff, bytes); /* NaN in both types */
    for (size_t j = 0; j < p.N; j++)
        k->cache_row(&p.cache, j, p.k + j * p.G * p.d, p.v + j * p.G * p.d);
    return p;
}

static void problem_free(problem *p)
{
    free(p->q), free(p->k), free(p->v), free(p->cache.k), free(p->cache.v);
}

/* out [d] of row i, query head h */
static void reference(const problem *p, size_t h, size_t i, double *out)
{
    static double a[512];
    const size_t g = h / (p->H / p->G);
    const float *q = p->q + (i * p->H + h) * p->d;
    double top = -INFINITY, sum = 0.0;
    for (size_t j = 0; j <= i; j++) {
        const float *k = p->k + (j * p->G + g) * p->d;
        a[j] = 0.0;
        for (size_t c = 0; c < p->d; c++) a[j] += (double)q[c] * (double)k[c];
        a[j] /= sqrt((double)p->d);
        top = fmax(top, a[j]);
    }
    for (size_t j = 0; j <= i; j++) sum += a[j] = exp(a[j] - top);
    for (size_t c = 0; c < p->d; c++) {
        out[c] = 0.0;
        for (size_t j = 0; j <= i; j++)
            out[c] += a[j] / sum * (double)p->v[(j * p->G + g) * p->d + c];
    }
}

/* Rows first .. first+n-1, all heads, into a guarded buffer [n, H*d + 5]. */
static guarded solve(const problem *p, const ry_kernels *k, size_t first, size_t n)
{
    const size_t group = p->H / p->G, row = p->H * p->d + 5;
    guarded out = guard_new(n * row, 3);
    guarded scratch = guard_new(ry_cached_scratch(p->N), 0);
    for (size_t g = 0; g < p->G; g++) {
        const size_t column = g * group * p->d;
        const ry_cached at = {.cache = &p->cache,
                              .cache_head = g,
                              .n_rows = n,
                              .group = group,
                              .first = first,
                              .q = p->q + first * p->H * p->d + column,
                              .q_row = p->H * p->d,
                              .out_row = row,
                              .out = out.data + column};
        k->cached(&at, scratch.data);
    }
    assert_true(guard_intact(&out));
    assert_true(guard_intact(&scratch));
    guard_free(&scratch);
    return out;
}

static void at_every_level(void (*check)(const ry_kernels *k, int half))
{
    for (int half = 0; half < 2; half++) {
#ifdef RY_SIMD_EMU16
        const ry_kernels sixteen = {.cached = cached, .cache_row = cache_row};
        check(&sixteen, half);
#endif
        for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
            ry_kernels k;
            ry_kernels_init(&k, (renyi_cpu)level);
            check(&k, half);
        }
    }
}

static void check_reference(const ry_kernels *k, int half)
{
    static const size_t shapes[][4] = {{1, 1, 1, 64},  {3, 4, 2, 8},    {17, 2, 2, 32},
                                       {33, 3, 1, 20}, {70, 2, 2, 128}, {150, 4, 1, 6},
                                       {200, 1, 1, 72}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        problem p = problem_new(shapes[s], half, k);
        const size_t row = p.H * p.d + 5;
        guarded out = solve(&p, k, 0, p.N);
        for (size_t i = 0; i < p.N; i++)
            for (size_t h = 0; h < p.H; h++) {
                double want[128];
                reference(&p, h, i, want);
                for (size_t c = 0; c < p.d; c++)
                    assert_true(fabs((double)out.data[i * row + h * p.d + c] - want[c]) < 2e-5);
            }
        for (size_t i = 0; i < p.N; i++) /* only the heads' columns are written */
            assert_true(isnan(out.data[i * row + p.H * p.d]));
        guard_free(&out);
        problem_free(&p);
    }
}

/* Every row alone, and a few together: the bits of all at once. */
static void check_company(const ry_kernels *k, int half)
{
    enum { N = 133 };
    static const size_t shapes[][4] = {{N, 2, 2, 24}, {N, 3, 1, 8}};
    for (size_t s = 0; s < 2; s++) {
        problem p = problem_new(shapes[s], half, k);
        const size_t row = p.H * p.d + 5, bytes = p.H * p.d * sizeof(float);
        guarded all = solve(&p, k, 0, N);
        for (size_t i = 0; i < N; i++) {
            const size_t n = N - i < 7 ? N - i : 7;
            guarded alone = solve(&p, k, i, 1), some = solve(&p, k, i, n);
            assert_memory_equal(alone.data, all.data + i * row, bytes);
            for (size_t j = 0; j < n; j++)
                assert_memory_equal(some.data + j * row, all.data + (i + j) * row, bytes);
            guard_free(&alone);
            guard_free(&some);
        }
        guard_free(&all);
        problem_free(&p);
    }
}

/* The same bytes in the cache at every level. */
static void check_filling(const ry_kernels *k, int half)
{
    static const size_t shape[4] = {37, 2, 2, 20};
    ry_kernels scalar;
    ry_kernels_init(&scalar, RENYI_CPU_SCALAR);
    const ry_rng seed = test_rng;
    problem want = problem_new(shape, half, &scalar);
    test_rng = seed;
    problem got = problem_new(shape, half, k);
    const size_t bytes = ry_cache_elements(&want.cache) * (half ? 2 : 4);
    assert_memory_equal(got.cache.k, want.cache.k, bytes);
    assert_memory_equal(got.cache.v, want.cache.v, bytes);
    problem_free(&want);
    problem_free(&got);
}

static void test_reference(void **state)
{
    (void)state;
    at_every_level(check_reference);
}

static void test_company(void **state)
{
    (void)state;
    at_every_level(check_company);
}

static void test_filling(void **state)
{
    (void)state;
    at_every_level(check_filling);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reference),
                                       cmocka_unit_test(test_company),
                                       cmocka_unit_test(test_filling)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
