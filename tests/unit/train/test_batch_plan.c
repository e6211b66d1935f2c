/* test_batch_plan.c - which samples are in which micro-batch, the order of an epoch, and mixing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/batch_plan.h"
#include "train/data/batch_sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* ---- order --------------------------------------------------------------------------------- */

static void test_order_is_a_permutation(void **state)
{
    (void)state;
    static uint8_t seen[5000];
    for (uint64_t n = 1; n <= 5000; n = n < 70 ? n + 1 : n * 2 + 1)
        for (uint64_t key = 0; key < 3; key++) {
            memset(seen, 0, sizeof seen);
            for (uint64_t i = 0; i < n; i++) {
                const uint64_t at = ry_order_at(key * 77, n, i);
                assert_true(at < n && !seen[at]);
                seen[at] = 1;
            }
        }
}

/* Every image comes early in some epochs and late in others; neighbors in one epoch are not
 * neighbors in the next. */
static void test_order_is_random(void **state)
{
    (void)state;
    enum { N = 1000, EPOCHS = 400 };
    double worst = 0;
    int neighbours = 0;
    for (uint64_t i = 0; i < N; i += 37) {
        double sum = 0;
        for (uint64_t e = 0; e < EPOCHS; e++) {
            const uint64_t key = ry_rng_for(1, RY_CHANCE_ORDER, e, 0).state;
            const uint64_t at = ry_order_at(key, N, i), next = ry_order_at(key, N, (i + 1) % N);
            sum += (double)at;
            neighbours += at + 1 == next || next + 1 == at;
        }
        worst = fmax(worst, fabs(sum / EPOCHS / N - 0.5));
    }
    assert_true(worst < 4.5 * sqrt(1.0 / 12 / EPOCHS)); /* 28 means, 4.5 deviations */
    assert_true(neighbours < 60);                       /* 22 expected of 28 * 400 */
}

/* ---- items --------------------------------------------------------------------------------- */

static ry_plan plan_of(uint64_t n, uint32_t batch, uint32_t micro, uint32_t rank, uint32_t ranks,
                       int keep_last)
{
    ry_plan p = {.n_images = n,
                 .seed = 3,
                 .batch = batch,
                 .micro = micro,
                 .repeats = 1,
                 .rank = rank,
                 .n_ranks = ranks};
    ry_plan_make(&p, keep_last);
    return p;
}

/* Count the samples of one epoch of one rank; check pairs, order and flags. */
static void count_epoch(const ry_plan *p, uint8_t *seen)
{
    uint32_t step = UINT32_MAX;
    for (uint64_t i = 0; i < p->n_items; i++) {
        const ry_plan_item it = ry_plan_at(p, 5 * p->n_items + i);
        assert_int_equal(it.epoch, 5);
        if (it.step != step) {
            step = it.step;
            assert_int_equal(ry_plan_find(p, 5, step), 5 * p->n_items + i);
        }
        const ry_plan_item after = ry_plan_at(p, 5 * p->n_items + i + 1);
        assert_int_equal(it.last_of_epoch, after.epoch == 6);
        assert_int_equal(it.last_of_step, after.epoch == 6 || after.step != it.step);
        assert_true(it.n <= p->micro);
        for (uint32_t r = 0; r < it.n; r++) {
            const uint32_t s = ry_plan_sample(&it, r);
            assert_int_equal(s + ry_plan_sample(&it, it.n - 1 - r), it.batch - 1);
            assert_true(!r || s > ry_plan_sample(&it, r - 1));
            seen[ry_plan_place(p, &it, s)]++;
        }
    }
}

static void test_every_sample_once(void **state)
{
    (void)state;
    static uint8_t seen[64];
    for (uint64_t n = 1; n <= 40; n += 3)
        for (uint32_t batch = 1; batch <= 13; batch++)
            for (uint32_t micro = 2; micro <= 8; micro += 2)
                for (uint32_t ranks = 1; ranks <= 4; ranks++)
                    for (int keep = 0; keep < 2; keep++) {
                        if (n < batch && !keep) continue;
                        memset(seen, 0, sizeof seen);
                        for (uint32_t r = 0; r < ranks; r++) {
                            const ry_plan p = plan_of(n, batch, micro, r, ranks, keep);
                            count_epoch(&p, seen);
                        }
                        const uint64_t length = keep ? n : n / batch * batch;
                        for (uint64_t i = 0; i < sizeof seen; i++)
                            assert_int_equal(seen[i], i < length);
                    }
}

/* Repeated augmentation: an image comes three times in a row, a third of the images in an epoch. */
static void test_repeats(void **state)
{
    (void)state;
    ry_plan p = plan_of(30, 6, 2, 0, 1, 0);
    int seen[30] = {0}, images = 0;
    p.repeats = 3;
    for (uint64_t i = 0; i < p.n_items; i++) {
        const ry_plan_item it = ry_plan_at(&p, i);
        for (uint32_t r = 0; r < it.n; r++) seen[ry_plan_image(&p, &it, ry_plan_sample(&it, r))]++;
    }
    for (int i = 0; i < 30; i++) {
        assert_true(seen[i] == 0 || seen[i] == 3);
        images += seen[i] > 0;
    }
    assert_int_equal(images, 10);
}

/* ---- mixing -------------------------------------------------------------------------------- */

static void test_beta(void **state)
{
    (void)state;
    const double alphas[] = {0.01, 0.2, 0.8, 1.0, 5.0};
    for (size_t k = 0; k < sizeof alphas / sizeof *alphas; k++) {
        enum { N = 20000 };
        ry_rng rng = ry_rng_new(k);
        double sum = 0, square = 0;
        for (int i = 0; i < N; i++) {
            const double x = ry_rng_beta(&rng, alphas[k]);
            assert_true(x >= 0 && x <= 1);
            sum += x;
            square += (x - 0.5) * (x - 0.5);
        }
        const double variance = 1 / (4 * (2 * alphas[k] + 1));
        assert_true(fabs(sum / N - 0.5) < 4 * sqrt(variance / N));
        assert_true(fabs(square / N / variance - 1) < 0.05);
    }
}

static void test_mix_draw(void **state)
{
    (void)state;
    enum { N = 4000, SIZE = 160 };
    ry_augment a;
    int cuts = 0;
    double area = 0;
    ry_augment_defaults(&a);
    for (uint64_t i = 0; i < N; i++) {
        ry_rng rng = ry_rng_for(9, RY_CHANCE_MIX, 0, i);
        const ry_mix m = ry_mix_draw(&a, SIZE, &rng);
        assert_true(m.lambda >= 0 && m.lambda <= 1);
        if (!m.is_cut) continue;
        assert_true(m.top <= m.bottom && m.bottom <= SIZE && m.left <= m.right && m.right <= SIZE);
        const double cut = (double)(m.bottom - m.top) * (m.right - m.left) / (SIZE * SIZE);
        assert_true(fabs(1 - cut - m.lambda) < 1e-12);
        area += cut;
        cuts++;
    }
    assert_true(abs(cuts - N / 2) < 150);
    /* A square of side s at a random place loses s/4 of its length on average: E[(s - s^2/4)^2]
     * for s^2 uniform is 1/2 - 1/5 + 1/48. */
    assert_true(fabs(area / cuts - (0.5 - 0.2 + 1.0 / 48)) < 0.02);
    a.mix_prob = 0;
    ry_rng rng = ry_rng_new(1);
    assert_true(ry_mix_draw(&a, SIZE, &rng).lambda == 1.0);
}

static void test_mix_pair(void **state)
{
    (void)state;
    float a[3 * 4 * 4], b[3 * 4 * 4];
    const ry_mix cut = {0.875, 1, 1, 3, 2, 3}, up = {0.25, 0, 0, 0, 0, 0};
    for (int i = 0; i < 48; i++) a[i] = (float)i, b[i] = (float)(100 + i);
    ry_mix_pair(a, b, 4, &cut);
    for (int i = 0; i < 48; i++) {
        const int y = i / 4 % 4, x = i % 4, in = y >= 1 && y < 3 && x == 2;
        assert_true(a[i] == (float)(in ? 100 + i : i) && b[i] == (float)(in ? i : 100 + i));
    }
    ry_mix_pair(a, b, 4, &cut); /* back */
    ry_mix_pair(a, b, 4, &up);
    for (int i = 0; i < 48; i++)
        assert_true(a[i] == (float)(75 + i) && b[i] == (float)(25 + i)); /* exact in quarters */
}

static void test_mix_target(void **state)
{
    (void)state;
    float t[10], sum = 0;
    const ry_mix_labels labels = {3, 7, 10, 0.1, 0.3};
    ry_mix_target(t, &labels);
    for (int k = 0; k < 10; k++) {
        const double hot = k == 3 ? 0.3 : k == 7 ? 0.7 : 0.0;
        assert_true(fabs((double)t[k] - (0.01 + 0.9 * hot)) < 1e-7);
        sum += t[k];
    }
    assert_true(fabs((double)sum - 1) < 1e-6);
    const ry_mix_labels same = {2, 2, 10, 0, 0.4};
    ry_mix_target(t, &same);
    assert_true(fabs((double)t[2] - 1) < 1e-7 && t[3] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_is_a_permutation),
        cmocka_unit_test(test_order_is_random),
        cmocka_unit_test(test_every_sample_once),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_beta),
        cmocka_unit_test(test_mix_draw),
        cmocka_unit_test(test_mix_pair),
        cmocka_unit_test(test_mix_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
