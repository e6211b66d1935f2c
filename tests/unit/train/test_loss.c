/* test_loss.c - losses and their gradients against PyTorch's in double, and every gradient against
 * finite differences of the loss.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "model/common/hook.h"
#include "train/run/loss.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

static void assert_near(double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound)) fail_msg("%.12g, wanted %.12g", got, want);
}

static const float logits[2][4] = {{1.5f, -0.25f, 0.75f, 2.0f}, {0.5f, 0.5f, -3.0f, 1.25f}};
static const float mixed[2][4] = {{.925f, .025f, .025f, .025f}, {.3f, .1f, .55f, .05f}};
static const float teacher[2][4] = {{3.0f, -1.0f, 0.5f, 1.0f}, {-2.0f, 1.0f, 0.25f, 1.0f}};
static const uint32_t labels[2] = {3, 1};
static const ry_logits z = {&logits[0][0], 2, 4};

static void check(double loss, const float *d, double want, const double *gradient, double scale)
{
    assert_near(loss, want, 1e-7);
    for (int i = 0; i < 8; i++) assert_near((double)d[i], scale * gradient[i], 1e-7);
}

static void test_torch(void **state)
{
    static const double soft[] = {-0.6214971308,  0.02774089044, 0.1183646041,  0.4753916362,
                                  -0.05887330562, 0.1411266944,  -0.5427186048, 0.460465216};
    static const double label[] = {0.2785028692, 0.02774089044, 0.1183646041,   -0.4246083638,
                                   0.2161266944, -0.6838733056, -0.01771860476, 0.485465216};
    static const double kl[] = {-0.5153796859, 0.1089455449,  0.0799598439,  0.326474297,
                                0.4476000559,  -0.1266955819, -0.4374058268, 0.1165013527};
    static const double hard[] = {-0.6964971308, 0.05274089044, 0.1433646041,   0.5003916362,
                                  0.2411266944,  -0.7588733056, 0.007281395243, 0.510465216};
    float d[4][8] = {{0}};
    (void)state;
    check(ry_loss_soft(&z, &mixed[0][0], 0.5, d[0]), d[0], 4.5522969955, soft, 0.5);
    check(ry_loss_label(&z, labels, 0.1, 0.5, d[1]), d[1], 2.2835469955, label, 0.5);
    check(ry_loss_teacher_soft(&z, &teacher[0][0], 2.5, 0.5, d[2]), d[2], 1.97547504168, kl, 0.5);
    check(ry_loss_teacher_hard(&z, &teacher[0][0], 0.5, d[3]), d[3], 2.6147969955, hard, 0.5);
    ry_loss_soft(&z, &mixed[0][0], 0.5, d[0]); /* adds */
    for (int i = 0; i < 8; i++) assert_near((double)d[0][i], soft[i], 2e-7);
    assert_near(ry_loss_soft(&z, &mixed[0][0], 1.0, NULL), 4.5522969955, 1e-7);
}

/* ---- finite differences -------------------------------------------------------------------- */

/* f(x) for n floats; the gradient g must be the slope of f for each of them. */
typedef double (*function)(const float *x, float *gradient);

static void check_slopes(function f, float *x, size_t n)
{
    float g[64], none[64];
    assert_true(n <= 64);
    f(x, g);
    for (size_t i = 0; i < n; i++) {
        const float at = x[i], up = at + 0x1p-10f, down = at - 0x1p-10f;
        x[i] = up;
        const double high = f(x, none);
        x[i] = down;
        const double low = f(x, none);
        x[i] = at;
        assert_near((double)g[i], (high - low) / ((double)up - (double)down), 3e-7);
    }
}

enum { N = 3, C = 5 };

static float targets[N * C], answers[N * C];
static ry_loss_spec spec;
static int heads;

/* x: logits of the first head, then of the second. */
static double model_loss(const float *x, float *g)
{
    const ry_loss_batch b = {N, C, x, heads > 1 ? x + N * C : NULL, targets, answers};
    return 0.25 * ry_loss(&spec, &b, 0.25, g, heads > 1 ? g + N * C : NULL).total;
}

static void test_slopes(void **state)
{
    float x[2 * N * C];
    (void)state;
    for (int i = 0; i < 2 * N * C; i++) x[i] = (float)((i * 37) % 23 - 11) / 6.0f;
    for (int i = 0; i < N * C; i++) {
        targets[i] = (float)((i * 5) % 7) / 14.0f; /* of any sum */
        answers[i] = (float)((i * 13) % 17 - 8) / 4.0f;
    }
    for (heads = 1; heads <= 2; heads++)
        for (int kind = RY_DISTIL_NONE; kind <= RY_DISTIL_HARD; kind++) {
            spec = (ry_loss_spec){(ry_distil)kind, 0.3, 3.0};
            check_slopes(model_loss, x, (size_t)(heads * N * C));
        }
}

/* With two heads labels teach the first, the teacher the second. */
static void test_two_heads(void **state)
{
    const float second[2][4] = {{0.0f, 1.0f, -1.0f, 0.5f}, {2.0f, 0.0f, 0.25f, 0.0f}};
    const ry_logits z2 = {&second[0][0], 2, 4};
    const ry_loss_batch b = {2, 4, z.rows, z2.rows, &mixed[0][0], &teacher[0][0]};
    ry_loss_spec s = {RY_DISTIL_HARD, 0.5, 1.0};
    float d[8], d2[8], want[8] = {0}, want2[8] = {0}, mean[8];
    (void)state;
    const double first = ry_loss_soft(&z, b.target, 0.5, want);
    const double other = ry_loss_teacher_hard(&z2, b.teacher, 0.5, want2);
    const ry_loss_sum sum = ry_loss(&s, &b, 1.0, d, d2);
    assert_near(sum.labels, first, 0.0);
    assert_near(sum.teacher, other, 0.0);
    assert_near(sum.total, 0.5 * first + 0.5 * other, 1e-12);
    assert_memory_equal(d, want, sizeof d);
    assert_memory_equal(d2, want2, sizeof d2);
    s.distil = RY_DISTIL_NONE; /* then the output is the mean of both */
    for (int i = 0; i < 8; i++) mean[i] = 0.5f * (z.rows[i] + z2.rows[i]);
    const ry_logits average = {mean, 2, 4};
    memset(want, 0, sizeof want);
    assert_near(ry_loss(&s, &b, 1.0, d, d2).total, ry_loss_soft(&average, b.target, 0.5, want),
                1e-12);
    assert_memory_equal(d, want, sizeof d);
    assert_memory_equal(d2, want, sizeof d2);
    s = (ry_loss_spec){RY_DISTIL_SOFT, 0.0, 1.0}; /* a teacher without weight, for tokens only */
    const ry_loss_sum silent = ry_loss(&s, &b, 1.0, d, d2);
    assert_true(silent.teacher == 0.0 && silent.total == silent.labels);
    assert_memory_equal(d2, want, sizeof d2);
}

/* NaN and +infinity give NaN; large numbers give finite losses. */
static void test_bad_numbers(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float x[8], d[8];
    (void)state;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 4; i++) {
            const ry_logits zx = {x, 2, 4};
            memcpy(x, logits, sizeof x);
            x[i] = bad[k];
            memset(d, 0, sizeof d);
            assert_true(isnan(ry_loss_soft(&zx, &mixed[0][0], 1.0, d)));
            assert_true(isnan(d[0]) && !isnan(d[4]));
            assert_true(isnan(ry_loss_label(&zx, labels, 0.0, 1.0, NULL)));
            assert_true(isnan(ry_loss_teacher_soft(&zx, &teacher[0][0], 2.0, 1.0, NULL)));
            assert_true(isnan(ry_loss_teacher_soft(&z, x, 2.0, 1.0, d)));
            if (k == 0) assert_true(isnan(ry_loss_teacher_hard(&z, x, 1.0, d)));
        }
    memcpy(x, logits, sizeof x);
    x[0] = bad[2]; /* a class of probability 0 costs nothing unless it is the target */
    assert_false(isnan(ry_loss_label(&(ry_logits){x, 2, 4}, labels, 0.0, 1.0, d)));
    x[0] = 3e38f, x[1] = -3e38f;
    memset(d, 0, sizeof d);
    assert_true(isfinite(ry_loss_soft(&(ry_logits){x, 2, 4}, &mixed[0][0], 1.0, d)));
    assert_true(isfinite(d[0]) && isfinite(d[1]));
}

/* Random rows of every magnitude: finite losses that are no less than 0, gradients that sum to 0.
 */
static void test_properties(void **state)
{
    ry_rng rng = ry_rng_new(11);
    (void)state;
    for (int k = 0; k < 4000; k++) {
        float x[6], q[6], t[6], d[3][6] = {{0}};
        const uint32_t n = 1 + (uint32_t)(ry_rng_next(&rng) % 6);
        const double size = pow(10.0, 44.0 * ry_rng_uniform(&rng) - 8.0);
        const double temperature = pow(10.0, 4.0 * ry_rng_uniform(&rng) - 2.0);
        float sum = 0.0f;
        for (uint32_t i = 0; i < n; i++) {
            x[i] = (float)(size * (ry_rng_uniform(&rng) - 0.5));
            t[i] = (float)(size * (ry_rng_uniform(&rng) - 0.5));
            sum += q[i] = (float)ry_rng_uniform(&rng);
        }
        for (uint32_t i = 0; i < n; i++) q[i] /= sum;
        const ry_logits row = {x, 1, n};
        const double loss[] = {ry_loss_soft(&row, q, 1.0, d[0]),
                               ry_loss_teacher_soft(&row, t, temperature, 1.0, d[1]),
                               ry_loss_teacher_hard(&row, t, 1.0, d[2])};
        for (int l = 0; l < 3; l++) {
            double balance = 0.0, length = 0.0;
            for (uint32_t i = 0; i < n; i++)
                balance += (double)d[l][i], length += fabs((double)d[l][i]);
            assert_true(isfinite(loss[l]) && loss[l] >= -1e-9 * (1.0 + temperature * temperature));
            assert_true(fabs(balance) <= 1e-6 * length + 1e-6 * temperature);
        }
    }
}

/* ---- token features ------------------------------------------------------------------------ */

static const float rows2[] = {0.5f, -1.5f, 2.0f, 1.0f, 0.25f, -0.75f};
static const float tokens2[] = {0.25f, 1.0f, 1.75f, -1.0f, 0.5f, -0.25f};

static void test_features_torch(void **state)
{
    static const uint32_t patch[] = {0, 1};
    const ry_feature_batch b = {1, 2, 2, 3, rows2, patch, tokens2};
    static const struct {
        ry_feature_spec spec;
        double loss, gradient[6];
    } cases[] = {
        {{RY_FEATURE_SMOOTH_L1, 0.0, 0},
         0.619791666667,
         {0.04166666667, -0.1666666667, 0.04166666667, 0.1666666667, -0.04166666667,
          -0.08333333333}},
        {{RY_FEATURE_SMOOTH_L1, 2.0, 0},
         0.434895833333,
         {0.02083333333, -0.1666666667, 0.02083333333, 0.1666666667, -0.02083333333,
          -0.04166666667}},
        {{RY_FEATURE_MSE, 0.0, 0},
         1.78125,
         {0.08333333333, -0.8333333333, 0.08333333333, 0.6666666667, -0.08333333333,
          -0.1666666667}},
        {{RY_FEATURE_COSINE, 0.0, 0},
         1.03018633731,
         {-0.008356232589, -0.1439128946, -0.1058456128, 0.1975202273, -0.2073962387,
          0.1942282235}},
    };
    (void)state;
    for (int k = 0; k < 4; k++) {
        float d[6];
        assert_near(ry_loss_features(&cases[k].spec, &b, 2.0, d), cases[k].loss, 1e-11);
        for (int i = 0; i < 6; i++) assert_near((double)d[i], 2.0 * cases[k].gradient[i], 1e-7);
        assert_near(ry_loss_features(&cases[k].spec, &b, 2.0, NULL), cases[k].loss, 1e-11);
    }
}

enum { IMAGES = 2, ROWS = 4, PATCHES = 5, DIM = 6 };

static ry_feature_spec feature_spec;
static float tokens[IMAGES * PATCHES * DIM];
/* Patches that were cut away, out of order, and rows that are not one patch. */
static const uint32_t patches[IMAGES * ROWS] = {0, 3, RY_NO_TOKEN, 1, 4, 2, 0, RY_NO_TOKEN};

static double feature_loss(const float *x, float *g)
{
    const ry_feature_batch b = {IMAGES, ROWS, PATCHES, DIM, x, patches, tokens};
    return 0.5 * ry_loss_features(&feature_spec, &b, 0.5, g);
}

static void test_features_slopes(void **state)
{
    float x[IMAGES * ROWS * DIM], g[IMAGES * ROWS * DIM];
    (void)state;
    for (int i = 0; i < IMAGES * PATCHES * DIM; i++) tokens[i] = (float)((i * 11) % 29 - 14) / 8.0f;
    for (int i = 0; i < IMAGES * ROWS * DIM; i++) x[i] = (float)((i * 17) % 31 - 15) / 9.0f;
    for (int kind = RY_FEATURE_SMOOTH_L1; kind <= RY_FEATURE_COSINE; kind++) {
        feature_spec =
            (ry_feature_spec){(ry_feature_distance)kind, 0.76, 0}; /* no element is at it */
        check_slopes(feature_loss, x, IMAGES * ROWS * DIM);
        feature_loss(x, g);
        for (int i = 0; i < DIM; i++) assert_true(g[2 * DIM + i] == 0.0f); /* the fused row */
    }
}

/* In deviations of the teacher's row: scaling both by the same factor changes nothing. */
static void test_features_relative(void **state)
{
    static const uint32_t patch[] = {0, 1};
    float rows[6], teacher[6];
    (void)state;
    for (int i = 0; i < 6; i++) rows[i] = 8.0f * rows2[i], teacher[i] = 8.0f * tokens2[i];
    for (int kind = RY_FEATURE_SMOOTH_L1; kind <= RY_FEATURE_MSE; kind++) {
        const ry_feature_spec spec = {(ry_feature_distance)kind, 0.76, 1};
        const ry_feature_batch a = {1, 2, 2, 3, rows2, patch, tokens2},
                               b = {1, 2, 2, 3, rows, patch, teacher};
        assert_near(ry_loss_features(&spec, &b, 1.0, NULL), ry_loss_features(&spec, &a, 1.0, NULL),
                    1e-9);
        feature_spec = spec;
        float x[IMAGES * ROWS * DIM];
        for (int i = 0; i < IMAGES * ROWS * DIM; i++) x[i] = (float)((i * 17) % 31 - 15) / 9.1f;
        check_slopes(feature_loss, x, IMAGES * ROWS * DIM);
    }
}

static void test_features_edges(void **state)
{
    static const uint32_t none[] = {RY_NO_TOKEN, RY_NO_TOKEN}, patch[] = {0, 1};
    float x[6], d[6];
    (void)state;
    const ry_feature_spec s = {RY_FEATURE_SMOOTH_L1, 0.0}, c = {RY_FEATURE_COSINE, 0.0};
    assert_true(
        ry_loss_features(&s, &(ry_feature_batch){1, 2, 2, 3, rows2, none, tokens2}, 1.0, d) == 0.0);
    for (int i = 0; i < 6; i++) assert_true(d[i] == 0.0f);
    memcpy(x, rows2, sizeof x);
    x[0] = x[1] = x[2] = 0.0f; /* no direction */
    const ry_feature_batch b = {1, 2, 2, 3, x, patch, tokens2};
    assert_true(isfinite(ry_loss_features(&c, &b, 1.0, d)));
    assert_true(d[0] == 0.0f);
    x[1] = NAN;
    assert_true(isnan(ry_loss_features(&s, &b, 1.0, d)) && isnan(d[1]));
    assert_true(isnan(ry_loss_features(&c, &b, 1.0, d)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch),           cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_two_heads),       cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_properties),      cmocka_unit_test(test_features_torch),
        cmocka_unit_test(test_features_slopes), cmocka_unit_test(test_features_relative),
        cmocka_unit_test(test_features_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
