/* test_grad_layernorm.c - the backward pass of LayerNorm against finite differences in double: all
 * tail sizes and alignments, rows with gaps, dx is added to.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/grad_test.h"

#define RY_SIMD_EMU16
#include "kernels/grad/layernorm_grad_template.h"

static const ry_grad_kernels sixteen = {.layernorm_grad = layernorm_grad};

typedef struct problem {
    size_t rows, n, x_row, dy_row, dx_row;
    guarded x, dy, w, dx;
    float *dx0, *parts, *dw, *db;
} problem;

static problem problem_new(size_t rows, size_t n, size_t shift)
{
    problem p = {rows, n, n + 2, n + 1, n + 4};
    p.x = guard_new(rows * p.x_row, shift), p.dy = guard_new(rows * p.dy_row, shift);
    p.dx = guard_new(rows * p.dx_row, shift), p.w = guard_new(n, shift);
    p.dx0 = malloc(rows * p.dx_row * sizeof(float));
    p.parts = malloc(ry_layernorm_grad_blocks(rows) * 2 * n * sizeof(float));
    p.dw = malloc(n * sizeof(float)), p.db = malloc(n * sizeof(float));
    fill_random(p.w.data, n);
    fill_random(p.dx0, rows * p.dx_row);
    for (size_t r = 0; r < rows; r++) {
        fill_random(p.dy.data + r * p.dy_row, n);
        for (size_t i = 0; i < n; i++) {
            p.x.data[r * p.x_row + i] = unit() + (float)(r % 3);
            p.dx.data[r * p.dx_row + i] = p.dx0[r * p.dx_row + i];
        }
    }
    return p;
}

static void problem_free(problem *p)
{
    guard_free(&p->x), guard_free(&p->dy), guard_free(&p->w), guard_free(&p->dx);
    free(p->dx0), free(p->parts), free(p->dw), free(p->db);
}

static void solve(problem *p, const ry_grad_kernels *k)
{
    const ry_layernorm_grad g = {.x = p->x.data,
                                 .dy = p->dy.data,
                                 .w = p->w.data,
                                 .dx = p->dx.data,
                                 .x_row = p->x_row,
                                 .dy_row = p->dy_row,
                                 .dx_row = p->dx_row,
                                 .rows = p->rows,
                                 .n = p->n,
                                 .eps = 1e-6f,
                                 .parts = p->parts};
    const size_t blocks = ry_layernorm_grad_blocks(p->rows);
    for (size_t b = blocks; b-- > 0;) k->layernorm_grad(&g, b);
    for (size_t i = 0; i < p->n; i++) p->dw[i] = 1.0f, p->db[i] = -1.0f;
    ry_layernorm_grad_sum(p->dw, p->db, p->parts, blocks, p->n);
    assert_true(guard_intact(&p->dx));
    for (size_t r = 0; r < p->rows; r++) /* nothing is written between rows */
        for (size_t i = p->n; i < p->dx_row; i++) assert_true(isnan(p->dx.data[r * p->dx_row + i]));
}

/* v: [x row, w, b]; sum of dy * layernorm(x) of row 0 of the problem */
static double loss(const double *v, const void *problem_)
{
    const problem *p = problem_;
    const size_t n = p->n;
    double mean = 0.0, var = 0.0, sum = 0.0;
    for (size_t i = 0; i < n; i++) mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++) var += (v[i] - mean) * (v[i] - mean) / (double)n;
    for (size_t i = 0; i < n; i++)
        sum += (double)p->dy.data[i] * ((v[i] - mean) / sqrt(var + 1e-6) * v[n + i] + v[2 * n + i]);
    return sum;
}

/* slopes: [3 n] finite differences of row r by x, w and b */
static void row_slopes(const problem *p, size_t r, double *slopes)
{
    const size_t n = p->n;
    problem row = *p;
    row.dy.data = p->dy.data + r * p->dy_row;
    double *v = calloc(3 * n, sizeof *v);
    for (size_t i = 0; i < n; i++) {
        v[i] = (double)p->x.data[r * p->x_row + i];
        v[n + i] = (double)p->w.data[i];
    }
    for (size_t i = 0; i < 3 * n; i++) slopes[i] = slope_of(loss, v, i, &row);
    free(v);
}

static void check_size(const ry_grad_kernels *k, size_t rows, size_t n, size_t shift)
{
    problem p = problem_new(rows, n, shift);
    double *slopes = malloc(3 * n * sizeof *slopes), *sums = calloc(2 * n, sizeof *sums);
    solve(&p, k);
    for (size_t r = 0; r < rows; r++) {
        row_slopes(&p, r, slopes);
        for (size_t i = 0; i < n; i++) {
            const size_t at = r * p.dx_row + i;
            const double want = (double)p.dx0[at] + slopes[i], got = (double)p.dx.data[at];
            assert_true(fabs(got - want) <= 3e-5 * (1.0 + fabs(want)));
        }
        for (size_t i = 0; i < 2 * n; i++) sums[i] += slopes[n + i];
    }
    for (size_t i = 0; i < n; i++) {
        assert_true(fabs((double)p.dw[i] - 1.0 - sums[i]) <= 3e-5 * (1.0 + (double)rows));
        assert_true(fabs((double)p.db[i] + 1.0 - sums[n + i]) <= 3e-5 * (1.0 + (double)rows));
    }
    free(slopes), free(sums);
    problem_free(&p);
}

static void check_all(const ry_grad_kernels *k)
{
    for (size_t n = 3; n <= 70; n++) check_size(k, 2, n, n % 16);
    for (size_t rows = 1; rows <= 100; rows += 33) check_size(k, rows, 20, 0);
    check_size(k, 3, 384, 1);
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
