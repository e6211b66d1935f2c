/* test_attention.c - attention and its scores at every level against double arithmetic; the
 * specification's own test matrix; scores cost no bit of the output. The 16-lane body is also run
 * in plain C, so that its logic is tested where AVX-512 is missing. SPDX-License-Identifier:
 * Apache-2.0 */
#include "kernel_test.h"

#define RY_SIMD_EMU16
#include "kernels/attention_body.h"

typedef struct problem {
    size_t N, H, d;
    float *qkv, *out, *class_row, *columns, *key_bias;
    double *mean; /* [N, N] head mean in double */
    double *want; /* [N, H*d] */
} problem;

static void reference(problem *p)
{
    const size_t C = p->H * p->d;
    double *row = malloc(p->N * sizeof(double));
    for (size_t h = 0; h < p->H; h++)
        for (size_t i = 0; i < p->N; i++) {
            double top = -INFINITY, sum = 0.0;
            for (size_t j = 0; j < p->N; j++) {
                double dot = 0.0;
                for (size_t c = 0; c < p->d; c++)
                    dot += (double)p->qkv[i * 3 * C + h * p->d + c] *
                           (double)p->qkv[j * 3 * C + C + h * p->d + c];
                row[j] = dot / sqrt((double)p->d) + (p->key_bias ? (double)p->key_bias[j] : 0.0);
                top = fmax(top, row[j]);
            }
            for (size_t j = 0; j < p->N; j++) sum += row[j] = exp(row[j] - top);
            for (size_t j = 0; j < p->N; j++) {
                p->mean[i * p->N + j] += row[j] / sum / (double)p->H;
                for (size_t c = 0; c < p->d; c++)
                    p->want[i * C + h * p->d + c] +=
                        row[j] / sum * (double)p->qkv[j * 3 * C + 2 * C + h * p->d + c];
            }
        }
    free(row);
}

static problem problem_new(size_t N, size_t H, size_t d, int with_bias)
{
    const size_t C = H * d;
    problem p = {.N = N, .H = H, .d = d};
    p.qkv = malloc(N * 3 * C * sizeof(float));
    p.out = calloc(N * C, sizeof(float));
    p.class_row = calloc(N, sizeof(float));
    p.columns = calloc(N, sizeof(float));
    p.mean = calloc(N * N, sizeof(double));
    p.want = calloc(N * C, sizeof(double));
    for (size_t i = 0; i < N * 3 * C; i++) p.qkv[i] = 3.0f * unit();
    if (with_bias) {
        p.key_bias = malloc(N * sizeof(float));
        for (size_t j = 0; j < N; j++) p.key_bias[j] = logf(1.0f + (float)(j % 5));
    }
    reference(&p);
    return p;
}

static void problem_free(problem *p)
{
    free(p->qkv), free(p->out), free(p->class_row), free(p->columns), free(p->key_bias);
    free(p->mean), free(p->want);
}

static void solve(problem *p, const ry_kernels *k, double order, int scores)
{
    const size_t blocks = ry_attention_blocks(p->N, k->attention_rows);
    const size_t floats = ry_attention_scratch(p->N, p->d, k->attention_rows);
    float *scratch = aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
    double *parts = malloc(blocks * p->N * sizeof(double));
    ry_attention at = {.n_tokens = p->N,
                       .n_heads = p->H,
                       .head = p->d,
                       .qkv = p->qkv,
                       .out = p->out,
                       .qkv_row = 3 * p->H * p->d,
                       .out_row = p->H * p->d,
                       .key_bias = p->key_bias,
                       .columns = {.order = order}};
    if (scores) {
        at.class_row = p->class_row;
        at.column_parts = parts;
    }
    for (size_t b = blocks; b-- > 0;) k->attention(&at, b, scratch);
    if (scores) ry_attention_scores(p->columns, &at, blocks);
    free(parts);
    free(scratch);
}

static double column_norm(const problem *p, size_t j, double n)
{
    double sum = 0.0;
    for (size_t i = 0; i < p->N; i++) {
        const double m = p->mean[i * p->N + j];
        sum = isinf(n) ? fmax(sum, m) : sum + pow(m, n);
    }
    return isinf(n) ? sum : pow(sum, 1.0 / n);
}

static void check(const ry_kernels *k, size_t N, size_t H, size_t d, int with_bias)
{
    static const double orders[] = {1.0, 2.0, 3.0, 4.0, 2.5, 7.0, INFINITY};
    const size_t C = H * d;
    problem p = problem_new(N, H, d, with_bias);
    float *plain = malloc(N * C * sizeof(float));
    solve(&p, k, 1.0, 0);
    memcpy(plain, p.out, N * C * sizeof(float));
    for (size_t i = 0; i < N * C; i++) assert_true(fabs((double)plain[i] - p.want[i]) <= 1e-5);
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        solve(&p, k, orders[o], 1);
        assert_memory_equal(plain, p.out, N * C * sizeof(float)); /* asking costs no bit */
        for (size_t j = 0; j < N; j++) {
            const double want = column_norm(&p, j, orders[o]);
            assert_true(fabs((double)p.columns[j] - want) <= 2e-5 * want + 1e-9);
            assert_true(fabs((double)p.class_row[j] - p.mean[j]) <= 2e-5 * p.mean[j] + 1e-9);
        }
    }
    free(plain);
    problem_free(&p);
}

static void check_all(const ry_kernels *k)
{
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
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int bias = 0; bias < 2; bias++)
            check(k, shapes[s][0], shapes[s][1], shapes[s][2], bias);
}

static void run_level(renyi_cpu level)
{
    ry_kernels k;
    ry_kernels_init(&k, level);
    check_all(&k);
}

static void test_scalar(void **state)
{
    (void)state;
    run_level(RENYI_CPU_SCALAR);
}

static void test_levels(void **state)
{
    (void)state;
    for_levels(run_level);
}

static void test_sixteen_lanes(void **state)
{
    (void)state;
    const ry_kernels k = {.attention = attention_block, .attention_rows = BLOCK};
    check_all(&k);
}

/* The 5 x 5 matrix of the specification: logits are the logarithms of the wanted probabilities. */
static void test_specification_matrix(void **state)
{
    (void)state;
    static const double A[5][5] = {{.10, .40, .20, .20, .10},
                                   {.05, .70, .05, .10, .10},
                                   {.20, .10, .10, .50, .10},
                                   {.10, .05, .05, .60, .20},
                                   {.30, .15, .15, .25, .15}};
    static const struct {
        double n;
        double want[5];
    } rows[] = {{1.0, {.75, 1.40, .55, 1.65, .65}},
                {2.0, {.390512, .827647, .278388, .850000, .304138}},
                {3.0, {.333597, .743801, .232850, .715065, .243147}},
                {4.0, {.315484, .718370, .217034, .666815, .221480}},
                {8.0, {.301450, .700990, .202490, .615956, .202668}},
                {INFINITY, {.30, .70, .20, .60, .20}}};
    const size_t N = 5, d = 5;
    float qkv[5 * 15] = {0}, out[25], columns[5], class_row[5];
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++) qkv[i * 15 + j] = (float)(log(A[i][j]) * sqrt(5.0));
        qkv[i * 15 + 5 + i] = 1.0f;  /* keys: unit vectors, so that the logit is q[j] */
        qkv[i * 15 + 10 + i] = 1.0f; /* values: unit vectors, so that out is A */
    }
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
        ry_kernels k;
        ry_kernels_init(&k, (renyi_cpu)level);
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            double parts[5];
            _Alignas(64) float scratch[4096];
            ry_attention at = {.n_tokens = N,
                               .n_heads = 1,
                               .head = d,
                               .qkv = qkv,
                               .out = out,
                               .qkv_row = 3 * d,
                               .out_row = d,
                               .class_row = class_row,
                               .column_parts = parts,
                               .columns = {.order = rows[r].n}};
            assert_true(ry_attention_scratch(N, d, k.attention_rows) <= 4096);
            k.attention(&at, 0, scratch);
            ry_attention_scores(columns, &at, 1);
            for (size_t j = 0; j < N; j++) {
                assert_true(fabs((double)columns[j] - rows[r].want[j]) < 2e-6);
                assert_true(fabs((double)class_row[j] - A[0][j]) < 1e-6);
                for (size_t i = 0; i < N; i++)
                    assert_true(fabs((double)out[i * 5 + j] - A[i][j]) < 1e-6);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scalar), cmocka_unit_test(test_levels),
                                       cmocka_unit_test(test_sixteen_lanes),
                                       cmocka_unit_test(test_specification_matrix)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
