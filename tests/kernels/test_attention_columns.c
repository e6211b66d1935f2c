/* test_attention_columns.c - the column scores of attention at every level: the matrices of the
 * specification to six digits, every kind of score against double, limits and hard cases.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/attention_test.h"

enum { TOKENS = 128 };

/* Column j of head h (or of the mean of the heads, h = H) with the rows that count, in double. */
static size_t column(const problem *p, const request *r, size_t h, size_t j, double *a, double *w)
{
    const size_t count = r->rows ? r->n_rows : p->N;
    for (size_t q = 0; q < count; q++) {
        const size_t i = r->rows ? r->rows[q] : q, at = i * p->N + j;
        double mean = 0.0;
        for (size_t g = 0; g < p->H; g++) mean += p->a[g * p->N * p->N + at] / (double)p->H;
        a[q] = h < p->H ? p->a[h * p->N * p->N + at] : mean;
        w[q] = r->spec.row_weights ? (double)p->row_weight[i] : 1.0;
        if ((i < r->spec.skip_rows && i >= r->spec.count_rows) || (r->spec.skip_diagonal && i == j))
            w[q] = 0.0;
    }
    return count;
}

static double score_of(const ry_column_spec *spec, const double *a, const double *w, size_t count)
{
    const double n = spec->order;
    double mass = 0.0, power = 0.0, top = 0.0, shannon = 0.0;
    for (size_t i = 0; i < count; i++) {
        mass += w[i] * a[i];
        power += w[i] > 0.0 ? w[i] * pow(a[i], isinf(n) ? 1.0 : n) : 0.0;
        if (w[i] > 0.0) top = fmax(top, a[i]);
    }
    for (size_t i = 0; i < count; i++)
        if (w[i] > 0.0) shannon -= w[i] * a[i] / mass * log(a[i] / mass);
    if (spec->kind == RY_COLUMN_ENTROPY) {
        if (n == 1.0) return shannon;
        return isinf(n) ? -log(top / mass) : log(power / pow(mass, n)) / (1.0 - n);
    }
    if (isinf(n)) return top;
    return spec->kind == RY_COLUMN_NORM ? pow(power, 1.0 / n) : power;
}

static double exact_score(const problem *p, const request *r, size_t j)
{
    double a[TOKENS], w[TOKENS], sum = 0.0;
    if (!r->spec.each_head) return score_of(&r->spec, a, w, column(p, r, p->H, j, a, w));
    for (size_t h = 0; h < p->H; h++)
        sum += score_of(&r->spec, a, w, column(p, r, h, j, a, w)) / (double)p->H;
    return sum;
}

static void check_spec(const ry_kernels *k, const problem *p, const request *r)
{
    solve(p, k, r);
    for (size_t j = 0; j < p->N; j++) {
        const double exact = exact_score(p, r, j);
        /* entropy divides by n - 1; a power of order n has n times the error of its base */
        const double n = isinf(r->spec.order) ? 1.0 : r->spec.order;
        const double slack = r->spec.kind == RY_COLUMN_NORM    ? 2e-5 * exact
                             : r->spec.kind == RY_COLUMN_POWER ? 1e-5 * (1.0 + n) * exact
                                                               : 3e-5 * exact + 5e-6;
        if (!(fabs((double)r->columns[j] - exact) <= slack + 1e-9))
            fail_msg("N=%zu H=%zu column %zu, kind %d n=%g each=%d skip=%zu diagonal=%d "
                     "weights=%d: %.9g, not %.9g",
                     p->N, p->H, j, (int)r->spec.kind, r->spec.order, r->spec.each_head,
                     r->spec.skip_rows, r->spec.skip_diagonal, r->spec.row_weights,
                     (double)r->columns[j], exact);
    }
}

/* All kinds, orders and choices of rows on a few shapes. */
static void check_all_specs(const ry_kernels *k)
{
    static const double orders[] = {1.0, 2.0, 3.0, 4.0, 1.5, 2.5, 7.0, 8.0, INFINITY};
    static const size_t shapes[][3] = {{3, 1, 4}, {17, 2, 8}, {35, 2, 12}};
    float columns[TOKENS];
    uint32_t some[TOKENS];
    for (size_t i = 0; i < TOKENS; i++) some[i] = (uint32_t)(2 * i);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        problem p = problem_new(shapes[s][0], shapes[s][1], shapes[s][2], s % 2);
        for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
            for (unsigned i = 0; i < 3 * 32; i++) {
                const request r = {.columns = columns,
                                   .spec = {.kind = (ry_column_kind)(i / 32),
                                            .order = orders[o],
                                            .each_head = i & 1,
                                            .skip_rows = !(i & 2)  ? 0
                                                         : p.N > 8 ? 3
                                                                   : 1,
                                            .count_rows = p.N > 8 ? i & 1 : 0,
                                            .skip_diagonal = (i & 4) != 0,
                                            .row_weights = (i & 8) != 0},
                                   .rows = i & 16 && p.N > 3 ? some : NULL,
                                   .n_rows = (p.N + 1) / 2};
                check_spec(k, &p, &r);
            }
        problem_free(&p);
    }
}

static void test_all_specs(void **state)
{
    (void)state;
    at_every_level(check_all_specs, &sixteen);
}

/* The 5 x 5 matrix of the specification; the second head of its example permutes the columns. */
static const double matrix[5][5] = {{.10, .40, .20, .20, .10},
                                    {.05, .70, .05, .10, .10},
                                    {.20, .10, .10, .50, .10},
                                    {.10, .05, .05, .60, .20},
                                    {.30, .15, .15, .25, .15}};

static const struct {
    size_t heads;
    ry_column_spec spec;
    double want[5];
} vectors[] = {
    {1, {RY_COLUMN_NORM, 1.0, 0, 0, 0, 0}, {.75, 1.40, .55, 1.65, .65}},
    {1, {RY_COLUMN_NORM, 2.0, 0, 0, 0, 0}, {.390512, .827647, .278388, .850000, .304138}},
    {1, {RY_COLUMN_NORM, 3.0, 0, 0, 0, 0}, {.333597, .743801, .232850, .715065, .243147}},
    {1, {RY_COLUMN_NORM, 4.0, 0, 0, 0, 0}, {.315484, .718370, .217034, .666815, .221480}},
    {1, {RY_COLUMN_NORM, 8.0, 0, 0, 0, 0}, {.301450, .700990, .202490, .615956, .202668}},
    {1, {RY_COLUMN_NORM, INFINITY, 0, 0, 0, 0}, {.30, .70, .20, .60, .20}},
    {1, {RY_COLUMN_ENTROPY, 4.0, 0, 0, 0, 0}, {1.154620, .889658, 1.239821, 1.208025, 1.435518}},
    {1, {RY_COLUMN_ENTROPY, 2.0, 0, 0, 0, 0}, {1.305227, 1.051281, 1.361803, 1.326588, 1.518981}},
    {1, {RY_COLUMN_ENTROPY, 1.0, 0, 0, 0, 0}, {1.436829, 1.251331, 1.468140, 1.441253, 1.564957}},
    {1, {RY_COLUMN_NORM, 4.0, 0, 0, 1, 0}, {.314685, .402371, .214546, .510854, .208780}},
    {1, {RY_COLUMN_NORM, 4.0, 0, 1, 0, 0}, {.314685, .700446, .157717, .665461, .219142}},
    {2, {RY_COLUMN_NORM, 4.0, 0, 0, 0, 0}, {.315484, .483295, .410833, .435304, .193028}},
    {2, {RY_COLUMN_NORM, 4.0, 1, 0, 0, 0}, {.315484, .692592, .467702, .444147, .219257}}};

/* Keys and values are unit vectors, so that a logit is an entry of the query and the output is the
 * matrix of probabilities. The queries are the logarithms of the wanted probabilities. */
static void specification_qkv(float *qkv, size_t heads)
{
    static const size_t second[5] = {0, 3, 1, 4, 2};
    const size_t C = 5 * heads;
    memset(qkv, 0, 5 * 3 * C * sizeof(float));
    for (size_t i = 0; i < 5; i++)
        for (size_t h = 0; h < heads; h++) {
            float *row = qkv + i * 3 * C + h * 5;
            for (size_t j = 0; j < 5; j++)
                row[j] = (float)(log(matrix[i][h ? second[j] : j]) * sqrt(5.0));
            row[C + i] = row[2 * C + i] = 1.0f;
        }
}

static void check_specification(const ry_kernels *k)
{
    for (size_t t = 0; t < sizeof vectors / sizeof *vectors; t++) {
        float qkv[5 * 3 * 10], out[5 * 10], columns[5], class_row[5];
        const size_t H = vectors[t].heads;
        problem p = {.N = 5, .H = H, .d = 5, .qkv = qkv};
        specification_qkv(qkv, H);
        solve(&p, k, &(request){out, class_row, columns, vectors[t].spec, NULL, 0});
        for (size_t j = 0; j < 5; j++) {
            if (!(fabs((double)columns[j] - vectors[t].want[j]) < 2e-6))
                fail_msg("vector %zu, column %zu: %.8f, not %f", t, j, (double)columns[j],
                         vectors[t].want[j]);
            if (H == 1) assert_true(fabs((double)class_row[j] - matrix[0][j]) < 1e-6);
            for (size_t i = 0; i < 5; i++)
                assert_true(fabs((double)out[i * 5 * H + j] - matrix[i][j]) < 1e-6);
        }
    }
}

static void test_specification(void **state)
{
    (void)state;
    at_every_level(check_specification, &sixteen);
}

/* Norms of large orders approach the maximum, although plain powers would underflow. And norms rank
 * columns like the Renyi formula of the paper on raw columns, which keeps the smallest. */
static void check_limits(const ry_kernels *k)
{
    static const double large[] = {50.0, 300.0, 1e4, 1e9, 1e300};
    float top[TOKENS], norm[TOKENS], power[TOKENS];
    problem p = problem_new(100, 2, 16, 0);
    solve(&p, k, &(request){.columns = top, .spec = {.order = INFINITY}});
    for (size_t o = 0; o < sizeof large / sizeof *large; o++) {
        solve(&p, k, &(request){.columns = norm, .spec = {.order = large[o]}});
        for (size_t j = 0; j < p.N; j++) { /* max <= norm <= max * N^(1/n) */
            const double most = (double)top[j] * pow((double)p.N, 1.0 / large[o]);
            assert_true((double)norm[j] >= (double)top[j] * (1.0 - 1e-6));
            assert_true((double)norm[j] <= most * (1.0 + 1e-6));
        }
    }
    for (double n = 2.0; n <= 4.0; n += 0.5) {
        const ry_column_spec spec = {.order = n}, raw = {.kind = RY_COLUMN_POWER, .order = n};
        solve(&p, k, &(request){.columns = norm, .spec = spec});
        solve(&p, k, &(request){.columns = power, .spec = raw});
        for (size_t i = 0; i < p.N; i++)
            for (size_t j = 0; j < p.N; j++) {
                const double hi = log((double)power[i]) / (1.0 - n);
                const double hj = log((double)power[j]) / (1.0 - n);
                if (norm[i] > norm[j]) assert_true(hi <= hj + 1e-6);
            }
    }
    problem_free(&p);
}

static void test_limits(void **state)
{
    (void)state;
    at_every_level(check_limits, &sixteen);
}

/* Columns without mass, NaN and infinity, very large logits: the score is always defined. */
static void check_hard_cases(const ry_kernels *k)
{
    static const double orders[] = {1.0, 2.0, 2.5, INFINITY};
    float columns[TOKENS], out[TOKENS * 16], class_row[TOKENS];
    problem p = problem_new(20, 2, 8, 0), one = problem_new(1, 1, 4, 0);
    problem wild = problem_new(20, 2, 8, 0), broken = problem_new(20, 2, 8, 0);
    for (size_t i = 0; i < 20 * 48; i++) wild.qkv[i] *= 1e3f;
    broken.qkv[5 * 48 + 17] = NAN;     /* a key */
    broken.qkv[7 * 48 + 2] = INFINITY; /* a query */
    for (int kind = RY_COLUMN_NORM; kind <= RY_COLUMN_ENTROPY; kind++)
        for (size_t o = 0; o < 4; o++)
            for (int each = 0; each < 2; each++) {
                const ry_column_spec spec = {(ry_column_kind)kind, orders[o], each, 0, 0, 0};
                ry_column_spec none = spec;
                none.skip_rows = 20;
                solve(&p, k, &(request){.columns = columns, .spec = none});
                for (size_t j = 0; j < 20; j++) assert_true(columns[j] == 0.0f);
                none = spec, none.skip_diagonal = 1;
                solve(&one, k, &(request){.columns = columns, .spec = none});
                assert_true(columns[0] == 0.0f);
                solve(&wild, k, &(request){.columns = columns, .spec = spec});
                for (size_t j = 0; j < 20; j++) assert_true(isfinite(columns[j]));
                solve(&broken, k, &(request){out, class_row, columns, spec, NULL, 0});
            }
    problem_free(&p), problem_free(&one), problem_free(&wild), problem_free(&broken);
}

static void test_hard_cases(void **state)
{
    (void)state;
    at_every_level(check_hard_cases, &sixteen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_specs), cmocka_unit_test(test_specification),
        cmocka_unit_test(test_limits), cmocka_unit_test(test_hard_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
