/* test_prune_sessions.c - tests sessions with policies under stress: every allocation may fail, a
 * run allocates nothing, NaN and infinite inputs, random draws at any index of a batch, presets.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* posix_memalign */
#include "fixtures/prune_model.h"
#include "fixtures/test_heap.h"

enum { LOGITS = PM_IMAGES * FIX_CLASSES };

/* ---- memory --------------------------------------------------------------------------------- */

static renyi_model *counted_model(test_heap *c)
{
    const renyi_allocator al = test_heap_of(c);
    return pm_open(PM_VIT, &al, RENYI_CPU_AUTO);
}

static void fail_everywhere(const renyi_model *m, test_heap *c, const char *policy)
{
    const size_t loaded = c->live;
    for (size_t n = 1;; n++) {
        renyi_session *s = (renyi_session *)c; /* must become NULL */
        renyi_error err = {0};
        const renyi_session_options opt = {.struct_size = sizeof opt,
                                           .max_batch = 2,
                                           .n_threads = 2,
                                           .policy = policy,
                                           .trace = 1};
        c->calls = 0;
        c->fail_at = n;
        const renyi_status st = renyi_session_new(&s, m, &opt, &err);
        if (st == RENYI_OK) {
            assert_true(n > 10); /* plan, pruner, trace */
            renyi_session_free(s);
            break;
        }
        if (st != RENYI_ERR_NOMEM || s || c->live != loaded)
            fail_msg("%s, allocation %zu: %s, %zu bytes lost", policy, n, err.message,
                     c->live - loaded);
        assert_says(&err, "memory");
    }
    c->fail_at = 0;
    assert_int_equal(c->live, loaded);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    static const char *const policies[] = {"naive p=8 layers=all metric=correct reduce=merge",
                                           "evit keep=0.7 layers=0,3,6 metric=random fuse",
                                           "mosaic keep=0.7 layers=0,3,6", "tome r=5",
                                           "ats keep=0.7 layers=3,6,9"};
    test_heap c = {0};
    renyi_model *m = counted_model(&c);
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        fail_everywhere(m, &c, policies[i]);
    renyi_model_free(m);
    assert_int_equal(c.live, 0);
}

static void test_runs_allocate_nothing(void **state)
{
    (void)state;
    test_heap c = {0};
    renyi_model *m = counted_model(&c);
    for (size_t i = 0; i < PM_POLICIES; i++) {
        float logits[LOGITS];
        renyi_session *s = pm_session(m, pm_policies[i], PM_IMAGES, 2, 1);
        const size_t calls = c.calls;
        assert_ok(renyi_run_pixels(s, pm_pixels(), PM_IMAGES, logits, err));
        assert_ok(renyi_run_pixels(s, pm_pixels(), 1, logits, err));
        assert_int_equal(c.calls, calls);
        renyi_session_free(s);
    }
    renyi_model_free(m);
}

/* ---- NaN and infinite inputs ---------------------------------------------------------------- */

/* The decision is valid whatever the scores: rows continue different tokens, the class token is
 * first. */
static void check_decision(const renyi_session *s, uint32_t image)
{
    for (size_t i = 0; i < renyi_session_cut_count(s); i++) {
        uint8_t seen[PM_PATCHES + 1] = {0};
        renyi_cut c;
        assert_ok(renyi_session_cut(s, image, i, &c, err));
        for (uint32_t r = 0; r < c.n_out; r++) {
            const uint32_t j = c.source[r];
            if (j == RENYI_NONE) continue;
            assert_true(j < c.n_in && c.target[j] == r);
            assert_false(seen[j]++);
        }
        assert_int_equal(c.source[0], 0);
        for (uint32_t j = 0; j < c.n_in; j++)
            assert_true(c.target[j] == RENYI_NONE || c.target[j] < c.n_out);
    }
}

/* Three images; the first `count` values of the middle one are `bad`. */
static void check_bad(const renyi_model *m, const char *policy, float bad, size_t count)
{
    static float chw[3 * PM_PIXELS];
    float alone[2 * FIX_CLASSES], among[3 * FIX_CLASSES];
    for (size_t i = 0; i < 3 * PM_PIXELS; i++) chw[i] = (float)pm_pixels()[i] / 64.0f - 2.0f;
    renyi_session *s = pm_session(m, policy, 3, 2, 1);
    for (size_t i = 0; i < 2; i++)
        assert_ok(renyi_run_tensor(s, chw + 2 * i * PM_PIXELS, 1, alone + i * FIX_CLASSES, err));
    for (size_t i = 0; i < count; i++) chw[PM_PIXELS + i] = bad;
    assert_ok(renyi_run_tensor(s, chw, 3, among, err));
    assert_memory_equal(among, alone, FIX_CLASSES * sizeof *alone);
    assert_memory_equal(among + 2 * FIX_CLASSES, alone + FIX_CLASSES, FIX_CLASSES * sizeof *alone);
    for (uint32_t i = 0; i < 3; i++) check_decision(s, i);
    renyi_session_free(s);
}

static void test_bad_numbers(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f, 1e30f};
    renyi_model *m = pm_open(PM_VIT, NULL, RENYI_CPU_AUTO);
    for (size_t i = 0; i < PM_POLICIES; i++)
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            check_bad(m, pm_policies[i], bad[k], 1);
            check_bad(m, pm_policies[i], bad[k], PM_PIXELS);
        }
    renyi_model_free(m);
}

/* ---- random, presets ------------------------------------------------------------------------ */

/* An image draws the same numbers alone, at any index of a batch, and twice in one batch. */
static void test_random_follows_the_image(void **state)
{
    (void)state;
    static uint8_t pixels[4 * PM_PIXELS];
    static const size_t of[4] = {2, 0, 2, 1};
    float alone[LOGITS], batch[4 * FIX_CLASSES];
    static const char *const policies[] = {
        "naive p=8 layers=0-5 metric=random", "evit keep=0.5 layers=0,3,6 metric=random fuse",
        "evit keep=0.5 layers=3,6,9 metric=random seed=9 reduce=merge"};
    renyi_model *m = pm_open(PM_VIT, NULL, RENYI_CPU_AUTO);
    for (size_t i = 0; i < 4; i++)
        memcpy(pixels + i * PM_PIXELS, pm_pixels() + of[i] * PM_PIXELS, PM_PIXELS);
    for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
        pm_run(m, policies[k], 1, 1, 0, alone);
        renyi_session *s = pm_session(m, policies[k], 4, 2, 0);
        assert_ok(renyi_run_pixels(s, pixels, 4, batch, err));
        for (size_t i = 0; i < 4; i++)
            assert_memory_equal(batch + i * FIX_CLASSES, alone + of[i] * FIX_CLASSES,
                                FIX_CLASSES * sizeof *alone);
        renyi_session_free(s);
    }
    renyi_model_free(m);
}

/* Presets for a LLaVA; tests/cli/paper_commands.sh and tests/lvlm/table.sh run them. */
static int is_visual(const char *name)
{
    return strncmp(name, "paper:prumerge", 14) == 0 || strncmp(name, "paper:vispruner", 15) == 0 ||
           strncmp(name, "lvlm:", 5) == 0;
}

/* Every preset runs, with the result of its text. */
static void test_presets(void **state)
{
    (void)state;
    renyi_model *m = pm_open(PM_VIT, NULL, RENYI_CPU_AUTO);
    assert_true(renyi_preset_count() >= 20);
    for (size_t i = 0; i < renyi_preset_count(); i++) {
        float by_name[LOGITS], by_text[LOGITS];
        renyi_preset preset;
        renyi_preset_get(i, &preset);
        if (is_visual(preset.name)) continue;
        assert_true(pm_run(m, preset.name, 2, 2, 0, by_name));
        assert_true(pm_run(m, preset.policy, 5, 2, 0, by_text));
        pm_same(preset.name, by_name, by_text);
    }
    renyi_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocation_failures), cmocka_unit_test(test_runs_allocate_nothing),
        cmocka_unit_test(test_bad_numbers), cmocka_unit_test(test_random_follows_the_image),
        cmocka_unit_test(test_presets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
