/* test_grad_outer.c - dw += dy^T x and db against double and finite differences: all tail sizes,
 * strides, alignments, NaN around all buffers; the bits do not depend on the number of tiles.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/grad_test.h"

#define RY_SIMD_EMU16
#include "kernels/grad/outer_template.h"

static const ry_grad_kernels sixteen = {.outer = outer};

typedef struct problem {
    size_t rows, n_out, n_in, dy_row, x_row;
    guarded dy, x, dw, db;
    float *dw0, *db0; /* initial values of dw and db */
} problem;

static problem problem_new(size_t rows, size_t n_out, size_t n_in, size_t shift)
{
    problem p = {rows, n_out, n_in, n_out + 3, n_in + 5};
    p.dy = guard_new(rows * p.dy_row, shift), p.x = guard_new(rows * p.x_row, shift);
    p.dw = guard_new(n_out * n_in, shift), p.db = guard_new(n_out, shift);
    for (size_t r = 0; r < rows; r++) {
        fill_random(p.dy.data + r * p.dy_row, n_out);
        fill_random(p.x.data + r * p.x_row, n_in);
    }
    p.dw0 = malloc(n_out * n_in * sizeof(float));
    p.db0 = malloc(n_out * sizeof(float));
    fill_random(p.dw0, n_out * n_in);
    fill_random(p.db0, n_out);
    return p;
}

static void problem_free(problem *p)
{
    guard_free(&p->dy), guard_free(&p->x), guard_free(&p->dw), guard_free(&p->db);
    free(p->dw0), free(p->db0);
}

static void solve(problem *p, const ry_grad_kernels *k, unsigned threads, int with_bias)
{
    const ry_outer o = {.dy = p->dy.data,
                        .x = p->x.data,
                        .dy_row = p->dy_row,
                        .x_row = p->x_row,
                        .rows = p->rows,
                        .n_out = p->n_out,
                        .n_in = p->n_in,
                        .dw = p->dw.data,
                        .db = with_bias ? p->db.data : NULL,
                        .n_threads = threads};
    float *scratch = scratch_new(ry_outer_scratch());
    memcpy(p->dw.data, p->dw0, p->n_out * p->n_in * sizeof(float));
    memcpy(p->db.data, p->db0, p->n_out * sizeof(float));
    for (size_t t = ry_outer_tiles(&o); t-- > 0;) k->outer(&o, t, scratch);
    assert_true(guard_intact(&p->dw) && guard_intact(&p->db));
    free(scratch);
}

/* dw0 + dy^T x where x has a last column of ones for db */
static void check_element(const problem *p, size_t i, size_t j, float got)
{
    const int bias = j == p->n_in;
    double want = bias ? (double)p->db0[i] : (double)p->dw0[i * p->n_in + j], size = fabs(want);
    for (size_t r = 0; r < p->rows; r++) {
        const double dy = (double)p->dy.data[r * p->dy_row + i];
        const double v = bias ? dy : dy * (double)p->x.data[r * p->x_row + j];
        want += v;
        size += fabs(v);
    }
    assert_true(fabs((double)got - want) <= dot_bound(p->rows + 1, size));
}

static void check_size(const ry_grad_kernels *k, size_t rows, size_t n_out, size_t n_in,
                       size_t shift)
{
    problem p = problem_new(rows, n_out, n_in, shift);
    solve(&p, k, 1, 1);
    for (size_t i = 0; i < n_out; i++) {
        for (size_t j = 0; j < n_in; j++) check_element(&p, i, j, p.dw.data[i * n_in + j]);
        check_element(&p, i, n_in, p.db.data[i]);
    }
    solve(&p, k, 3, 0);
    for (size_t i = 0; i < n_out; i++) assert_memory_equal(&p.db.data[i], &p.db0[i], sizeof(float));
    problem_free(&p);
}

static void check_all(const ry_grad_kernels *k)
{
    for (size_t n = 1; n <= 40; n++) check_size(k, 1 + n % 5 * 7, n, 1 + n * 5 % 37, n % 16);
    for (size_t n = 1; n <= 70; n += 3) check_size(k, 19, 14, n, n % 16);
    for (size_t rows = 1; rows <= 600; rows += rows < 9 ? 1 : 118) check_size(k, rows, 13, 33, 0);
    check_size(k, 300, 197, 401, 1); /* more than one tile each way, more than one chunk of rows */
    check_size(k, 50, 10, 900, 0);
    check_size(k, 50, 400, 3, 0);
}

/* Any number of tiles gives the same bits. */
static void check_tiles(const ry_grad_kernels *k)
{
    problem p = problem_new(270, 200, 390, 0);
    float *want = malloc(p.dw.n * sizeof(float));
    solve(&p, k, 1, 1);
    memcpy(want, p.dw.data, p.dw.n * sizeof(float));
    for (unsigned threads = 2; threads <= 64; threads *= 2) {
        solve(&p, k, threads, 1);
        assert_memory_equal(p.dw.data, want, p.dw.n * sizeof(float));
    }
    free(want);
    problem_free(&p);
}

/* The loss whose gradient dw is: sum over rows of dy . (W x) */
static double loss(const double *w, const void *problem_)
{
    const problem *p = problem_;
    double sum = 0.0;
    for (size_t r = 0; r < p->rows; r++)
        for (size_t i = 0; i < p->n_out; i++)
            for (size_t j = 0; j < p->n_in; j++)
                sum += (double)p->dy.data[r * p->dy_row + i] * w[i * p->n_in + j] *
                       (double)p->x.data[r * p->x_row + j];
    return sum;
}

static void check_differences(const ry_grad_kernels *k)
{
    problem p = problem_new(21, 13, 18, 0);
    double *w = doubles_of(p.dw0, p.dw.n);
    memset(p.dw0, 0, p.dw.n * sizeof(float));
    solve(&p, k, 1, 1);
    for (size_t i = 0; i < p.dw.n; i++)
        assert_true(fabs((double)p.dw.data[i] - slope_of(loss, w, i, &p)) < 1e-5);
    free(w);
    problem_free(&p);
}

static void test_against_double(void **state)
{
    (void)state;
    at_every_grad_level(check_all, &sixteen);
}

static void test_tiles(void **state)
{
    (void)state;
    at_every_grad_level(check_tiles, &sixteen);
}

static void test_differences(void **state)
{
    (void)state;
    at_every_grad_level(check_differences, &sixteen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_double),
                                       cmocka_unit_test(test_tiles),
                                       cmocka_unit_test(test_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
