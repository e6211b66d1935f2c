/* test_linear_stored.c - weights of bf16, int8 and int4: all CPU levels compute the same bits;
 * borrowed panels, and rows that are read while they are packed, give the same linear as floats; a
 * row alone has the same bits as among others; the accuracy of 4 bits.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/status.h"
#include "base/thread_pool.h"
#include "fixtures/test_heap.h"
#include "kernels/linear/panels.h"
#include "kernels/linear/quant.h"
#include "linear_run.h"

#include <stdatomic.h>
#include <stdio.h>

static const shape shapes[] = {{1, 1, 1},   {3, 16, 32},   {5, 17, 33},    {13, 100, 64},
                               {2, 40, 95}, {98, 49, 200}, {7, 208, 1100}, {101, 16, 1024}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

typedef struct numbers {
    float *w, *bias, *x;
} numbers;

static numbers numbers_new(shape s)
{
    numbers n = {malloc(s.n_out * s.n_in * sizeof(float)), malloc(s.n_out * sizeof(float)),
                 malloc(s.rows * s.n_in * sizeof(float))};
    fill_random(n.w, s.n_out * s.n_in);
    fill_random(n.bias, s.n_out);
    fill_random(n.x, s.rows * s.n_in);
    return n;
}

static void numbers_free(numbers *n) { free(n->w), free(n->bias), free(n->x); }

static ry_linear_spec spec_of(const numbers *n, shape s, renyi_dtype dtype)
{
    return (ry_linear_spec){.w = n->w,
                            .bias = n->bias,
                            .n_out = s.n_out,
                            .n_in = s.n_in,
                            .dtype = dtype,
                            .few_rows = 1};
}

static const renyi_dtype kinds[] = {RENYI_DTYPE_BF16, RENYI_DTYPE_INT8, RENYI_DTYPE_INT4};

static void check_levels(renyi_cpu level)
{
    for (size_t i = 0; i < N_SHAPES; i++)
        for (int k = 0; k < 3; k++) {
            const shape s = shapes[i];
            numbers n = numbers_new(s);
            const ry_linear_spec spec = spec_of(&n, s, kinds[k]);
            ry_linear *l = linear_new(&spec, level);
            float *all = run_linear(l, s, n.x, s.rows);
            check_same("row by row", s, run_linear(l, s, n.x, 1), all);
            check_same("three by three", s, run_linear(l, s, n.x, 3), all);
            if (kinds[k] != RENYI_DTYPE_INT8) { /* plain C uses other int8 weights */
                ry_linear *scalar = linear_new(&spec, RENYI_CPU_SCALAR);
                check_same("plain C", s, run_linear(scalar, s, n.x, s.rows), all);
                ry_linear_free(scalar, NULL);
            }
            free(all);
            ry_linear_free(l, NULL);
            numbers_free(&n);
        }
}

static void test_levels_have_the_same_bits(void **state)
{
    (void)state;
    for_levels(check_levels);
}

/* ---- readers and stored panels ----------------------------------------------------------------
 */

typedef struct source {
    const float *w;
    size_t n_in;
    size_t fails; /* rows from this one on cannot be read */
    atomic_size_t read, too_many;
} source;

/* Threads call it at the same time. */
static renyi_status read_rows(void *user, size_t first, size_t count, void *to, renyi_error *err)
{
    source *s = user;
    atomic_fetch_add(&s->read, count);
    atomic_fetch_add(&s->too_many, count > 2 * RY_PANEL);
    memcpy(to, s->w + first * s->n_in, count * s->n_in * sizeof(float));
    if (first + count <= s->fails) return RENYI_OK;
    const size_t bad = first > s->fails ? first : s->fails;
    return ry_fail(err, RENYI_ERR_IO, -1, "row %zu is bad", bad);
}

/* Whichever thread fails first, the error is that of the first bad row. */
static void check_failures(const ry_linear_spec *given, renyi_cpu level, source *from)
{
    const ry_linear_reader reader = {read_rows, from};
    ry_linear_spec spec = *given;
    spec.w = NULL;
    spec.reader = &reader;
    for (from->fails = 0; from->fails < spec.n_out; from->fails += 19) {
        renyi_error e;
        ry_linear *l;
        char want[40];
        snprintf(want, sizeof want, "row %zu is bad", from->fails);
        assert_int_equal(ry_linear_new(&l, &spec, level, NULL, &e), RENYI_ERR_IO);
        assert_null(l);
        assert_string_equal(e.message, want);
        assert_int_equal(ry_linear_new(&l, &spec, level, NULL, NULL), RENYI_ERR_IO);
    }
}

static void check_reader(ry_thread_pool *pool)
{
    const shape s = {4, 333, 130};
    numbers n = numbers_new(s);
    for (renyi_cpu level = RENYI_CPU_SCALAR; level <= renyi_cpu_detect(); level++)
        for (int dtype = RENYI_DTYPE_F32; dtype <= RENYI_DTYPE_INT4; dtype++) {
            if (dtype == RENYI_DTYPE_AUTO) continue;
            source from = {.w = n.w, .n_in = s.n_in, .fails = s.n_out};
            const ry_linear_reader reader = {read_rows, &from};
            ry_linear_spec spec = spec_of(&n, s, (renyi_dtype)dtype);
            ry_linear *want = linear_new(&spec, level), *l;
            float *y = run_linear(want, s, n.x, s.rows);
            spec.w = NULL;
            spec.reader = &reader;
            spec.pool = pool;
            l = linear_new(&spec, level);
            check_same("reader", s, run_linear(l, s, n.x, s.rows), y);
            assert_int_equal(from.read, s.n_out); /* every row once, a few at a time */
            assert_int_equal(from.too_many, 0);
            free(y);
            ry_linear_free(l, NULL);
            ry_linear_free(want, NULL);
            check_failures(&spec, level, &from);
        }
    numbers_free(&n);
}

static void test_reader(void **state)
{
    ry_thread_pool *pool;
    (void)state;
    assert_int_equal(ry_thread_pool_new(&pool, 3, NULL, NULL), RENYI_OK);
    check_reader(NULL);
    check_reader(pool);
    ry_thread_pool_free(pool, NULL);
}

/* Panels as in a file: packed one by one, and borrowed from unaligned memory. */
static void check_stored(renyi_cpu level, renyi_dtype dtype, shape s)
{
    numbers n = numbers_new(s);
    ry_linear_spec spec = spec_of(&n, s, dtype);
    ry_linear *want = linear_new(&spec, level);
    const size_t bytes = ry_panel_bytes(dtype, s.n_in), n_panels = ry_panels_of(s.n_out);
    unsigned char *panels = malloc(n_panels * bytes + 8);
    float *scale = malloc(2 * n_panels * RY_PANEL * sizeof(float)),
          *sum = scale + n_panels * RY_PANEL;
    float *scratch = malloc((s.n_in + 64) * sizeof(float));
    for (size_t p = 0; p < n_panels; p++) {
        ry_panel panel = {.bytes = panels + 8 + p * bytes};
        const size_t j = p * RY_PANEL, count = s.n_out - j < RY_PANEL ? s.n_out - j : RY_PANEL;
        ry_panel_make(&panel, dtype, n.w + j * s.n_in, count, s.n_in, scratch);
        memcpy(scale + j, panel.scale, sizeof panel.scale);
        memcpy(sum + j, panel.sum, sizeof panel.sum);
    }
    const ry_linear_stored stored = {panels + 8, scale, sum};
    spec.w = NULL;
    spec.stored = &stored;
    ry_linear *l = linear_new(&spec, level);
    assert_int_equal(ry_linear_bytes(l), n_panels * bytes);
    assert_int_equal(ry_linear_bytes(want), n_panels * bytes);
    float *y = run_linear(want, s, n.x, s.rows);
    if (level > RENYI_CPU_SCALAR || dtype == RENYI_DTYPE_INT4) /* plain C uses other int8 weights */
        check_same("stored", s, run_linear(l, s, n.x, s.rows), y);
    free(y);
    ry_linear_free(l, NULL);
    ry_linear_free(want, NULL);
    free(panels), free(scale), free(scratch);
    numbers_free(&n);
}

static void test_stored(void **state)
{
    (void)state;
    for (renyi_cpu level = RENYI_CPU_SCALAR; level <= renyi_cpu_detect(); level++)
        for (size_t i = 0; i < N_SHAPES; i++)
            for (int k = 1; k < 3; k++) check_stored(level, kinds[k], shapes[i]);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    const shape s = {1, 20, 40};
    numbers n = numbers_new(s);
    for (int k = 0; k < 3; k++) {
        const ry_linear_spec spec = spec_of(&n, s, kinds[k]);
        renyi_status st = RENYI_ERR_NOMEM;
        for (size_t fail_at = 1; st; fail_at++) {
            test_heap heap = {.fail_at = fail_at};
            const renyi_allocator al = test_heap_of(&heap);
            ry_linear *l;
            st = ry_linear_new(&l, &spec, renyi_cpu_detect(), &al, NULL);
            assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
            ry_linear_free(l, &al);
            assert_int_equal(heap.live, 0);
        }
    }
    numbers_free(&n);
}

/* ---- 4 bits -------------------------------------------------------------------------------- */

/* The error of normally distributed weights is below 8.5 percent; and a group that is much smaller
 * than the others of its channel keeps its accuracy. */
static void test_accuracy_of_4_bits(void **state)
{
    (void)state;
    enum { N = 4096 };
    float w[N], step[N / RY_GROUP];
    uint8_t q[N];
    double lost = 0.0, all = 0.0;
    for (size_t k = 0; k < N; k++) w[k] = (float)ry_rng_truncated_normal(&test_rng);
    for (size_t k = 64; k < 96; k++) w[k] *= 0.02f;
    const float scale = ry_quant4_channel(q, step, w, N);
    for (size_t k = 0; k < N; k++) {
        const double seen = (double)scale * (double)step[k / RY_GROUP] * (q[k] - RY_INT4_ZERO);
        assert_in_range(q[k], 0, 15);
        lost += (seen - (double)w[k]) * (seen - (double)w[k]);
        all += (double)w[k] * (double)w[k];
        if (k / RY_GROUP == 2) assert_true(fabs(seen - (double)w[k]) < 0.008);
    }
    assert_true(sqrt(lost / all) < 0.085);
}

static void test_unusual_channels(void **state)
{
    (void)state;
    float w[40] = {0}, step[2];
    uint8_t q[40];
    assert_true(ry_quant4_channel(q, step, w, 40) == 0.0f);
    w[7] = 1e-38f;
    assert_true(ry_quant4_channel(q, step, w, 40) == 0.0f);
    w[7] = NAN;
    assert_true(isnan(ry_quant4_channel(q, step, w, 40)));
    w[7] = 1.0f, w[39] = -INFINITY;
    assert_true(isnan(ry_quant4_channel(q, step, w, 40)));
    w[39] = -3e38f;
    assert_true(isfinite(ry_quant4_channel(q, step, w, 40)));
    assert_int_equal(q[7], RY_INT4_ZERO);
    assert_in_range(q[39], 0, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels_have_the_same_bits),
                                       cmocka_unit_test(test_reader),
                                       cmocka_unit_test(test_stored),
                                       cmocka_unit_test(test_out_of_memory),
                                       cmocka_unit_test(test_accuracy_of_4_bits),
                                       cmocka_unit_test(test_unusual_channels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
