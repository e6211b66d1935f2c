/* test_causal.c - causal attention against double arithmetic at every level; the same bits however
 * many queries are asked for at once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/kernel_test.h"

#define RY_SIMD_EMU16
#include "kernels/attention/causal_template.h"

typedef struct problem {
    size_t N, H, d, row; /* tokens of the text, heads, floats of each; floats between rows */
    size_t list;         /* rows of the whole list */
    uint32_t *rows;      /* [N] scattered in it */
    float *qkv;          /* [list, row] */
} problem;

static problem problem_new(size_t N, size_t H, size_t d)
{
    problem p = {.N = N, .H = H, .d = d, .row = 3 * H * d + 3, .list = 3 * N + 5};
    p.rows = malloc(N * sizeof *p.rows);
    p.qkv = malloc(p.list * p.row * sizeof *p.qkv);
    for (size_t i = 0; i < p.list * p.row; i++) p.qkv[i] = NAN; /* rows of others are not read */
    for (size_t j = 0; j < N; j++) {
        p.rows[j] = (uint32_t)(j < N / 2 ? 3 * j + 1 : 3 * N + 4 - j); /* up, then down */
        for (size_t c = 0; c < 3 * H * d; c++) p.qkv[p.rows[j] * p.row + c] = 3.0f * unit();
    }
    return p;
}

static void problem_free(problem *p) { free(p->rows), free(p->qkv); }

static double at(const problem *p, size_t part, size_t j, size_t h, size_t c)
{
    return (double)p->qkv[p->rows[j] * p->row + (part * p->H + h) * p->d + c];
}

/* out [d] of query i, head h */
static void reference(const problem *p, size_t h, size_t i, double *out)
{
    double a[128], top = -INFINITY, sum = 0.0;
    for (size_t j = 0; j <= i; j++) {
        a[j] = 0.0;
        for (size_t c = 0; c < p->d; c++) a[j] += at(p, 0, i, h, c) * at(p, 1, j, h, c);
        a[j] /= sqrt((double)p->d);
        top = fmax(top, a[j]);
    }
    for (size_t j = 0; j <= i; j++) sum += a[j] = exp(a[j] - top);
    for (size_t c = 0; c < p->d; c++) {
        out[c] = 0.0;
        for (size_t j = 0; j <= i; j++) out[c] += a[j] / sum * at(p, 2, j, h, c);
    }
}

/* Queries first .. n-1 into a guarded buffer [n - first, H*d + 5]. */
static guarded solve(const problem *p, const ry_kernels *k, size_t first, size_t n)
{
    const size_t row = p->H * p->d + 5;
    guarded out = guard_new((n - first) * row, 3);
    float *scratch = aligned_alloc(64, (ry_causal_scratch(n, p->d) * sizeof(float) + 63) / 64 * 64);
    const ry_causal text = {p->H, p->d, p->qkv, p->row, row, p->rows, n, first, out.data};
    k->causal(&text, scratch);
    assert_true(guard_intact(&out));
    free(scratch);
    return out;
}

static void at_every_level(void (*check)(const ry_kernels *k))
{
    const ry_kernels sixteen = {.causal = causal_text};
    check(&sixteen);
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
        ry_kernels k;
        ry_kernels_init(&k, (renyi_cpu)level);
        check(&k);
    }
}

static void check_reference(const ry_kernels *k)
{
    static const size_t shapes[][3] = {{1, 1, 64},  {2, 3, 64},  {9, 2, 64}, {17, 2, 32},
                                       {33, 1, 20}, {77, 2, 64}, {8, 4, 7}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        problem p = problem_new(shapes[s][0], shapes[s][1], shapes[s][2]);
        const size_t row = p.H * p.d + 5;
        guarded out = solve(&p, k, 0, p.N);
        for (size_t i = 0; i < p.N; i++)
            for (size_t h = 0; h < p.H; h++) {
                double want[64];
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

/* Every query alone, and as the first of those left: the bits of all at once. */
static void check_company(const ry_kernels *k)
{
    enum { N = 21 };
    problem p = problem_new(N, 2, 24);
    const size_t row = p.H * p.d + 5, bytes = p.H * p.d * sizeof(float);
    guarded all = solve(&p, k, 0, N);
    for (size_t i = 0; i < N; i++) {
        guarded alone = solve(&p, k, i, i + 1), rest = solve(&p, k, i, N);
        assert_memory_equal(alone.data, all.data + i * row, bytes);
        for (size_t j = i; j < N; j++)
            assert_memory_equal(rest.data + (j - i) * row, all.data + j * row, bytes);
        guard_free(&alone);
        guard_free(&rest);
    }
    guard_free(&all);
    problem_free(&p);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reference),
                                       cmocka_unit_test(test_company)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
