/* test_prune_mosaic.c - tests mosaic's two kinds of cut against the written rule, computed directly
 * in doubles; also ties, degenerate rows and NaN.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/rule.h"

#include "fixtures/kernel_test.h"

enum { MAX_N = 300, MAX_DIM = 100 };

/* A pruner with one cut, the block it reads, and the buffers of its decision. */
typedef struct mosaic_case {
    ry_pruner p;
    ry_block_view view;
    ry_cut cut;
    float x[MAX_N * MAX_DIM], row[MAX_N], columns[MAX_N], sizes[MAX_N];
    uint32_t source[MAX_N], target[MAX_N];
    float weight[MAX_N], score[MAX_N];
    uint8_t rescued[MAX_N];
} mosaic_case;

typedef struct shape {
    uint32_t grid, prefix, dim, layer, n_patches, keep;
} shape;

static mosaic_case *case_new(shape s, renyi_cpu level)
{
    mosaic_case *b = calloc(1, sizeof *b);
    const uint32_t N = s.prefix + s.n_patches;
    assert_true(N <= MAX_N && s.dim <= MAX_DIM);
    b->p.policy.rule = RY_RULE_MOSAIC;
    b->p.policy.alpha = 0.5;
    b->p.policy.beta = 1;
    b->p.policy.temperature = 1;
    b->p.policy.n_cuts = 1;
    b->p.policy.cuts[0].layer = s.layer;
    b->p.shape = (ry_policy_shape){12, s.grid * s.grid, s.prefix, s.grid, 0};
    b->p.dim = s.dim;
    b->p.n_heads = b->p.max_batch = 1;
    b->p.ops = &ry_rule_mosaic;
    b->p.tokens_in[0] = N;
    b->p.tokens_out[0] = s.prefix + s.keep;
    ry_kernels_init(&b->p.kernels, level);
    b->p.scratch_each = ry_rule_mosaic.scratch(&b->p);
    b->p.scratch = aligned_alloc(64, b->p.scratch_each);
    memset(b->p.scratch, 0xff,
           b->p.scratch_each); /* NaN: scratch must be written before it is read */
    b->view = (ry_block_view){.block = s.layer,
                              .n_tokens = N,
                              .dim = s.dim,
                              .n_heads = 1,
                              .n_prefix = s.prefix,
                              .x = b->x};
    b->cut = (ry_cut){s.prefix + s.keep, b->source, b->target, b->weight, b->score, b->rescued};
    for (uint32_t i = 0; i < N * s.dim; i++) b->x[i] = unit() + 0.5f;
    for (uint32_t i = 0; i < N; i++) b->row[i] = (unit() + 1.0f) / (float)N;
    for (uint32_t i = 0; i < N; i++) b->sizes[i] = i < s.prefix ? 1.0f : (float)(1 + i % 3);
    return b;
}

static void case_free(mosaic_case *b)
{
    free(b->p.scratch);
    free(b);
}

/* Provides what the rule needs and runs it; the tiles of a phase forwards or backwards. */
static void decide_cut(mosaic_case *b, uint32_t cut, int backwards)
{
    ry_block_needs needs = {0};
    ry_rule_mosaic.needs(&b->p, cut, &needs);
    b->view.class_row = needs.what & RY_NEED_CLASS_ROW ? b->row : NULL;
    b->view.columns = !(needs.what & RY_NEED_COLUMNS) ? NULL
                      : b->view.class_row             ? b->columns
                                                      : b->row;
    const uint32_t N = b->view.n_tokens;
    for (uint32_t phase = 0, n; (n = ry_rule_mosaic.tiles(&b->p, cut, N, phase)); phase++)
        for (uint32_t t = 0; t < n; t++)
            ry_rule_mosaic.work(&b->p, cut, &b->view, &b->cut, phase, backwards ? n - 1 - t : t);
}

static void decide(mosaic_case *b, int backwards) { decide_cut(b, 0, backwards); }

/* Holds for every decision, whatever the scores. */
static void assert_sound(const mosaic_case *b)
{
    const uint32_t N = b->view.n_tokens;
    float sum[MAX_N] = {0};
    for (uint32_t j = 0; j < b->view.n_prefix; j++) {
        assert_int_equal(b->source[j], j);
        assert_int_equal(b->target[j], j);
        assert_true(b->weight[j] == 1.0f);
    }
    for (uint32_t r = 0; r < b->cut.n_out; r++) {
        assert_in_range(b->source[r], 0, N - 1);
        assert_int_equal(b->target[b->source[r]], r);
    }
    for (uint32_t j = 0; j < N; j++) {
        assert_int_equal(b->rescued[j], 0);
        if (b->target[j] == RY_NO_TOKEN) continue;
        assert_in_range(b->target[j], 0, b->cut.n_out - 1);
        sum[b->target[j]] += b->weight[j];
    }
    for (uint32_t r = 0; r < b->cut.n_out; r++) assert_true(fabsf(sum[r] - 1.0f) < 1e-5f);
}

/* ---- thin ------------------------------------------------------------------------------------ */

static void assert_kept(const mosaic_case *b, const uint32_t *patches, uint32_t n)
{
    assert_int_equal(b->cut.n_out, b->view.n_prefix + n);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(b->source[b->view.n_prefix + i], b->view.n_prefix + patches[i]);
}

/* The even squares of a board of 4 by 4: 0 2, 5 7, 8 10, 13 15. */
static void test_thin_even_squares_first(void **state)
{
    (void)state;
    static const float q[] = {.9f, .0f, .2f, .0f, .0f, .1f, .0f, .2f,
                              .7f, .0f, .3f, .0f, .0f, .4f, .0f, .2f};
    static const uint32_t kept[] = {0, 1, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    for (uint32_t prefix = 0; prefix < 3; prefix++) {
        mosaic_case *b = case_new((shape){4, prefix, 8, 0, 16, 13}, RENYI_CPU_SCALAR);
        memcpy(b->row + prefix, q, sizeof q);
        decide(b, 0);
        assert_sound(b);
        assert_kept(b, kept, 13); /* 5, then the ties 2 and 7 before 15 */
        assert_true(b->score[prefix + 8] == .7f);
        assert_int_equal(b->target[prefix + 5], RY_NO_TOKEN);
        assert_true(b->weight[prefix + 5] == 0.0f);
        case_free(b);
    }
}

static void test_thin_then_odd_squares(void **state)
{
    (void)state;
    static const float q[] = {.9f, .5f, .2f, NAN, .3f, .1f, .6f, .2f, .7f};
    static const uint32_t kept[] = {1, 5}, one[] = {5};
    mosaic_case *b = case_new((shape){3, 1, 8, 0, 9, 2}, RENYI_CPU_SCALAR);
    memcpy(b->row + 1, q, sizeof q); /* odd: 1 3 5 7; NaN goes first, then .2 */
    b->row[6] = .6f;
    decide(b, 0);
    assert_sound(b);
    assert_kept(b, kept, 2);
    b->cut.n_out = b->p.tokens_out[0] = 2;
    decide(b, 0);
    assert_kept(b, one, 1);
    case_free(b);
}

static void test_thin_keeps_all(void **state)
{
    (void)state;
    mosaic_case *b = case_new((shape){3, 1, 8, 0, 9, 9}, RENYI_CPU_SCALAR);
    decide(b, 0);
    assert_sound(b);
    for (uint32_t j = 0; j < 10; j++) assert_int_equal(b->source[j], j);
    case_free(b);
}

static void test_needs(void **state)
{
    (void)state;
    mosaic_case *thin = case_new((shape){4, 1, 10, 0, 16, 8}, RENYI_CPU_SCALAR);
    mosaic_case *merge = case_new((shape){4, 1, 10, 3, 16, 8}, RENYI_CPU_SCALAR);
    mosaic_case *classless = case_new((shape){4, 0, 10, 3, 16, 8}, RENYI_CPU_SCALAR);
    ry_block_needs n = {0};
    ry_rule_mosaic.needs(&thin->p, 0, &n);
    assert_int_equal(n.what, RY_NEED_COLUMNS);
    assert_int_equal(n.columns.kind, RY_COLUMN_POWER);
    assert_true(n.columns.order == 4.0 && !n.columns.row_weights && !n.columns.skip_rows);
    assert_true(n.drops && !n.sizes && !n.length && n.macs == 0.0 && n.pair_macs == 0.0);
    n = (ry_block_needs){0};
    ry_rule_mosaic.needs(&merge->p, 0, &n);
    assert_int_equal(n.what, RY_NEED_TOKENS | RY_NEED_CLASS_ROW);
    assert_true(!n.drops && n.sizes && n.length == RY_LENGTH_MEAN && n.pair_macs == 10 / 2);
    assert_true(n.logit_factor == 1.0f && !n.adaptive);
    n = (ry_block_needs){0};
    ry_rule_mosaic.needs(&classless->p, 0, &n);
    assert_int_equal(n.what, RY_NEED_TOKENS | RY_NEED_COLUMNS);
    assert_int_equal(n.columns.kind, RY_COLUMN_POWER);
    assert_true(n.columns.order == 1.0 && n.columns.row_weights);
    case_free(thin);
    case_free(merge);
    case_free(classless);
}

/* ---- merge ----------------------------------------------------------------------------------- */

/* The rule as written, in doubles. */
typedef struct plain {
    uint32_t P;
    double z[MAX_N][MAX_DIM], S[MAX_N][MAX_N], c[MAX_N];
    uint32_t kept[MAX_N]; /* best first */
} plain;

static void plain_cosines(plain *w, const mosaic_case *b)
{
    const uint32_t D = b->view.dim, P = w->P;
    double mean[MAX_DIM] = {0};
    for (uint32_t i = 0; i < P; i++)
        for (uint32_t c = 0; c < D; c++)
            mean[c] += (double)b->x[(b->view.n_prefix + i) * D + c] / P;
    for (uint32_t i = 0; i < P; i++) {
        double length = 0.0;
        for (uint32_t c = 0; c < D; c++) {
            w->z[i][c] = (double)b->x[(b->view.n_prefix + i) * D + c] - mean[c];
            length += w->z[i][c] * w->z[i][c];
        }
        for (uint32_t c = 0; c < D; c++) w->z[i][c] /= sqrt(length);
    }
    for (uint32_t i = 0; i < P; i++)
        for (uint32_t j = 0; j < P; j++) {
            w->S[i][j] = 0.0;
            for (uint32_t c = 0; c < D; c++) w->S[i][j] += w->z[i][c] * w->z[j][c];
        }
}

static void plain_choice(plain *w, const mosaic_case *b)
{
    const float *a = b->row + b->view.n_prefix;
    for (uint32_t i = 0; i < w->P; i++) {
        double m = -2.0;
        for (uint32_t j = 0; j < w->P; j++)
            if (a[j] > a[i] || (a[j] == a[i] && j < i)) m = fmax(m, w->S[i][j]);
        w->c[i] = pow((double)a[i], b->p.policy.alpha) * fmax(1.0 - m, 1e-6);
    }
    for (uint32_t i = 0; i < w->P; i++) { /* insertion keeps the lower index first */
        uint32_t k = i;
        for (; k && w->c[w->kept[k - 1]] < w->c[i]; k--) w->kept[k] = w->kept[k - 1];
        w->kept[k] = i;
    }
}

/* What patch g counts in the row it goes to. */
static double plain_amount(const mosaic_case *b, uint32_t g)
{
    const double size = b->view.sizes ? (double)b->sizes[b->view.n_prefix + g] : 1.0;
    return size * pow((double)b->row[b->view.n_prefix + g] / size + 1e-9, b->p.policy.omega);
}

/* Our decision equals the plain one, up to rounding. */
static void assert_like_plain(const mosaic_case *b, const plain *w)
{
    const uint32_t prefix = b->view.n_prefix, K = b->cut.n_out - prefix;
    const double top = w->c[w->kept[0]];
    double amount[MAX_N] = {0};
    for (uint32_t i = 0; i < w->P; i++)
        assert_true(fabs((double)b->score[prefix + i] - w->c[i]) < 1e-6 * top);
    for (uint32_t k = 0; k < K; k++)
        assert_true(fabs(w->c[b->source[prefix + k] - prefix] - w->c[w->kept[k]]) < 2e-6 * top);
    for (uint32_t g = 0; g < w->P; g++) {
        const uint32_t row = b->target[prefix + g];
        double best = -2.0;
        amount[row] += plain_amount(b, g);
        if (b->source[row] == prefix + g) continue;
        for (uint32_t k = 0; k < K; k++) best = fmax(best, w->S[g][b->source[prefix + k] - prefix]);
        assert_true(w->S[g][b->source[row] - prefix] > best - 2e-6);
    }
    for (uint32_t g = 0; g < w->P; g++) {
        const double share = plain_amount(b, g) / amount[b->target[prefix + g]];
        assert_true(fabs((double)b->weight[prefix + g] - share) < 1e-6);
    }
}

static void merge_at(renyi_cpu level)
{
    static const shape shapes[] = {{14, 1, 96, 3, 196, 138}, {14, 1, 64, 6, 138, 97},
                                   {14, 2, 33, 3, 196, 79},  {14, 0, 17, 3, 195, 20},
                                   {5, 1, 3, 3, 25, 24},     {5, 1, 100, 1, 7, 1},
                                   {1, 1, 8, 3, 1, 1},       {16, 0, 16, 9, 256, 256}};
    plain *w = calloc(1, sizeof *w);
    static const double powers[][2] = {{0.5, 0}, {1, 0.75}, {1.25, 1}, {0, 0.5}};
    for (size_t k = 0; k < 4 * sizeof shapes / sizeof *shapes; k++) {
        const size_t i = k / 4;
        mosaic_case *b = case_new(shapes[i], level);
        b->p.policy.alpha = powers[k % 4][0];
        b->p.policy.omega = powers[k % 4][1];
        if (i % 2 == 0) b->view.sizes = b->sizes;
        decide(b, 0);
        assert_sound(b);
        w->P = shapes[i].n_patches;
        if (w->P > 1) {
            plain_cosines(w, b);
            plain_choice(w, b);
            assert_like_plain(b, w);
        }
        case_free(b);
    }
    free(w);
}

static void test_merge_as_written(void **state)
{
    (void)state;
    merge_at(RENYI_CPU_SCALAR);
    for_levels(merge_at);
}

static void test_tiles_in_any_order(void **state)
{
    (void)state;
    mosaic_case *b = case_new((shape){14, 1, 96, 3, 196, 138}, renyi_cpu_detect());
    mosaic_case *c = malloc(sizeof *c);
    decide(b, 0);
    memcpy(c, b, sizeof *c);
    memset(b->p.scratch, 0x7f, b->p.scratch_each);
    decide(b, 1);
    assert_memory_equal(b->source, c->source, sizeof b->source);
    assert_memory_equal(b->target, c->target, sizeof b->target);
    assert_memory_equal(b->weight, c->weight, sizeof b->weight);
    assert_memory_equal(b->score, c->score, sizeof b->score);
    free(c);
    case_free(b);
}

/* Equal rows are zero after centering: cosine 0 with everything. */
static void test_rows_without_direction(void **state)
{
    (void)state;
    mosaic_case *b = case_new((shape){4, 1, 20, 3, 16, 5}, renyi_cpu_detect());
    for (uint32_t i = 0; i < 17 * 20; i++) b->x[i] = 0.25f;
    for (uint32_t j = 0; j < 17; j++) b->row[j] = (float)(j % 4) / 16.0f;
    decide(b, 0);
    assert_sound(b);
    /* importance 3/16 at tokens 3, 7, 11, 15: the score of the first is three times as large, ...
     */
    static const uint32_t kept[] = {2, 6, 10, 14, 1};
    assert_kept(b, kept, 5);
    assert_true(b->score[3] == sqrtf(3.0f / 16.0f) * 3.0f);
    assert_true(b->score[7] == sqrtf(3.0f / 16.0f));
    /* ... and every merged token joins it: the lowest index of equals. */
    for (uint32_t j = 1; j < 17; j++)
        if (b->source[b->target[j]] != j) assert_int_equal(b->target[j], 1);
    assert_true(b->weight[3] == 1.0f / 12.0f);
    case_free(b);
}

/* Two equal patches: the less important one scores almost 0 and joins the other. */
static void test_copies_join(void **state)
{
    (void)state;
    mosaic_case *b = case_new((shape){4, 1, 32, 3, 16, 15}, renyi_cpu_detect());
    memcpy(b->x + 5 * 32, b->x + 9 * 32, 32 * sizeof(float));
    b->row[5] = b->row[9] = 0.9f; /* equal: the lower index is the more important */
    decide(b, 0);
    assert_sound(b);
    assert_int_equal(b->target[9], b->target[5]);
    assert_int_equal(b->source[b->target[5]], 5);
    case_free(b);
}

static void test_not_numbers(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f, -NAN};
    for (uint32_t v = 0; v < 5; v++)
        for (uint32_t where = 0; where < 4; where++) {
            mosaic_case *b = case_new((shape){6, 1, 40, 3, 36, 11}, renyi_cpu_detect());
            if (where == 0) b->x[5 * 40 + 3] = bad[v];
            if (where == 1)
                for (uint32_t i = 0; i < 37 * 40; i++) b->x[i] = bad[v];
            if (where == 2) b->row[4] = bad[v];
            if (where == 3)
                for (uint32_t j = 0; j < 37; j++) b->row[j] = bad[v];
            decide(b, 0);
            assert_sound(b);
            case_free(b);
        }
    mosaic_case *b = case_new((shape){6, 1, 40, 3, 36, 35}, renyi_cpu_detect());
    b->row[4] = NAN; /* a NaN importance is the lowest, and goes first */
    decide(b, 0);
    assert_int_not_equal(b->source[b->target[4]], 4);
    case_free(b);
}

/* The second merge decides as one without memory whose attention is sqrt(a) sqrt(m), where m is
 * what the members of a row had at the first merge. */
static void test_memory(void **state)
{
    (void)state;
    mosaic_case *b = case_new((shape){6, 1, 40, 3, 36, 24}, renyi_cpu_detect());
    mosaic_case *c = case_new((shape){6, 1, 40, 4, 24, 12}, renyi_cpu_detect());
    float m[25] = {0};
    b->p.policy.memory = 0.5;
    b->p.policy.n_cuts = 2;
    b->p.policy.cuts[1].layer = 4;
    b->p.tokens_in[1] = 25;
    b->p.tokens_out[1] = 13;
    free(b->p.scratch);
    b->p.scratch_each = ry_rule_mosaic.scratch(&b->p);
    b->p.scratch = aligned_alloc(64, (b->p.scratch_each + 63) / 64 * 64);
    memset(b->p.scratch, 0xff, b->p.scratch_each);
    decide_cut(b, 0, 0);
    assert_sound(b);
    for (uint32_t j = 1; j < 37; j++) m[b->target[j]] += b->row[j];
    memcpy(b->x, c->x, 25 * 40 * sizeof *b->x);
    memcpy(b->row, c->row, 25 * sizeof *b->row);
    for (uint32_t j = 1; j < 25; j++) c->row[j] = sqrtf(c->row[j]) * sqrtf(m[j]);
    b->view.block = 4;
    b->view.n_tokens = 25;
    b->cut.n_out = 13;
    decide_cut(b, 1, 1);
    decide(c, 0);
    assert_sound(b);
    for (uint32_t j = 1; j < 25; j++) assert_true(b->score[j] == c->score[j]);
    assert_memory_equal(b->target, c->target, 25 * sizeof *b->target);
    assert_memory_equal(b->weight, c->weight, 25 * sizeof *b->weight);
    case_free(b);
    case_free(c);
}

/* A share of Col-L2 in the importance: decides as without it on a class row that has this share.
 * Columns that sum to 0, or to no number, count nothing. */
static void test_share_of_columns(void **state)
{
    (void)state;
    const shape s = {6, 1, 40, 3, 36, 24};
    for (int bad = 0; bad < 3; bad++) {
        mosaic_case *b = case_new(s, renyi_cpu_detect()), *c = case_new(s, renyi_cpu_detect());
        double sum = 0.0, total = 0.0;
        memcpy(c->x, b->x, sizeof b->x);
        memcpy(c->row, b->row, sizeof b->row);
        b->p.policy.col = 0.25;
        for (uint32_t j = 1; j < 37; j++) {
            b->columns[j] = bad == 1 ? 0.0f : fabsf(unit());
            sum += (double)b->row[j];
            total += (double)b->columns[j];
        }
        b->columns[0] = 9.0f; /* the class token's column has no share */
        if (bad == 2) b->columns[7] = NAN;
        const float scale = (float)(0.25 * sum / total);
        for (uint32_t j = 1; j < 37 && !bad; j++)
            c->row[j] = 0.75f * b->row[j] + scale * b->columns[j];
        decide(b, 0);
        decide(c, 0);
        assert_sound(b);
        assert_memory_equal(b->target, c->target, sizeof b->target);
        assert_memory_equal(b->weight, c->weight, sizeof b->weight);
        assert_memory_equal(b->score, c->score, sizeof b->score);
        case_free(b);
        case_free(c);
    }
}

/* Above the likeness patches go, the least score first, until the budget is reached. */
static void test_likeness(void **state)
{
    (void)state;
    plain *w = calloc(1, sizeof *w);
    static const double thresholds[] = {0.01, 0.1, 0.3, 1};
    for (int i = 0; i < 4; i++) {
        mosaic_case *b = case_new((shape){14, 1, 33, 3, 196, 196}, renyi_cpu_detect());
        b->p.policy.likeness = thresholds[i];
        b->p.policy.cuts[0].keep = 0.6;
        decide(b, 0);
        assert_sound(b);
        w->P = 196;
        plain_cosines(w, b);
        plain_choice(w, b);
        uint32_t may_go = 196 - 118, kept = 196;
        for (uint32_t k = 196; k-- > 0 && may_go;) {
            const uint32_t j = w->kept[k];
            double m = -2.0;
            for (uint32_t o = 0; o < 196; o++)
                if (b->row[1 + o] > b->row[1 + j]) m = fmax(m, w->S[j][o]);
            const int goes = m > thresholds[i];
            if (fabs(m - thresholds[i]) > 1e-6)
                assert_int_equal(b->source[b->target[1 + j]] != 1 + j, goes);
            may_go -= (uint32_t)goes;
            kept -= (uint32_t)goes;
        }
        assert_int_equal(b->cut.n_out, 1 + kept);
        assert_true(i < 3 || kept == 196);
        assert_true(i > 0 || kept == 118);
        case_free(b);
    }
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_thin_even_squares_first),
                                       cmocka_unit_test(test_thin_then_odd_squares),
                                       cmocka_unit_test(test_thin_keeps_all),
                                       cmocka_unit_test(test_needs),
                                       cmocka_unit_test(test_merge_as_written),
                                       cmocka_unit_test(test_tiles_in_any_order),
                                       cmocka_unit_test(test_rows_without_direction),
                                       cmocka_unit_test(test_copies_join),
                                       cmocka_unit_test(test_not_numbers),
                                       cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_share_of_columns),
                                       cmocka_unit_test(test_likeness)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
