/* test_int8_words.c - the 8-bit product with vectors gives the integers of plain C where sums of
 * 16 bits do not fit: rows as unlike the others as they can be, and weights of their signs.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/cpu.h"
#include "fixtures/kernel_test.h"
#include "kernels/linear/linear.h"

#include <string.h>

enum { N_OUT = 40 }; /* three panels, the last one not full */

/* EDGE: every chunk of 16 inputs has its own signs, so with the mean, 128, the words of weights and
 * rows are 8 x 64 x 63 = 32256, which fits, and 8 x 64 x 64 = 32768, which does not. */
typedef enum kind { RANDOM, SMALL, LARGE, SIGNS, OUTLIER, EDGE, N_KINDS } kind;

/* Whole numbers that every CPU level can compute with: two neighbours of one sign are at most 128
 * together. */
static float weight(kind of, size_t j, size_t k, float random)
{
    switch (of) {
    case SMALL: return (float)((j + k) % 3) - 1.0f;
    case LARGE: return (j + k) % 2 ? -127.0f : 127.0f;
    case SIGNS: return (j + k / 8) % 2 ? -63.0f : 64.0f - (float)(k % 2);
    case EDGE: return (j + k / 16) % 2 ? -64.0f : 64.0f;
    default: return rintf(random * 63.0f);
    }
}

/* Numbers 0 .. 255, both ends in every row: so a row is converted without a change. */
static float input(kind of, size_t r, size_t k, float random)
{
    if (k < 2) return k ? 255.0f : 0.0f;
    switch (of) {
    case SMALL: return (float)(3 * (r % 80) + k % 3);
    case LARGE: return (r + k) % 2 ? 255.0f : 0.0f;
    case SIGNS: return (r + k / 8) % 2 ? 255.0f : 0.0f;
    case OUTLIER: return k % 29 == r % 29 ? 255.0f : 7.0f + (float)(k % 5);
    case EDGE: return 128.0f + (k / 16 % 2 ? -1.0f : 1.0f) * (float)(k / 32 % 3 ? 63 : 64);
    default: return rintf(127.5f + 127.0f * random);
    }
}

static float *product(ry_linear_backend b, const float *w, const float *x, size_t rows, size_t n_in)
{
    float scale[N_OUT];
    for (size_t j = 0; j < N_OUT; j++) scale[j] = 1.0f;
    const ry_linear_spec spec = {
        .w = w, .n_out = N_OUT, .n_in = n_in, .dtype = RENYI_DTYPE_INT8, .scale = scale};
    const ry_extent run = {1, rows};
    ry_linear *l;
    ry_linear_op *op;
    assert_int_equal(ry_linear_new_backend(&l, &spec, b, NULL, NULL), RENYI_OK);
    assert_int_equal(ry_linear_op_new(&op, l, rows, (ry_rows){n_in, rows * n_in},
                                      (ry_rows){N_OUT, rows * N_OUT}, 1, NULL, NULL),
                     RENYI_OK);
    float *y = malloc(rows * N_OUT * sizeof *y);
    void *low = malloc(ry_linear_input_bytes(l, rows));
    for (size_t t = 0; t < (rows + RY_CONVERT_ROWS - 1) / RY_CONVERT_ROWS; t++)
        ry_linear_op_convert(op, t, run, x, low);
    for (size_t t = 0; t < ry_linear_op_tiles(op, run); t++)
        ry_linear_op_tile(op, t, run, 0, low, y);
    free(low);
    ry_linear_op_free(op, NULL);
    ry_linear_free(l, NULL);
    return y;
}

static void check(kind of_w, kind of_x, size_t rows, size_t n_in)
{
    float *w = malloc(N_OUT * n_in * sizeof *w), *x = malloc(rows * n_in * sizeof *x);
    fill_random(w, N_OUT * n_in);
    fill_random(x, rows * n_in);
    for (size_t i = 0; i < N_OUT * n_in; i++) w[i] = weight(of_w, i / n_in, i % n_in, w[i]);
    for (size_t i = 0; i < rows * n_in; i++) x[i] = input(of_x, i / n_in, i % n_in, x[i]);
    float *expected = product(RY_LINEAR_INT8_SCALAR, w, x, rows, n_in);
    float *found = product(RY_LINEAR_INT8_VEC8, w, x, rows, n_in);
    for (size_t i = 0; i < rows * N_OUT; i++)
        if (expected[i] != found[i])
            fail_msg("weights %d, rows %d, %zu x %zu, row %zu, output %zu: %g, not %g", (int)of_w,
                     (int)of_x, rows, n_in, i / N_OUT, i % N_OUT, (double)found[i],
                     (double)expected[i]);
    free(w), free(x), free(expected), free(found);
}

static void test_same_integers(void **state)
{
    static const size_t rows[] = {1, 15, 17, 93, 97};
    static const size_t depths[] = {60, 64, 192, 1088, 1100};
    (void)state;
    if (renyi_cpu_detect() < RENYI_CPU_AVX2) skip();
    for (int w = 0; w < N_KINDS; w++)
        for (int x = 0; x < N_KINDS; x++)
            for (size_t i = 0; i < 5; i++)
                for (size_t k = 0; k < 5; k++) check(w, x, rows[i], depths[k]);
}

static void test_deep(void **state)
{
    (void)state;
    if (renyi_cpu_detect() < RENYI_CPU_AVX2) skip();
    for (int x = 0; x < N_KINDS; x++) {
        check(SIGNS, x, 17, 8192);
        check(SIGNS, x, 17, 8256); /* deeper than sums of 16 bits are used */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_integers),
                                       cmocka_unit_test(test_deep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
