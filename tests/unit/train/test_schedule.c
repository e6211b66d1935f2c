/* test_schedule.c - learning rates against timm's CosineLRScheduler, keep rates by the formula of
 * EViT at points computed by hand, stochastic depth as stateless draws.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/settings/schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

#define assert_close(a, b) assert_true(fabs((a) - (b)) <= 1e-9 * (fabs(b) + 1e-12))

static double lr_in(const ry_lr_schedule *s, uint32_t epoch)
{
    return ry_lr_at(s, (ry_moment){epoch, 7, 10});
}

/* The paper's recipe: 2e-5 at a batch of 2048, no warm-up, minimum 2e-6, 30 epochs. */
static void test_paper(void **state)
{
    ry_lr_schedule s = {.tick = RY_LR_PER_EPOCH_LATE,
                        .peak = ry_lr_for_batch(2e-5, 2048),
                        .min = 2e-6,
                        .epochs = 30};
    (void)state;
    assert_close(s.peak, 8e-5);
    assert_close(lr_in(&s, 0), 8e-5);
    assert_close(lr_in(&s, 1), 8e-5); /* the index of the epoch just finished */
    assert_close(lr_in(&s, 2), 7.978635392e-05);
    assert_close(lr_in(&s, 16), 4.1e-5);
    assert_close(lr_in(&s, 29), 2.852243571e-06);
    s.tick = RY_LR_PER_EPOCH;
    assert_close(lr_in(&s, 1), 7.978635392e-05);
    assert_close(lr_in(&s, 29), 2.213646081e-06);
}

static void test_warmup(void **state)
{
    static const uint32_t epochs[] = {0, 1, 4, 5, 6, 15, 29, 30, 31};
    static const double plain[] = {1e-06,           1.68e-05,        6.42e-05,
                                   7.477499075e-05, 7.255166278e-05, 4.1e-05,
                                   2.213646081e-06, 2e-06,           2e-06};
    static const double prefix[] = {1e-06,           1.68e-05,        6.42e-05,
                                    8e-05,           7.969247335e-05, 5.305166278e-05,
                                    2.307526649e-06, 2e-06,           2e-06};
    ry_lr_schedule s = {.tick = RY_LR_PER_EPOCH,
                        .peak = 8e-5,
                        .min = 2e-6,
                        .epochs = 30,
                        .warmup_epochs = 5,
                        .warmup_lr = 1e-6};
    (void)state;
    for (int i = 0; i < 9; i++) {
        s.warmup_prefix = 0;
        assert_close(lr_in(&s, epochs[i]), plain[i]);
        s.warmup_prefix = 1;
        assert_close(lr_in(&s, epochs[i]), prefix[i]);
    }
    s.tick = RY_LR_PER_EPOCH_LATE; /* the first two epochs both begin with the warm-up's rate */
    assert_close(lr_in(&s, 0), 1e-6);
    assert_close(lr_in(&s, 1), 1e-6);
    assert_close(lr_in(&s, 2), 1.68e-5);
}

static void test_per_step(void **state)
{
    ry_lr_schedule s = {.peak = 1.0, .min = 0.1, .epochs = 10, .warmup_epochs = 0.5};
    double last = -1.0;
    (void)state;
    assert_close(ry_lr_at(&s, (ry_moment){0, 1, 4}), 0.5);
    assert_close(ry_lr_at(&s, (ry_moment){5, 0, 4}), 0.55);
    for (uint32_t t = 0; t < 40; t++) { /* up to the end of the warm-up, then down */
        const double lr = ry_lr_at(&s, (ry_moment){t / 4, t % 4, 4});
        assert_true(t <= 2 ? lr > last : lr < last);
        last = lr;
    }
    s.shape = RY_LR_LINEAR;
    assert_close(ry_lr_at(&s, (ry_moment){2, 2, 4}), 0.775);
    s.shape = RY_LR_CONSTANT;
    assert_close(ry_lr_at(&s, (ry_moment){9, 3, 4}), 1.0);
    s = (ry_lr_schedule){.peak = 1.0, .warmup_epochs = 3, .epochs = 3, .warmup_prefix = 1};
    assert_close(ry_lr_at(&s, (ry_moment){3, 0, 4}), 0.0); /* nothing is left of the shape */
}

/* rate = r + (1 - r)(1 + cos(pi (t - I s) / (I E))) / 2 between epochs s and s + E. */
static void test_keep(void **state)
{
    const ry_keep_schedule s = {0.7, 10, 100}, at_once = {0.7, 0, 0}, jump = {0.5, 3, 0};
    (void)state;
    assert_close(ry_keep_at(&s, (ry_moment){9, 99, 100}), 1.0);
    assert_close(ry_keep_at(&s, (ry_moment){10, 0, 100}), 1.0);
    assert_close(ry_keep_at(&s, (ry_moment){60, 0, 100}), 0.85);
    assert_close(ry_keep_at(&s, (ry_moment){35, 50, 100}),
                 0.85 + 0.15 * cos(3.14159265358979323846 * 0.255));
    assert_close(ry_keep_at(&s, (ry_moment){110, 0, 100}), 0.7);
    assert_close(ry_keep_at(&s, (ry_moment){300, 50, 100}), 0.7);
    assert_close(ry_keep_at(&at_once, (ry_moment){0, 0, 100}), 0.7);
    assert_close(ry_keep_at(&jump, (ry_moment){2, 99, 100}), 1.0);
    assert_close(ry_keep_at(&jump, (ry_moment){3, 0, 100}), 0.5);
}

static void test_drop_path(void **state)
{
    enum { L = 4, N = 500 };
    static float all[2 * L * N], some[2 * L * 3], other[2 * L * N];
    static uint64_t place[N];
    const ry_drop_path d = {0.3, L, 99};
    const ry_moment now = {2, 5, 10};
    (void)state;
    for (uint64_t i = 0; i < N; i++) place[i] = i;
    assert_close(ry_drop_path_rate(0.3, 3, 4), 0.3);
    assert_close(ry_drop_path_rate(0.3, 1, 4), 0.1);
    assert_true(ry_drop_path_rate(0.3, 0, 1) == 0.0);
    ry_drop_path_draw(&d, now, place, N, all);
    for (uint32_t b = 0; b < 2 * L; b++) {
        const double rate = 0.1 * (b / 2);
        int dropped = 0;
        for (int i = 0; i < N; i++) {
            const float f = all[b * N + i];
            dropped += f == 0.0f;
            assert_true(f == 0.0f || fabs((double)f - 1.0 / (1.0 - rate)) < 1e-6);
        }
        assert_true(fabs(dropped - N * rate) <= 4.0 * sqrt(N * rate * (1.0 - rate)));
    }
    /* A draw depends on the index in the batch, not on the other samples, and on the step. */
    const uint64_t few[3] = {400, 7, 499};
    ry_drop_path_draw(&d, now, few, 3, some);
    for (int b = 0; b < 2 * L; b++)
        for (int i = 0; i < 3; i++) assert_true(some[b * 3 + i] == all[b * N + (int)few[i]]);
    ry_drop_path_draw(&d, (ry_moment){2, 6, 10}, place, N, other);
    assert_memory_not_equal(all, other, sizeof all);
    ry_drop_path_draw(&(ry_drop_path){0.3, L, 98}, now, place, N, other);
    assert_memory_not_equal(all, other, sizeof all);
    ry_drop_path_draw(&(ry_drop_path){0.0, L, 99}, now, place, N, other);
    for (int i = 0; i < 2 * L * N; i++) assert_true(other[i] == 1.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paper),     cmocka_unit_test(test_warmup),
        cmocka_unit_test(test_per_step),  cmocka_unit_test(test_keep),
        cmocka_unit_test(test_drop_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
