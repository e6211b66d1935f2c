/* test_attention.c - attention at every level against double. The bits of the output do not depend
 * on a list of rows or on whether scores are computed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/attention_test.h"

/* Sizes of the largest problem below. */
enum { TOKENS = 128, WIDTH = 192 };

static const size_t shapes[][3] = {/* N, H, d */ {1, 1, 4},
                                   {2, 1, 64},
                                   {5, 2, 3},
                                   {16, 1, 8},
                                   {17, 3, 20},
                                   {31, 2, 64},
                                   {33, 1, 24},
                                   {50, 2, 80},
                                   {64, 1, 16},
                                   {71, 2, 40}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static void check_outputs(const ry_kernels *k)
{
    static float out[TOKENS * WIDTH], class_row[TOKENS];
    for (size_t s = 0; s < 2 * N_SHAPES; s++) {
        const size_t *shape = shapes[s / 2], N = shape[0], H = shape[1];
        problem p = problem_new(N, H, shape[2], s % 2);
        solve(&p, k, &(request){.out = out, .class_row = class_row});
        for (size_t i = 0; i < N * H * shape[2]; i++)
            assert_true(fabs((double)out[i] - p.out[i]) <= 1e-5);
        for (size_t j = 0; j < N; j++) {
            double mean = 0.0;
            for (size_t h = 0; h < H; h++) mean += p.a[h * N * N + j] / (double)H;
            assert_true(fabs((double)class_row[j] - mean) <= 2e-5 * mean + 1e-9);
        }
        problem_free(&p);
    }
}

static void test_outputs(void **state)
{
    (void)state;
    at_every_level(check_outputs, &sixteen);
}

/* All numbers of tokens around the sizes of tiles. */
static void check_tails(const ry_kernels *k)
{
    static float out[TOKENS * WIDTH];
    for (size_t N = 1; N <= 70; N++) {
        problem p = problem_new(N, 1, 8, 0);
        solve(&p, k, &(request){.out = out});
        for (size_t i = 0; i < N * 8; i++) assert_true(fabs((double)out[i] - p.out[i]) <= 1e-5);
        problem_free(&p);
    }
}

static void test_tails(void **state)
{
    (void)state;
    at_every_level(check_tails, &sixteen);
}

/* The output has the same bits with scores of any kind, and the scores without an output. */
static void check_independence(const ry_kernels *k)
{
    static float plain[TOKENS * WIDTH], out[TOKENS * WIDTH];
    static const ry_column_spec specs[] = {{RY_COLUMN_NORM, 4.0, 0, 0, 0, 0},
                                           {RY_COLUMN_NORM, 2.5, 1, 0, 1, 0},
                                           {RY_COLUMN_POWER, 1.0, 0, 0, 0, 1},
                                           {RY_COLUMN_ENTROPY, 2.0, 1, 1, 0, 0}};
    float with[TOKENS], without[TOKENS], class_with[TOKENS], class_without[TOKENS];
    for (size_t s = 0; s < N_SHAPES; s++) {
        const size_t N = shapes[s][0], bytes = N * shapes[s][1] * shapes[s][2] * sizeof(float);
        problem p = problem_new(N, shapes[s][1], shapes[s][2], 1);
        solve(&p, k, &(request){.out = plain});
        solve(&p, k, &(request){.class_row = class_without});
        for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
            solve(&p, k, &(request){out, class_with, with, specs[i], NULL, 0});
            solve(&p, k, &(request){.columns = without, .spec = specs[i]});
            assert_memory_equal(plain, out, bytes);
            assert_memory_equal(with, without, N * sizeof(float));
            assert_memory_equal(class_with, class_without, N * sizeof(float));
        }
        problem_free(&p);
    }
}

static void test_independence(void **state)
{
    (void)state;
    at_every_level(check_independence, &sixteen);
}

/* Some rows, in any order, have the same bits as among all rows. */
static void check_rows(const ry_kernels *k)
{
    static float whole[TOKENS * WIDTH], out[TOKENS * WIDTH];
    float class_whole[TOKENS], class_row[TOKENS];
    for (size_t s = 0; s < N_SHAPES; s++) {
        const size_t N = shapes[s][0], C = shapes[s][1] * shapes[s][2];
        problem p = problem_new(N, shapes[s][1], shapes[s][2], 0);
        solve(&p, k, &(request){.out = whole, .class_row = class_whole});
        for (size_t count = 1; count <= N; count += count < 8 ? 1 : 11) {
            uint32_t rows[TOKENS] = {0}; /* the class row, then some of the others */
            for (size_t r = 1; r < count; r++) rows[r] = (uint32_t)(1 + (r * 7 + s) % (N - 1));
            memset(out, 0xff, sizeof out);
            solve(&p, k,
                  &(request){.out = out, .class_row = class_row, .rows = rows, .n_rows = count});
            for (size_t r = 0; r < count; r++)
                assert_memory_equal(out + r * C, whole + rows[r] * C, C * sizeof(float));
            for (size_t i = count * C; i < sizeof out / sizeof *out; i++)
                assert_true(isnan(out[i])); /* nothing after the last row */
            assert_memory_equal(class_row, class_whole, N * sizeof(float));
        }
        problem_free(&p);
    }
}

static void test_rows(void **state)
{
    (void)state;
    at_every_level(check_rows, &sixteen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_outputs), cmocka_unit_test(test_tails),
                                       cmocka_unit_test(test_independence),
                                       cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
