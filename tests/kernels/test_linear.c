/* test_linear.c - every body of linear.h against double arithmetic: shapes with tails, strides
 * wider than the row, every epilogue; and the promise that tiles, threads and images do not change
 * bits. SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"
#include "kernel_test.h"
#include "kernels/linear.h"

static const ry_linear_backend backends[] = {RY_LINEAR_SCALAR, RY_LINEAR_AVX2, RY_LINEAR_ONEDNN};
static const char *const backend_names[] = {"scalar", "avx2", "oneDNN"};

static int backend_here(ry_linear_backend b)
{
    return b != RY_LINEAR_AVX2 || renyi_cpu_detect() >= RENYI_CPU_AVX2;
}

typedef struct problem {
    size_t images, rows, n_in, n_out, x_row, y_row;
    ry_epilogue epilogue;
    float *x, *w, *bias, *y0; /* y0: what y holds before the run */
} problem;

static problem problem_new(ry_linear_backend b, size_t images, size_t rows, size_t n_out,
                           size_t n_in, ry_epilogue e)
{
    problem p = {images, rows, n_in, n_out, n_in, n_out, e, NULL, NULL, NULL, NULL};
    if (b != RY_LINEAR_ONEDNN)
        p.x_row += 3, p.y_row += 5; /* oneDNN takes only rows without a gap */
    p.x = malloc(images * rows * p.x_row * sizeof(float));
    p.w = malloc(n_out * n_in * sizeof(float));
    p.bias = malloc(n_out * sizeof(float));
    p.y0 = malloc(images * rows * p.y_row * sizeof(float));
    fill(p.x, images * rows * p.x_row);
    fill(p.w, n_out * n_in);
    fill(p.bias, n_out);
    fill(p.y0, images * rows * p.y_row);
    return p;
}

static void problem_free(problem *p) { free(p->x), free(p->w), free(p->bias), free(p->y0); }

/* y for the first rows of the first n images, computed with so many "threads" (called in turn,
 * tiles backwards). */
static float *solve_rows(const problem *p, ry_linear_backend backend, unsigned threads, size_t n,
                         size_t rows)
{
    ry_linear *l;
    ry_linear_op *op;
    const ry_linear_spec spec = {p->w, p->bias, p->n_out, p->n_in, p->epilogue};
    const size_t floats = p->images * p->rows * p->y_row;
    float *y = malloc(floats * sizeof(float));
    memcpy(y, p->y0, floats * sizeof(float));
    assert_int_equal(ry_linear_new_backend(&l, &spec, backend, NULL, NULL), RENYI_OK);
    assert_int_equal(ry_linear_op_new(&op, l, p->rows, (ry_rows){p->x_row, p->rows * p->x_row},
                                      (ry_rows){p->y_row, p->rows * p->y_row}, threads, NULL, NULL),
                     RENYI_OK);
    const ry_extent run = {n, rows};
    for (size_t t = ry_linear_op_tiles(op, run); t-- > 0;)
        ry_linear_op_tile(op, t, run, (unsigned)(t % threads), p->x, y);
    ry_linear_op_free(op, NULL);
    ry_linear_free(l, NULL);
    return y;
}

static float *solve(const problem *p, ry_linear_backend backend, unsigned threads, size_t n)
{
    return solve_rows(p, backend, threads, n, p->rows);
}

static double apply(ry_epilogue e, double v, double before)
{
    switch (e) {
    case RY_EPI_NONE: return v;
    case RY_EPI_GELU: return 0.5 * v * (1.0 + erf(v / sqrt(2.0)));
    case RY_EPI_RESIDUAL: return before + v;
    case RY_EPI_QUICKGELU: return v / (1.0 + exp(-1.702 * v));
    }
    return NAN;
}

static void check(const problem *p, const float *y, const char *name)
{
    for (size_t r = 0; r < p->images * p->rows; r++) {
        for (size_t j = 0; j < p->y_row; j++) {
            const size_t at = r * p->y_row + j;
            if (j >= p->n_out) { /* between the rows nothing may change */
                assert_memory_equal(&y[at], &p->y0[at], sizeof(float));
                continue;
            }
            double want = (double)p->bias[j], mag = fabs(want) + 1.0;
            for (size_t k = 0; k < p->n_in; k++) {
                const double term = (double)p->x[r * p->x_row + k] * (double)p->w[j * p->n_in + k];
                want += term;
                mag += fabs(term);
            }
            want = apply(p->epilogue, want, (double)p->y0[at]);
            const double bound = 1.2 * dot_bound(p->n_in, mag) + 2e-6; /* 2e-6: gelu's polynomial */
            if (!(fabs((double)y[at] - want) <= bound))
                fail_msg("%s: [%zu x %zu x %zu] epilogue %d row %zu col %zu: %g, want %g", name,
                         p->images * p->rows, p->n_out, p->n_in, (int)p->epilogue, r, j,
                         (double)y[at], want);
        }
    }
}

static void test_against_double(void **state)
{
    (void)state;
    static const size_t shapes[][4] = {/* images, rows, n_out, n_in */
                                       {1, 1, 1, 1},      {1, 7, 16, 8},     {2, 13, 17, 5},
                                       {1, 5, 100, 64},   {3, 11, 33, 400},  {1, 97, 48, 24},
                                       {1, 6, 1000, 192}, {2, 50, 192, 768}, {1, 65, 800, 40}};
    for (size_t b = 0; b < 3; b++) {
        if (!backend_here(backends[b])) continue;
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int e = RY_EPI_NONE; e <= RY_EPI_QUICKGELU; e++) {
                problem p = problem_new(backends[b], shapes[s][0], shapes[s][1], shapes[s][2],
                                        shapes[s][3], (ry_epilogue)e);
                float *y = solve(&p, backends[b], 1, p.images);
                check(&p, y, backend_names[b]);
                free(y);
                problem_free(&p);
            }
    }
}

/* Row by row the same bits, whatever the number of threads and images. */
static void test_same_bits(void **state)
{
    (void)state;
    for (size_t b = 0; b < 3; b++) {
        if (!backend_here(backends[b])) continue;
        problem p = problem_new(backends[b], 5, 197, 384, 200, RY_EPI_GELU);
        float *all = solve(&p, backends[b], 1, 5);
        for (unsigned threads = 2; threads <= 7; threads += 5)
            for (size_t n = 1; n <= 5; n += 2) {
                float *some = solve(&p, backends[b], threads, n);
                assert_memory_equal(all, some, n * p.rows * p.y_row * sizeof(float));
                free(some);
            }
        free(all);
        problem_free(&p);
    }
}

/* Fewer rows than the op is bound to: the same bits in these, and nothing written beyond the bound
 * rows; by our own bodies not even in the rows that were left out. */
static void test_fewer_rows(void **state)
{
    (void)state;
    for (size_t b = 0; b < 3; b++) {
        if (!backend_here(backends[b])) continue;
        problem p = problem_new(backends[b], 3, 150, 40, 33, RY_EPI_RESIDUAL);
        float *all = solve(&p, backends[b], 1, 3);
        for (size_t rows = 1; rows <= p.rows; rows += rows < 8 ? 1 : 47) {
            float *some = solve_rows(&p, backends[b], 2, 3, rows);
            for (size_t i = 0; i < 3; i++) {
                const size_t at = i * p.rows * p.y_row, done = rows * p.y_row;
                assert_memory_equal(all + at, some + at, done * sizeof(float));
                if (backends[b] != RY_LINEAR_ONEDNN)
                    assert_memory_equal(p.y0 + at + done, some + at + done,
                                        (p.rows * p.y_row - done) * sizeof(float));
            }
            free(some);
        }
        free(all);
        problem_free(&p);
    }
}

/* NaN and infinity in one row must not leak into another. */
static void test_rows_are_apart(void **state)
{
    (void)state;
    for (size_t b = 0; b < 3; b++) {
        if (!backend_here(backends[b])) continue;
        problem p = problem_new(backends[b], 1, 20, 48, 96, RY_EPI_RESIDUAL);
        float *clean = solve(&p, backends[b], 1, 1);
        for (size_t k = 0; k < p.n_in; k++) p.x[7 * p.x_row + k] = k % 2 ? NAN : INFINITY;
        float *dirty = solve(&p, backends[b], 1, 1);
        for (size_t r = 0; r < p.rows; r++)
            for (size_t j = 0; j < p.n_out; j++) {
                const size_t at = r * p.y_row + j;
                if (r == 7)
                    assert_true(isnan(dirty[at]));
                else
                    assert_memory_equal(&clean[at], &dirty[at], sizeof(float));
            }
        free(clean);
        free(dirty);
        problem_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_double), cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_fewer_rows), cmocka_unit_test(test_rows_are_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
