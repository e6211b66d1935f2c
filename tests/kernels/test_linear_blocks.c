/* test_linear_blocks.c - products with blocks of Q4_0 and Q8_0 as they are: the packed panels hold
 * the numbers and scales of the blocks, bit by bit; all CPU levels compute the same bits, which are
 * those of a row alone; the results are those of double arithmetic with the weights that the blocks
 * mean.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/half.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "fixtures/test_heap.h"
#include "kernels/linear/linear_backend.h"
#include "linear_run.h"

static const shape shapes[] = {{1, 1, 32},    {3, 16, 64},    {5, 17, 96},     {13, 100, 128},
                               {98, 49, 224}, {7, 208, 1056}, {101, 16, 1024}, {4, 333, 2080}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
static const ry_linear_blocks kinds[] = {RY_BLOCKS_Q4, RY_BLOCKS_Q8};

/* Blocks of a matrix, as in a file. */
typedef struct matrix {
    ry_linear_blocks kind;
    shape s;
    size_t block, row; /* bytes */
    uint8_t *bytes;    /* [n_out, row] */
    size_t fails;      /* rows from this one on cannot be read */
} matrix;

/* Random numbers; scales of both signs, also 0, the largest and subnormal ones. */
static matrix matrix_new(ry_linear_blocks kind, shape s, int odd_scales)
{
    static const uint16_t odd[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff, 0x3c00};
    matrix m = {.kind = kind, .s = s, .block = kind == RY_BLOCKS_Q4 ? 18 : 34, .fails = s.n_out};
    m.row = s.n_in / 32 * m.block;
    m.bytes = malloc(s.n_out * m.row);
    for (size_t i = 0; i < s.n_out * m.row; i++) m.bytes[i] = (uint8_t)ry_rng_next(&test_rng);
    for (size_t i = 0; i < s.n_out * m.row; i += m.block) {
        const uint64_t pick = ry_rng_next(&test_rng);
        const float d = (float)ry_rng_truncated_normal(&test_rng) * 0.01f;
        const uint16_t half = odd_scales && pick % 4 == 0 ? odd[pick / 4 % 7] : ry_half_of(d);
        m.bytes[i] = (uint8_t)half, m.bytes[i + 1] = (uint8_t)(half >> 8);
    }
    return m;
}

/* What the file means by number k of output j. */
static int number_of(const matrix *m, size_t j, size_t k)
{
    const uint8_t *numbers = m->bytes + j * m->row + k / 32 * m->block + 2;
    if (m->kind == RY_BLOCKS_Q8) return (int8_t)numbers[k % 32];
    return (k % 32 < 16 ? numbers[k % 16] & 15 : numbers[k % 16] >> 4) - 8;
}

static uint16_t scale_bits(const matrix *m, size_t j, size_t group)
{
    const uint8_t *block = m->bytes + j * m->row + group * m->block;
    return (uint16_t)(block[0] | block[1] << 8);
}

/* ry_linear_reader.rows */
static renyi_status read_rows(void *user, size_t first, size_t count, void *to, renyi_error *err)
{
    const matrix *m = user;
    memcpy(to, m->bytes + first * m->row, count * m->row);
    if (first + count <= m->fails) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_IO, -1, "a bad row");
}

static ry_linear *blocks_new(matrix *m, const float *bias, renyi_cpu level, ry_thread_pool *pool)
{
    const ry_linear_reader reader = {read_rows, m};
    const ry_linear_spec spec = {.bias = bias,
                                 .n_out = m->s.n_out,
                                 .n_in = m->s.n_in,
                                 .reader = &reader,
                                 .blocks = m->kind,
                                 .pool = pool};
    return linear_new(&spec, level);
}

/* ---- panels -------------------------------------------------------------------------------- */

static void check_panels(const matrix *m, const ry_linear *l)
{
    const ry_groups g = l->groups;
    const size_t size = ry_groups_panel(g, m->s.n_in);
    assert_int_equal(ry_linear_bytes(l), ry_panels_of(m->s.n_out) * size);
    for (size_t j = 0; j < m->s.n_out; j++) {
        const uint8_t *panel = (const uint8_t *)l->packed + j / RY_PANEL * size;
        const size_t lane = j % RY_PANEL;
        assert_true(l->scale[j] == 1.0f);
        for (size_t i = 0; i < m->s.n_in / 32; i++) {
            const uint8_t *step = panel + ry_group_step_place(g, lane, i);
            const float want = ry_half_to_float(scale_bits(m, j, i));
            const float got = ry_group_step(g, panel, lane, i);
            assert_int_equal(step[0] | step[1] << 8, scale_bits(m, j, i));
            assert_memory_equal(&got, &want, sizeof want);
        }
        for (size_t k = 0; k < m->s.n_in; k++)
            if (ry_group_number(g, panel, lane, k) != number_of(m, j, k))
                fail_msg("output %zu, input %zu: another number", j, k);
    }
}

static void test_panels_hold_the_blocks(void **state)
{
    (void)state;
    ry_thread_pool *pool;
    assert_int_equal(ry_thread_pool_new(&pool, 3, NULL, NULL), RENYI_OK);
    for (renyi_cpu level = RENYI_CPU_SCALAR; level <= renyi_cpu_detect(); level++)
        for (size_t i = 0; i < N_SHAPES; i++)
            for (int k = 0; k < 2; k++) {
                matrix m = matrix_new(kinds[k], shapes[i], 1);
                ry_linear *l = blocks_new(&m, NULL, level, i % 2 ? pool : NULL);
                check_panels(&m, l);
                ry_linear_free(l, NULL);
                free(m.bytes);
            }
    ry_thread_pool_free(pool, NULL);
}

/* ---- products ------------------------------------------------------------------------------ */

/* Row x as the product reads it, in double. */
static void seen_row(double *to, const float *x, size_t n_in)
{
    const size_t depth = ry_int4_depth(n_in);
    ry_group *groups = malloc(depth / RY_GROUP * sizeof *groups);
    int8_t *q = malloc(depth);
    ry_quant4_row(groups, q, x, n_in, depth);
    for (size_t k = 0; k < n_in; k++) to[k] = (double)groups[k / RY_GROUP].step * q[k];
    free(groups), free(q);
}

/* Sums of floats are off by at most n_in / 32 + 3 roundings of the sum of absolute values. */
static void check_values(const matrix *m, const float *x, const float *bias, const float *y)
{
    double *seen = malloc(m->s.n_in * sizeof *seen);
    for (size_t r = 0; r < m->s.rows; r++) {
        seen_row(seen, x + r * m->s.n_in, m->s.n_in);
        for (size_t j = 0; j < m->s.n_out; j++) {
            double sum = (double)bias[j], most = fabs(sum);
            for (size_t k = 0; k < m->s.n_in; k++) {
                const double d = (double)ry_half_to_float(scale_bits(m, j, k / 32));
                const double product = seen[k] * d * number_of(m, j, k);
                sum += product, most += fabs(product);
            }
            const double off = fabs((double)y[r * m->s.n_out + j] - sum);
            if (!(off <= 0x1p-23 * ((double)m->s.n_in / 32 + 3) * most))
                fail_msg("row %zu, output %zu: off by %g of %g", r, j, off, most);
        }
    }
    free(seen);
}

static void check_product(matrix *m, const float *x, renyi_cpu level)
{
    float *bias = malloc(m->s.n_out * sizeof *bias);
    fill_random(bias, m->s.n_out);
    ry_linear *l = blocks_new(m, bias, level, NULL);
    ry_linear *scalar = blocks_new(m, bias, RENYI_CPU_SCALAR, NULL);
    float *all = run_linear(l, m->s, x, m->s.rows);
    check_values(m, x, bias, all);
    check_same("row by row", m->s, run_linear(l, m->s, x, 1), all);
    check_same("three by three", m->s, run_linear(l, m->s, x, 3), all);
    check_same("plain C", m->s, run_linear(scalar, m->s, x, m->s.rows), all);
    ry_linear_free(l, NULL);
    ry_linear_free(scalar, NULL);
    free(all), free(bias);
}

static void check_level(renyi_cpu level)
{
    for (size_t i = 0; i < 2 * N_SHAPES; i++) {
        matrix m = matrix_new(kinds[i % 2], shapes[i / 2], 0);
        float *x = malloc(m.s.rows * m.s.n_in * sizeof *x);
        fill_random(x, m.s.rows * m.s.n_in);
        check_product(&m, x, level);
        free(x), free(m.bytes);
    }
}

static void test_products(void **state)
{
    (void)state;
    for_levels(check_level);
}

/* The largest numbers of both signs: no sum of 16 bits may overflow, and -128 has no positive. */
static void check_extremes(renyi_cpu level)
{
    static const uint8_t numbers[] = {0x80, 0x7f, 0x81, 0x00};
    const shape s = {5, 16, 96};
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < 16; i++) {
            matrix m = matrix_new(kinds[kind], s, 0);
            float x[5 * 96];
            for (size_t k = 0; k < sizeof x / sizeof *x; k++)
                x[k] = (i & 4 && k % 2) || (i & 8 && k % 3) ? -2.0f : 2.0f;
            for (size_t at = 0; at < s.n_out * m.row; at++)
                if (at % m.block > 1) m.bytes[at] = numbers[(i + at % 2 * (i & 3)) % 4];
            check_product(&m, x, level);
            free(m.bytes);
        }
}

static void test_extremes(void **state)
{
    (void)state;
    for_levels(check_extremes);
}

/* NaN and infinity among activations make a row of NaN, as with floats. */
static void check_not_finite(renyi_cpu level)
{
    const shape s = {3, 20, 64};
    for (int k = 0; k < 2; k++) {
        matrix m = matrix_new(kinds[k], s, 0);
        float x[3 * 64];
        fill_random(x, 3 * 64);
        x[64 + 40] = k ? INFINITY : NAN;
        ry_linear *l = blocks_new(&m, NULL, level, NULL);
        float *y = run_linear(l, s, x, 3);
        for (size_t i = 0; i < 3 * 20; i++) assert_int_equal(isnan(y[i]) != 0, i / 20 == 1);
        ry_linear_free(l, NULL);
        free(y), free(m.bytes);
    }
}

static void test_not_finite(void **state)
{
    (void)state;
    for_levels(check_not_finite);
}

/* ---- failures ------------------------------------------------------------------------------ */

static void test_failures(void **state)
{
    (void)state;
    const shape s = {1, 40, 64};
    for (int k = 0; k < 2; k++) {
        matrix m = matrix_new(kinds[k], s, 0);
        const ry_linear_reader reader = {read_rows, &m};
        const ry_linear_spec spec = {
            .n_out = 40, .n_in = 64, .reader = &reader, .blocks = kinds[k], .few_rows = 1};
        renyi_status st = RENYI_ERR_NOMEM;
        renyi_error e;
        ry_linear *l;
        for (size_t fail_at = 1; st; fail_at++) {
            test_heap heap = {.fail_at = fail_at};
            const renyi_allocator al = test_heap_of(&heap);
            st = ry_linear_new(&l, &spec, renyi_cpu_detect(), &al, NULL);
            assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
            ry_linear_free(l, &al);
            assert_int_equal(heap.live, 0);
        }
        m.fails = 20;
        assert_int_equal(ry_linear_new(&l, &spec, renyi_cpu_detect(), NULL, &e), RENYI_ERR_IO);
        assert_null(l);
        assert_string_equal(e.message, "a bad row");
        free(m.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_panels_hold_the_blocks), cmocka_unit_test(test_products),
        cmocka_unit_test(test_extremes), cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
