/* test_linear.c - every implementation of linear.h against double: shapes with tails, strides
 * wider than a row, every epilogue. The bits must not depend on tiles, threads or images. With
 * fewer bits the reference uses the same rounded numbers (bf16, int8, int4). Weights replaced in
 * place give the same bits as a new linear.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/cpu.h"
#include "fixtures/kernel_test.h"
#include "fixtures/test_heap.h"
#include "kernels/linear/linear.h"
#include "kernels/linear/quant.h"

enum { N_BACKENDS = RY_LINEAR_BF16MM + 1 };
static const char *const backend_names[] = {
    "scalar",      "vec8",        "avx512",      "int8 scalar", "int8 vec8",
    "bf16 oneDNN", "int8 oneDNN", "bf16 scalar", "bf16 vec8",   "bf16 avx512",
    "int4 scalar", "int4 vec8",   "bf16 bfmmla"};

static int is_onednn(ry_linear_backend b)
{
    return b == RY_LINEAR_ONEDNN_BF16 || b == RY_LINEAR_ONEDNN_INT8;
}

/* oneDNN has bf16 from AVX-512 on. Its 8-bit product exists everywhere, but without VNNI it adds
 * pairs in 16 bits and saturates, so we do not use it there. */
static int backend_here(ry_linear_backend b)
{
#ifndef RY_HAS_ONEDNN
    if (is_onednn(b)) return 0;
#endif
    switch (b) {
    case RY_LINEAR_VEC8:
    case RY_LINEAR_BF16_VEC8:
    case RY_LINEAR_GROUPS_VEC8:
    case RY_LINEAR_INT8_VEC8: return renyi_cpu_detect() >= RENYI_CPU_AVX2;
    case RY_LINEAR_AVX512:
    case RY_LINEAR_BF16_AVX512:
    case RY_LINEAR_ONEDNN_BF16: return renyi_cpu_detect() >= RENYI_CPU_AVX512;
    case RY_LINEAR_ONEDNN_INT8: return ry_cpu_has_vnni();
#if defined(__aarch64__)
    case RY_LINEAR_BF16MM: return ry_cpu_has_bf16();
#else
    case RY_LINEAR_BF16MM: return 0;
#endif
    default: return 1;
    }
}

static int is_int8(ry_linear_backend b)
{
    return b == RY_LINEAR_INT8_SCALAR || b == RY_LINEAR_INT8_VEC8 || b == RY_LINEAR_ONEDNN_INT8;
}

static int is_int4(ry_linear_backend b)
{
    return b == RY_LINEAR_GROUPS_SCALAR || b == RY_LINEAR_GROUPS_VEC8;
}

static int keeps_bf16(ry_linear_backend b)
{
    return b >= RY_LINEAR_BF16_SCALAR && b <= RY_LINEAR_BF16_AVX512;
}

typedef struct problem {
    size_t images, rows, n_in, n_out, x_row, y_row;
    ry_epilogue epilogue;
    float *x, *w, *bias, *y0; /* y0: what y holds before the run */
    double *seen_x, *seen_w;  /* as the product reads them: [images * rows, n_in], [n_out, n_in] */
} problem;

static double from_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* round_row for int4. */
static void round_groups(double *to, const float *row, size_t n, int is_weight)
{
    const size_t depth = (n + 63) / 64 * 64;
    uint8_t *weight = malloc(n);
    int8_t *bytes = malloc(depth);
    float *step = malloc(depth / RY_GROUP * sizeof *step);
    ry_group *groups = malloc(depth / RY_GROUP * sizeof *groups);
    const float scale = ry_quant4_channel(weight, step, row, n);
    ry_quant4_row(groups, bytes, row, n, depth);
    for (size_t k = 0; k < n; k++)
        to[k] = is_weight ? (double)scale * (double)step[k / RY_GROUP] * (weight[k] - RY_INT4_ZERO)
                          : (double)groups[k / RY_GROUP].step * bytes[k];
    free(weight), free(bytes), free(step), free(groups);
}

/* One row of x or w, rounded as the implementation rounds it. */
static void round_row(double *to, const float *row, size_t n, ry_linear_backend b, int is_weight)
{
    if (is_int4(b)) {
        round_groups(to, row, n, is_weight);
        return;
    }
    int8_t *weight = malloc(n);
    uint8_t *bytes = malloc(n);
    uint16_t *halves = malloc(n * sizeof *halves);
    ry_quant quant;
    const float scale = ry_quant_channel(weight, row, n, b == RY_LINEAR_INT8_VEC8);
    ry_quant_scalar.quantize(bytes, n, &quant, row, n, 1, n, NULL);
    ry_quant_scalar.to_bf16(halves, n, row, n, 1, n);
    for (size_t k = 0; k < n; k++) {
        if (b == RY_LINEAR_ONEDNN_BF16 || b == RY_LINEAR_BF16MM || (keeps_bf16(b) && is_weight))
            to[k] = from_bf16(halves[k]);
        else if (!is_int8(b))
            to[k] = (double)row[k];
        else if (is_weight)
            to[k] = (double)scale * weight[k];
        else
            to[k] = (double)quant.low + (double)quant.scale * bytes[k];
    }
    free(weight), free(bytes), free(halves);
}

static problem problem_new(ry_linear_backend b, size_t images, size_t rows, size_t n_out,
                           size_t n_in, ry_epilogue e)
{
    problem p = {images, rows, n_in, n_out, n_in, n_out, e, NULL, NULL, NULL, NULL, NULL, NULL};
    if (!is_onednn(b)) p.x_row += 3, p.y_row += 5; /* oneDNN takes only rows without a gap */
    p.x = malloc(images * rows * p.x_row * sizeof(float));
    p.w = malloc(n_out * n_in * sizeof(float));
    p.bias = malloc(n_out * sizeof(float));
    p.y0 = malloc(images * rows * p.y_row * sizeof(float));
    fill_random(p.x, images * rows * p.x_row);
    fill_random(p.w, n_out * n_in);
    fill_random(p.bias, n_out);
    fill_random(p.y0, images * rows * p.y_row);
    p.seen_x = malloc(images * rows * n_in * sizeof(double));
    p.seen_w = malloc(n_out * n_in * sizeof(double));
    for (size_t r = 0; r < images * rows; r++)
        round_row(p.seen_x + r * n_in, p.x + r * p.x_row, n_in, b, 0);
    for (size_t j = 0; j < n_out; j++) round_row(p.seen_w + j * n_in, p.w + j * n_in, n_in, b, 1);
    return p;
}

static void problem_free(problem *p)
{
    free(p->x), free(p->w), free(p->bias), free(p->y0), free(p->seen_x), free(p->seen_w);
}

/* y for the first rows of the first n images, computed as by `threads` threads, tiles in reverse
 * order. */
static float *run_linear(const problem *p, const ry_linear *l, unsigned threads, size_t n,
                         size_t rows)
{
    ry_linear_op *op;
    const size_t floats = p->images * p->rows * p->y_row;
    float *y = malloc(floats * sizeof(float));
    memcpy(y, p->y0, floats * sizeof(float));
    assert_int_equal(ry_linear_op_new(&op, l, p->rows, (ry_rows){p->x_row, p->rows * p->x_row},
                                      (ry_rows){p->y_row, p->rows * p->y_row}, threads, NULL, NULL),
                     RENYI_OK);
    const ry_extent run = {n, rows};
    const size_t bytes = ry_linear_input_bytes(l, n * rows);
    void *low = bytes ? calloc(1, bytes) : NULL;
    assert_int_equal(ry_linear_op_converts(op), bytes != 0);
    for (size_t t = bytes ? (n * rows + RY_CONVERT_ROWS - 1) / RY_CONVERT_ROWS : 0; t-- > 0;)
        ry_linear_op_convert(op, t, run, p->x, low);
    for (size_t t = ry_linear_op_tiles(op, run); t-- > 0;)
        ry_linear_op_tile(op, t, run, (unsigned)(t % threads), low ? low : p->x, y);
    free(low);
    ry_linear_op_free(op, NULL);
    return y;
}

static float *solve_rows(const problem *p, ry_linear_backend backend, unsigned threads, size_t n,
                         size_t rows)
{
    ry_linear *l;
    const ry_linear_spec spec = {p->w, p->bias, p->n_out, p->n_in, p->epilogue, 0};
    assert_int_equal(ry_linear_new_backend(&l, &spec, backend, NULL, NULL), RENYI_OK);
    float *y = run_linear(p, l, threads, n, rows);
    ry_linear_free(l, NULL);
    return y;
}

static float *solve(const problem *p, ry_linear_backend backend, unsigned threads, size_t n)
{
    return solve_rows(p, backend, threads, n, p->rows);
}

static double apply_epilogue(ry_epilogue e, double v, double before)
{
    switch (e) {
    case RY_EPI_NONE: return v;
    case RY_EPI_GELU: return 0.5 * v * (1.0 + erf(v / sqrt(2.0)));
    case RY_EPI_RESIDUAL: return before + v;
    case RY_EPI_QUICKGELU: return v / (1.0 + exp(-1.702 * v));
    case RY_EPI_GELU_TANH:
        return 0.5 * v * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (v + 0.044715 * v * v * v)));
    case RY_N_EPILOGUES: break;
    }
    return NAN;
}

static void check_outputs(const problem *p, const float *y, const char *name)
{
    for (size_t r = 0; r < p->images * p->rows; r++) {
        for (size_t j = 0; j < p->y_row; j++) {
            const size_t at = r * p->y_row + j;
            if (j >= p->n_out) { /* nothing may change between rows */
                assert_memory_equal(&y[at], &p->y0[at], sizeof(float));
                continue;
            }
            double want = (double)p->bias[j], mag = fabs(want) + 1.0;
            for (size_t k = 0; k < p->n_in; k++) {
                const double term = p->seen_x[r * p->n_in + k] * p->seen_w[j * p->n_in + k];
                want += term;
                mag += fabs(term);
            }
            want = apply_epilogue(p->epilogue, want, (double)p->y0[at]);
            /* 2e-6: the polynomial of gelu. 8-bit sums are exact, but three float products follow
             */
            const double bound = 1.2 * dot_bound(p->n_in < 4 ? 4 : p->n_in, mag) + 2e-6;
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
                                       {1, 1, 1, 1},      {1, 7, 16, 8},    {2, 13, 17, 5},
                                       {1, 5, 100, 64},   {3, 11, 33, 400}, {1, 97, 48, 24},
                                       {1, 6, 1000, 192}, {2, 50, 96, 768}, {1, 65, 800, 40},
                                       {2, 9, 70, 1601},  {1, 205, 40, 24}};
    for (ry_linear_backend b = 0; b < N_BACKENDS; b++) {
        if (!backend_here(b)) continue;
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int e = RY_EPI_NONE; e < RY_N_EPILOGUES; e++) {
                problem p = problem_new(b, shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3],
                                        (ry_epilogue)e);
                float *y = solve(&p, b, 1, p.images);
                check_outputs(&p, y, backend_names[b]);
                free(y);
                problem_free(&p);
            }
    }
}

/* Rows of an image; five images have more rows than a tile. Plain C is slow under sanitizers. */
#ifdef RENYI_SANITIZED
enum { SAME_ROWS = 41 };
#else
enum { SAME_ROWS = 131 };
#endif

/* Every row has the same bits for any number of threads and images. */
static void test_same_bits(void **state)
{
    (void)state;
    for (ry_linear_backend b = 0; b < N_BACKENDS; b++) {
        if (!backend_here(b)) continue;
        problem p = problem_new(b, 5, SAME_ROWS, 384, 200, RY_EPI_GELU);
        float *all = solve(&p, b, 1, 5);
        for (unsigned threads = 2; threads <= 7; threads += 5)
            for (size_t n = 1; n <= 5; n += 2) {
                float *some = solve(&p, b, threads, n);
                assert_memory_equal(all, some, n * p.rows * p.y_row * sizeof(float));
                free(some);
            }
        free(all);
        problem_free(&p);
    }
}

/* Fewer rows than the op is bound to have the same bits. Nothing is written after the bound rows,
 * and our own implementations do not write the rows that were left out either. */
static void test_fewer_rows(void **state)
{
    (void)state;
    for (ry_linear_backend b = 0; b < N_BACKENDS; b++) {
        if (!backend_here(b)) continue;
        problem p = problem_new(b, 3, 150, 40, 33, RY_EPI_RESIDUAL);
        float *all = solve(&p, b, 1, 3);
        for (size_t rows = 1; rows <= p.rows; rows += rows < 8 ? 1 : 47) {
            float *some = solve_rows(&p, b, 2, 3, rows);
            for (size_t i = 0; i < 3; i++) {
                const size_t at = i * p.rows * p.y_row, done = rows * p.y_row;
                assert_memory_equal(all + at, some + at, done * sizeof(float));
                if (!is_onednn(b))
                    assert_memory_equal(p.y0 + at + done, some + at + done,
                                        (p.rows * p.y_row - done) * sizeof(float));
            }
            free(some);
        }
        free(all);
        problem_free(&p);
    }
}

/* NaN and infinity in one row do not reach another. */
static void test_rows_are_apart(void **state)
{
    (void)state;
    for (ry_linear_backend b = 0; b < N_BACKENDS; b++) {
        if (!backend_here(b)) continue;
        problem p = problem_new(b, 1, 20, 48, 96, RY_EPI_RESIDUAL);
        float *clean = solve(&p, b, 1, 1);
        for (size_t k = 0; k < p.n_in; k++) p.x[7 * p.x_row + k] = k % 2 ? NAN : INFINITY;
        float *dirty = solve(&p, b, 1, 1);
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

/* A linear made without weights gets NaN, then the weights of p, as they are or transposed. An
 * update allocates nothing. */
static void check_update(const problem *p, ry_linear_backend b, int transposed)
{
    const ry_linear_spec spec = {NULL, NULL, p->n_out, p->n_in, p->epilogue, 0};
    test_heap heap = {0};
    const renyi_allocator al = test_heap_of(&heap);
    ry_linear *l;
    const size_t n = p->n_out * p->n_in;
    float *w = malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++) w[i] = NAN;
    assert_int_equal(ry_linear_new_backend(&l, &spec, b, &al, NULL), RENYI_OK);
    const size_t calls = heap.calls;
    assert_int_equal(ry_linear_update(l, w, 0, p->bias, NULL), RENYI_OK);
    for (size_t i = 0; i < n; i++)
        w[i] = p->w[transposed ? i % p->n_out * p->n_in + i / p->n_out : i];
    assert_int_equal(ry_linear_update(l, w, transposed, p->bias, NULL), RENYI_OK);
    assert_int_equal(heap.calls, calls);
    float *want = solve(p, b, 1, p->images);
    float *y = run_linear(p, l, 1, p->images, p->rows);
    assert_memory_equal(y, want, p->images * p->rows * p->y_row * sizeof(float));
    ry_linear_free(l, &al);
    assert_int_equal(heap.live, 0);
    free(w), free(want), free(y);
}

static void test_update(void **state)
{
    (void)state;
    for (ry_linear_backend b = 0; b < N_BACKENDS; b++) {
        if (!backend_here(b) || is_int8(b) || b > RY_LINEAR_ONEDNN_INT8) continue;
        static const size_t shapes[][2] = {{1, 1}, {16, 8}, {17, 5}, {100, 64}, {45, 403}};
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int transposed = 0; transposed < 2; transposed++) {
                problem p = problem_new(b, 1, 13, shapes[s][0], shapes[s][1], RY_EPI_NONE);
                check_update(&p, b, transposed);
                problem_free(&p);
            }
    }
}

static void test_update_refuses_int8(void **state)
{
    (void)state;
    const float w[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    const ry_linear_spec spec = {w, NULL, 2, 2, RY_EPI_NONE, RENYI_DTYPE_INT8};
    ry_linear *l;
    renyi_error err;
    assert_int_equal(ry_linear_new_backend(&l, &spec, RY_LINEAR_INT8_SCALAR, NULL, NULL), RENYI_OK);
    assert_int_equal(ry_linear_update(l, w, 0, NULL, &err), RENYI_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "8 bits or fewer"));
    ry_linear_free(l, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_double), cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_fewer_rows),     cmocka_unit_test(test_rows_are_apart),
        cmocka_unit_test(test_update),         cmocka_unit_test(test_update_refuses_int8)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
