/* test_visual_rules.c - tests PruMerge and VisPruner on random tokens against a direct
 * implementation in doubles of what docs/ALGORITHMS.md says.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "prune/rules/visual_rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { P = 37, C = 7, ROW = 2 * C };

typedef struct visual_tokens {
    float x[P * C], qk[P * ROW], class_row[P], columns[P];
    ry_visual_rule_view view;
} visual_tokens;

static void random_tokens(visual_tokens *p, uint64_t seed)
{
    ry_rng rng = ry_rng_new(seed);
    for (int i = 0; i < P * C; i++) p->x[i] = (float)ry_rng_normal(&rng);
    for (int i = 0; i < P * ROW; i++) p->qk[i] = (float)ry_rng_normal(&rng);
    for (int i = 0; i < P; i++) {
        p->class_row[i] = (float)exp(ry_rng_normal(&rng)) / P;
        p->columns[i] = (float)exp(ry_rng_normal(&rng)) / P;
    }
    p->view = (ry_visual_rule_view){p->x, p->qk, ROW, p->class_row, p->columns, 0.25f};
}

/* ---- the library's rule -------------------------------------------------------------------- */

typedef struct result {
    uint32_t n, most, kept[P + 1];
    float rows[(P + 1) * C];
} result;

static void run_rule(result *out, const visual_tokens *p, const char *text)
{
    const ry_policy_shape shape = {.n_blocks = 2, .n_patches = P, .n_prefix = 1, .visual = 1};
    ry_policy policy;
    ry_visual_rule *a = NULL;
    renyi_error err = {0};
    if (ry_policy_parse(&policy, text, &err) || ry_policy_check(&policy, &shape, &err))
        fail_msg("%s: %s", text, err.message);
    const ry_visual_rule_spec spec = {&policy, P, C, 1, renyi_cpu_detect()};
    assert_int_equal(ry_visual_rule_new(&a, &spec, NULL, &err), RENYI_OK);
    for (uint32_t phase = 0; phase < RY_VISUAL_PHASES; phase++)
        for (uint32_t t = 0; t < ry_visual_rule_tiles(a, phase); t++)
            ry_visual_rule_work(a, &p->view, out->rows, phase, t, 0);
    out->n = ry_visual_rule_count(a);
    out->most = ry_visual_rule_most(a);
    memcpy(out->kept, ry_visual_rule_kept(a), out->n * sizeof *out->kept);
    assert_true(out->n <= out->most && out->n <= P + 1);
    ry_visual_rule_free(a, NULL);
}

/* ---- the direct implementation ------------------------------------------------------------- */

static int best_of(const double *score, const char *taken, int n)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (!taken[i] && (best < 0 || score[i] > score[best])) best = i;
    return best;
}

static double cosine(const float *a, const float *b)
{
    double dot = 0, x = 0, y = 0;
    for (int k = 0; k < C; k++) {
        dot += (double)a[k] * (double)b[k];
        x += (double)a[k] * (double)a[k];
        y += (double)b[k] * (double)b[k];
    }
    return dot / sqrt(x * y);
}

/* Weights of the sums: class attention, or column norms divided by their sum. */
static void make_weights(double *w, const visual_tokens *p, int col)
{
    double sum = 0.25 + 1e-6;
    for (int i = 0; i < P; i++) sum += (double)p->columns[i];
    for (int i = 0; i < P; i++) w[i] = col ? (double)p->columns[i] / sum : (double)p->class_row[i];
}

/* x of row `self` plus its nearest by keys; self < 0: the sum of everything not kept. */
static void slow_row(double *row, const visual_tokens *p, int self, const char *kept,
                     const double *w, int neighbours)
{
    double near[P];
    char used[P];
    for (int k = 0; k < C; k++) row[k] = self < 0 ? 0.0 : (double)p->x[self * C + k];
    for (int j = 0; j < P; j++) {
        used[j] = j == self;
        near[j] = self < 0 ? 0.0 : cosine(p->qk + self * ROW, p->qk + j * ROW);
    }
    for (int m = 0; self >= 0 && m < neighbours; m++) {
        const int j = best_of(near, used, P);
        if (j < 0) break;
        used[j] = 1;
        for (int k = 0; k < C; k++) row[k] += w[j] * (double)p->x[j * C + k];
    }
    for (int j = 0; self < 0 && j < P; j++)
        for (int k = 0; !kept[j] && k < C; k++) row[k] += w[j] * (double)p->x[j * C + k];
}

static void check_prumerge(const visual_tokens *p, const char *text, int count, int col, int stride,
                           int neighbours)
{
    result got;
    double w[P];
    char taken[P] = {0};
    int kept[P + 1], n = 0;
    run_rule(&got, p, text);
    make_weights(w, p, col);
    for (; n < count; n++) taken[kept[n] = best_of(w, taken, P)] = 1;
    for (int j = 0; stride && j < P - 1; j += stride)
        if (!taken[j]) taken[kept[n++] = j] = 1;
    if (n < P) kept[n++] = -1;
    assert_int_equal(got.n, n);
    for (int i = 0; i < n; i++) {
        double row[C];
        assert_int_equal((int)got.kept[i], kept[i]);
        slow_row(row, p, kept[i], taken, w, neighbours);
        for (int k = 0; k < C; k++) assert_true(fabs((double)got.rows[i * C + k] - row[k]) < 1e-5);
    }
}

static void test_prumerge(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        visual_tokens p;
        random_tokens(&p, seed);
        check_prumerge(&p, "prumerge tokens=12", 12, 0, 0, 32);
        check_prumerge(&p, "prumerge tokens=12 metric=col neighbours=3", 12, 1, 0, 3);
        check_prumerge(&p, "prumerge keep=0.3 metric=col n=2 neighbours=0", 11, 1, 0, 0);
        check_prumerge(&p, "prumerge tokens=37", 37, 0, 0, 32);
        check_prumerge(&p, "prumerge tokens=3 plus", 3, 0, 4, 32); /* int(int(37/3) / 3) */
        check_prumerge(&p, "prumerge tokens=12 plus neighbours=99", 12, 0, 1, 99);
    }
}

/* Outliers by the quartiles stay. Equal scores leave one row, the sum of everything. */
static void test_adaptive(void **state)
{
    (void)state;
    visual_tokens p;
    result got;
    random_tokens(&p, 1);
    for (int i = 0; i < P; i++) p.class_row[i] = 0.01f;
    check_prumerge(&p, "prumerge adaptive", 0, 0, 0, 32);
    check_prumerge(&p, "prumerge adaptive plus", 0, 0, 0, 32);
    for (int i = 0; i < P; i++) p.class_row[i] = 0.01f * (float)(i + 1);
    check_prumerge(&p, "prumerge adaptive", 0, 0, 0, 32); /* Q3 + 1.5 (Q3 - Q1) is 0.55 */
    p.class_row[20] = 0.9f;
    p.class_row[5] = 0.8f;
    run_rule(&got, &p, "prumerge adaptive");
    assert_int_equal(got.n, 3);
    assert_int_equal(got.kept[0], 20);
    assert_int_equal(got.kept[1], 5);
    assert_int_equal(got.kept[2], RENYI_NONE);
    run_rule(&got, &p, "prumerge adaptive plus"); /* int(int(37/2) / 3) = 6: 0, 6 ... 30 */
    assert_int_equal(got.n, 9);
    assert_int_equal(got.most, P + 1);
}

/* Algorithm 2: class attention first, then columns among the others; sums weighted by attention. */
static void test_correct(void **state)
{
    (void)state;
    visual_tokens p;
    result got;
    double cls[P], col[P];
    char taken[P] = {0};
    random_tokens(&p, 4);
    run_rule(&got, &p, "prumerge tokens=10 metric=correct c=0.35 neighbours=0");
    for (int i = 0; i < P; i++) {
        cls[i] = (double)p.class_row[i];
        col[i] = (double)p.columns[i];
    }
    for (uint32_t i = 0; i < 10; i++) {
        const int want = best_of(i < 7 ? cls : col, taken, P); /* trunc(3.5) by columns */
        taken[want] = 1;
        assert_int_equal((int)got.kept[i], want);
    }
    for (int k = 0; k < C; k++) {
        double sum = 0;
        for (int j = 0; j < P; j++)
            if (!taken[j]) sum += cls[j] * (double)p.x[j * C + k];
        assert_true(fabs(sum - (double)got.rows[10 * C + k]) < 1e-5);
    }
}

/* ---- vispruner ----------------------------------------------------------------------------- */

typedef struct vispruner_case {
    const char *text;
    int tokens, important, by_column, position, round;
} vispruner_case;

/* The list after one round; returns its length. */
static int slow_round(int *list, int n, int remove, const visual_tokens *p)
{
    const int even = (n + 1) / 2;
    double s[P];
    char used[P] = {0};
    int next[P], left = 0;
    for (int i = 0; i < even; i++) {
        s[i] = -2;
        for (int b = 1; b < n; b += 2)
            s[i] = fmax(s[i], cosine(p->x + list[2 * i] * C, p->x + list[b] * C));
    }
    for (int k = 0; k < even; k++) {
        const int i = best_of(s, used, even);
        used[i] = 1;
        if (k >= remove) next[left++] = list[2 * i];
    }
    for (int b = 1; b < n; b += 2) next[left++] = list[b];
    memcpy(list, next, (size_t)left * sizeof *list);
    return left;
}

static void check_vispruner(const visual_tokens *p, const vispruner_case *c)
{
    double cls[P], col[P];
    char taken[P] = {0}, used[P];
    int list[P], n = 0;
    result got;
    for (int i = 0; i < P; i++) {
        cls[i] = (double)p->class_row[i];
        col[i] = (double)p->columns[i];
    }
    const int all_columns = c->by_column == c->important && strstr(c->text, "=col") != NULL;
    for (int i = 0; i < c->important; i++)
        taken[best_of(i < c->important - c->by_column ? cls : col, taken, P)] = 1;
    memcpy(used, taken, sizeof used);
    for (int i = 0; i < P; i++) {
        const int j = c->position ? i : best_of(all_columns ? col : cls, used, P);
        if (j < 0 || used[j]) continue;
        used[j] = 1;
        list[n++] = j;
    }
    const int diverse = c->tokens - c->important;
    while (diverse && n > diverse) {
        int remove = n - diverse < c->round ? n - diverse : c->round;
        if (remove > (n + 1) / 2) remove = (n + 1) / 2;
        n = slow_round(list, n, remove, p);
    }
    for (int i = 0; diverse && i < n; i++) taken[list[i]] = 1;
    run_rule(&got, p, c->text);
    assert_int_equal(got.n, c->tokens);
    assert_int_equal(got.most, c->tokens);
    for (int j = 0, k = 0; j < P; j++) {
        if (!taken[j]) continue;
        assert_int_equal((int)got.kept[k], j);
        assert_memory_equal(got.rows + k * C, p->x + j * C, C * sizeof(float));
        k++;
    }
}

static void test_vispruner(void **state)
{
    (void)state;
    static const vispruner_case cases[] = {
        {"vispruner tokens=12", 12, 6, 0, 0, 8}, /* a residual of 31: odd, unlike upstream */
        {"vispruner tokens=13 important=0.75 round=1", 13, 9, 0, 0, 1},
        {"vispruner tokens=12 metric=col", 12, 6, 6, 0, 8},
        {"vispruner tokens=14 metric=correct c=0.5", 14, 7, 3, 1, 8},
        {"vispruner tokens=14 metric=correct c=0.5 residual=score", 14, 7, 3, 0, 8},
        {"vispruner tokens=14 residual=position important=0", 14, 0, 0, 1, 8},
        {"vispruner tokens=9 important=1", 9, 9, 0, 0, 8},
        {"vispruner tokens=2 round=999", 2, 1, 0, 0, 999},
        {"vispruner keep=1", 37, 18, 0, 0, 8},
    };
    for (uint64_t seed = 0; seed < 10; seed++) {
        visual_tokens p;
        random_tokens(&p, seed);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_vispruner(&p, &cases[i]);
    }
}

/* NaN scores still give a valid choice. */
static void test_not_numbers(void **state)
{
    (void)state;
    visual_tokens p;
    result got;
    random_tokens(&p, 2);
    for (int i = 0; i < P; i += 3) p.class_row[i] = p.columns[i] = p.x[i * C] = NAN;
    run_rule(&got, &p, "prumerge adaptive plus");
    run_rule(&got, &p, "prumerge tokens=9 metric=correct");
    assert_int_equal(got.n, 10);
    run_rule(&got, &p, "vispruner tokens=9 metric=correct");
    assert_int_equal(got.n, 9);
    for (uint32_t i = 1; i < got.n; i++) assert_true(got.kept[i] > got.kept[i - 1]);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
        int visual;
    } cases[] = {{"prumerge", "this model has none", 0},
                 {"vispruner tokens=5", "this model has none", 0},
                 {"prumerge tokens=38", "tokens=38: an image has 37 patches", 1},
                 {"vispruner keep=0.02", "keep=0.02 leaves none of 37", 1},
                 {"prumerge tokens=13 plus", "at most a third, 12", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ry_policy_shape shape = {2, P, 1, 6, cases[i].visual, 0};
        ry_policy policy;
        renyi_error err = {0};
        assert_int_equal(ry_policy_parse(&policy, cases[i].text, &err), RENYI_OK);
        assert_int_equal(ry_policy_check(&policy, &shape, &err), RENYI_ERR_ARG);
        if (!strstr(err.message, cases[i].says)) fail_msg("%s: %s", cases[i].text, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prumerge),    cmocka_unit_test(test_adaptive),
        cmocka_unit_test(test_correct),     cmocka_unit_test(test_vispruner),
        cmocka_unit_test(test_not_numbers), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
