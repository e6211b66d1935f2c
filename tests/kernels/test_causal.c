/* test_causal.c - attention to earlier rows, in a text (causal.h) and in a key/value cache
 * (cached.h): against double at every level, in floats and half floats; the same bits however many
 * queries are computed together; rows after the query are not read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"
#include "fixtures/kernel_test.h"

#define RY_SIMD_EMU16
#include "kernels/attention/causal_template.h"
#ifndef RENYI_SANITIZED /* it would take a minute to compile */
#include "kernels/attention/cached_template.h"
static const ry_kernels cached_sixteen = {
    .cached = cached, .cached_look = cached_look, .cache_row = cache_row};
#define CACHED_SIXTEEN &cached_sixteen
#else
#define CACHED_SIXTEEN NULL
#endif
static const ry_kernels causal_sixteen = {.causal = causal_text};

typedef struct problem {
    size_t N, H, G, d; /* rows, query heads, heads of keys and values, floats of each */
    float *q, *k, *v;  /* [N, H, d], [N, G, d], [N, G, d] */
    size_t row;        /* of a text: floats between rows of qkv */
    int sees_all;      /* of a text: every query sees all N tokens */
    uint32_t *rows;    /* of a text: [N] row numbers in qkv */
    float *qkv;        /* of a text: [3 N + 5, row], NaN in rows of other texts */
    ry_cache cache;
} problem;

/* Computes rows first .. first+n-1, all heads, into a guarded buffer [n, H*d + 5]. */
typedef guarded (*solver)(const problem *p, const ry_kernels *k, size_t first, size_t n);

static void problem_free(problem *p)
{
    free(p->q), free(p->k), free(p->v), free(p->rows), free(p->qkv);
    free(p->cache.k), free(p->cache.v);
}

/* Random numbers, all of which a half float can hold if `half`. */
static float *numbers_new(size_t n, float scale, int half)
{
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        x[i] = scale * unit();
        if (half) x[i] = ry_half_to_float(ry_half_of(x[i]));
    }
    return x;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static problem text_new(size_t N, size_t H, size_t d)
{
    const size_t C = H * d, list = 3 * N + 5;
    problem p = {.N = N, .H = H, .G = H, .d = d, .row = 3 * C + 3};
    p.q = numbers_new(N * C, 3.0f, 0);
    p.k = numbers_new(N * C, 3.0f, 0);
    p.v = numbers_new(N * C, 3.0f, 0);
    p.rows = malloc(N * sizeof *p.rows);
    p.qkv = malloc(list * p.row * sizeof *p.qkv);
    for (size_t i = 0; i < list * p.row; i++) p.qkv[i] = NAN;
    for (size_t j = 0; j < N; j++) {
        p.rows[j] = (uint32_t)(j < N / 2 ? 3 * j + 1 : 3 * N + 4 - j); /* up, then down */
        float *to = p.qkv + p.rows[j] * p.row;
        memcpy(to, p.q + j * C, C * sizeof(float));
        memcpy(to + C, p.k + j * C, C * sizeof(float));
        memcpy(to + 2 * C, p.v + j * C, C * sizeof(float));
    }
    return p;
}

static guarded solve_text(const problem *p, const ry_kernels *k, size_t first, size_t n)
{
    const size_t row = p->H * p->d + 5;
    guarded out = guard_new(n * row, 3);
    const size_t n_tokens = p->sees_all ? p->N : first + n;
    float *scratch = scratch_new(ry_causal_scratch(n_tokens, p->d));
    const ry_causal text = {.n_heads = p->H,
                            .head = p->d,
                            .qkv = p->qkv,
                            .qkv_row = p->row,
                            .out_row = row,
                            .rows = p->rows,
                            .n_tokens = n_tokens,
                            .first = first,
                            .end = first + n,
                            .sees_all = p->sees_all,
                            .out = out.data};
    k->causal(&text, scratch);
    assert_true(guard_intact(&out));
    free(scratch);
    return out;
}

/* ---- caches ---------------------------------------------------------------------------------- */

static size_t cache_bytes(const ry_cache *c) { return ry_cache_elements(c) * (c->half ? 2 : 4); }

static problem cache_new(const size_t shape[4], int half, const ry_kernels *k)
{
    problem p = {.N = shape[0], .H = shape[1], .G = shape[2], .d = shape[3]};
    p.q = numbers_new(p.N * p.H * p.d, 2.0f, 0);
    p.k = numbers_new(p.N * p.G * p.d, 2.0f, half);
    p.v = numbers_new(p.N * p.G * p.d, 2.0f, half);
    p.cache = (ry_cache){.n_heads = p.G, .head = p.d, .half = half};
    p.cache.context = (p.N + 40) / RY_CACHE_BLOCK * RY_CACHE_BLOCK;
    const size_t bytes = cache_bytes(&p.cache);
    p.cache.k = malloc(bytes), p.cache.v = malloc(bytes);
    memset(p.cache.k, 0xff, bytes), memset(p.cache.v, 0xff, bytes); /* NaN in both types */
    for (size_t j = 0; j < p.N; j++)
        k->cache_row(&p.cache, j, p.k + j * p.G * p.d, p.v + j * p.G * p.d);
    return p;
}

static guarded solve_cache(const problem *p, const ry_kernels *k, size_t first, size_t n)
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

/* ---- checks ---------------------------------------------------------------------------------- */

/* out [d] of row i, query head h, in double */
static void exact_row(const problem *p, size_t h, size_t i, double *out)
{
    static double a[512];
    const size_t g = h / (p->H / p->G);
    const float *q = p->q + (i * p->H + h) * p->d;
    double top = -INFINITY, sum = 0.0;
    const size_t n = p->sees_all ? p->N : i + 1;
    for (size_t j = 0; j < n; j++) {
        const float *k = p->k + (j * p->G + g) * p->d;
        a[j] = 0.0;
        for (size_t c = 0; c < p->d; c++) a[j] += (double)q[c] * (double)k[c];
        a[j] /= sqrt((double)p->d);
        top = fmax(top, a[j]);
    }
    for (size_t j = 0; j < n; j++) sum += a[j] = exp(a[j] - top);
    for (size_t c = 0; c < p->d; c++) {
        out[c] = 0.0;
        for (size_t j = 0; j < n; j++)
            out[c] += a[j] / sum * (double)p->v[(j * p->G + g) * p->d + c];
    }
}

static void check_exact(const problem *p, const ry_kernels *k, solver solve)
{
    const size_t row = p->H * p->d + 5;
    guarded out = solve(p, k, 0, p->N);
    for (size_t i = 0; i < p->N; i++) {
        for (size_t h = 0; h < p->H; h++) {
            double want[128];
            exact_row(p, h, i, want);
            for (size_t c = 0; c < p->d; c++)
                assert_true(fabs((double)out.data[i * row + h * p->d + c] - want[c]) < 2e-5);
        }
        assert_true(isnan(out.data[i * row + p->H * p->d])); /* only the heads are written */
    }
    guard_free(&out);
}

/* A row alone, or with some or many after it, has the bits that it has among all rows. */
static void check_company(const problem *p, const ry_kernels *k, solver solve)
{
    static const size_t counts[] = {1, 7, 40};
    const size_t row = p->H * p->d + 5, bytes = p->H * p->d * sizeof(float);
    guarded all = solve(p, k, 0, p->N);
    for (size_t i = 0; i < p->N; i++)
        for (size_t t = 0; t < sizeof counts / sizeof *counts; t++) {
            const size_t n = p->N - i < counts[t] ? p->N - i : counts[t];
            guarded some = solve(p, k, i, n);
            for (size_t j = 0; j < n; j++)
                assert_memory_equal(some.data + j * row, all.data + (i + j) * row, bytes);
            guard_free(&some);
        }
    guard_free(&all);
}

static void check_texts(const ry_kernels *k)
{
    static const size_t shapes[][3] = {{1, 1, 64},  {2, 3, 64},  {9, 2, 64}, {17, 2, 32},
                                       {33, 1, 20}, {77, 2, 64}, {8, 4, 7}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        problem p = text_new(shapes[s][0], shapes[s][1], shapes[s][2]);
        for (p.sees_all = 0; p.sees_all < 2; p.sees_all++) check_exact(&p, k, solve_text);
        problem_free(&p);
    }
}

static void check_text_company(const ry_kernels *k)
{
    problem p = text_new(21, 2, 24);
    for (p.sees_all = 0; p.sees_all < 2; p.sees_all++) check_company(&p, k, solve_text);
    problem_free(&p);
}

static void check_caches(const ry_kernels *k)
{
    static const size_t shapes[][4] = {{1, 1, 1, 64},  {3, 4, 2, 8},    {17, 2, 2, 32},
                                       {33, 3, 1, 20}, {70, 2, 2, 128}, {150, 4, 1, 6},
                                       {200, 1, 1, 72}};
    for (size_t s = 0; s < 2 * (sizeof shapes / sizeof *shapes); s++) {
        problem p = cache_new(shapes[s / 2], s % 2, k);
        check_exact(&p, k, solve_cache);
        problem_free(&p);
    }
}

static void check_cache_company(const ry_kernels *k)
{
    static const size_t shapes[][4] = {{133, 2, 2, 24}, {133, 3, 1, 8}};
    for (size_t s = 0; s < 4; s++) {
        problem p = cache_new(shapes[s / 2], s % 2, k);
        check_company(&p, k, solve_cache);
        problem_free(&p);
    }
}

/* ---- looking at attention -------------------------------------------------------------------- */

/* mean [n, columns] of rows first .. first+n-1 */
static guarded look_at(const problem *p, const ry_kernels *k, size_t first, size_t n, size_t column,
                       size_t columns)
{
    guarded mean = guard_new(n * columns, 3);
    guarded scratch = guard_new(ry_cached_scratch(p->N), 0);
    const ry_cached_look at = {.cache = &p->cache,
                               .group = p->H / p->G,
                               .n_rows = n,
                               .first = first,
                               .q = p->q + first * p->H * p->d,
                               .q_row = p->H * p->d,
                               .column = column,
                               .n_columns = columns,
                               .mean = mean.data};
    k->cached_look(&at, scratch.data);
    assert_true(guard_intact(&mean));
    assert_true(guard_intact(&scratch));
    guard_free(&scratch);
    return mean;
}

/* Attention of row i to row j, averaged over the heads, in double. */
static double exact_mean(const problem *p, size_t i, size_t j)
{
    double mean = 0.0;
    for (size_t h = 0; h < p->H && j <= i; h++) {
        const float *q = p->q + (i * p->H + h) * p->d;
        double wanted = 0.0, sum = 0.0;
        for (size_t m = 0; m <= i; m++) {
            const float *key = p->k + (m * p->G + h / (p->H / p->G)) * p->d;
            double dot = 0.0;
            for (size_t c = 0; c < p->d; c++) dot += (double)q[c] * (double)key[c];
            sum += dot = exp(dot / sqrt((double)p->d));
            if (m == j) wanted = dot;
        }
        mean += wanted / sum / (double)p->H;
    }
    return mean;
}

/* Against double; a row alone has the bits that it has among others. */
static void check_look(const ry_kernels *k)
{
    static const size_t shapes[][4] = {
        {1, 1, 1, 64}, {37, 4, 2, 8}, {33, 3, 1, 20}, {60, 2, 2, 32}};
    for (size_t s = 0; s < 2 * (sizeof shapes / sizeof *shapes); s++) {
        problem p = cache_new(shapes[s / 2], s % 2, k);
        const size_t column = p.N / 4, columns = p.N - p.N / 2 ? p.N - p.N / 2 : 1;
        guarded all = look_at(&p, k, 0, p.N, column, columns);
        for (size_t i = 0; i < p.N; i++) {
            guarded one = look_at(&p, k, i, 1, column, columns);
            assert_memory_equal(one.data, all.data + i * columns, columns * sizeof(float));
            guard_free(&one);
            for (size_t j = 0; j < columns; j++)
                assert_true(
                    fabs((double)all.data[i * columns + j] - exact_mean(&p, i, column + j)) < 1e-5);
        }
        guard_free(&all);
        problem_free(&p);
    }
}

/* Every level writes the same bytes into the cache. */
static void check_cache_bytes(const ry_kernels *k)
{
    static const size_t shape[4] = {37, 2, 2, 20};
    ry_kernels scalar;
    ry_kernels_init(&scalar, RENYI_CPU_SCALAR);
    for (int half = 0; half < 2; half++) {
        const ry_rng seed = test_rng;
        problem want = cache_new(shape, half, &scalar);
        test_rng = seed;
        problem got = cache_new(shape, half, k);
        assert_memory_equal(got.cache.k, want.cache.k, cache_bytes(&want.cache));
        assert_memory_equal(got.cache.v, want.cache.v, cache_bytes(&want.cache));
        problem_free(&want);
        problem_free(&got);
    }
}

static void test_texts(void **state)
{
    (void)state;
    at_every_level(check_texts, &causal_sixteen);
    at_every_level(check_text_company, &causal_sixteen);
}

static void test_caches(void **state)
{
    (void)state;
    at_every_level(check_caches, CACHED_SIXTEEN);
    at_every_level(check_cache_company, CACHED_SIXTEEN);
    at_every_level(check_cache_bytes, CACHED_SIXTEEN);
}

static void test_look(void **state)
{
    (void)state;
    at_every_level(check_look, CACHED_SIXTEEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_caches),
                                       cmocka_unit_test(test_look)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
