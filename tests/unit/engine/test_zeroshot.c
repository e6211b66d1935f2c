/* test_zeroshot.c - zero-shot models from rows: logits, names, ownership, and rows that are
 * refused.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/image_tower_fixture.h"
#include "fixtures/test_heap.h"
#include "renyi/clip.h"

#include <math.h>

enum { CLASSES = 3, E = FIX_DIM };

static renyi_model *open_clip(test_heap *heap)
{
    fixture f;
    renyi_model *m = NULL;
    renyi_options opt = {.struct_size = sizeof opt, .cpu = RENYI_CPU_SCALAR};
    if (heap) opt.allocator = test_heap_of(heap);
    clip_make(&f);
    const char *path = fix_write(&f, "zero.safetensors");
    assert_ok(renyi_model_open(&m, path, &opt, err));
    unlink(path);
    fix_free(&f);
    return m;
}

static void make_rows(float rows[CLASSES * E])
{
    for (int i = 0; i < CLASSES * E; i++) rows[i] = (float)((i * 37) % 19) - 9.0f;
    renyi_normalise_rows(rows, CLASSES, E);
}

static void test_normalise(void **state)
{
    (void)state;
    float rows[] = {3.0f, 4.0f, 0.0f, 0.0f, -2.0f, 0.0f};
    renyi_normalise_rows(rows, 3, 2);
    assert_true(fabsf(rows[0] - 0.6f) < 1e-6f && fabsf(rows[1] - 0.8f) < 1e-6f);
    assert_true(rows[2] == 0.0f && rows[3] == 0.0f && rows[4] == -1.0f);
    renyi_normalise_rows(rows, 0, 2);
}

static void test_logits(void **state)
{
    (void)state;
    static const char *const names[CLASSES] = {"cat", NULL, "dog"};
    float rows[CLASSES * E], f[2 * E], logits[2 * CLASSES];
    renyi_model_info info;
    renyi_model *clip = open_clip(NULL), *zero = NULL, *again = NULL;
    make_rows(rows);
    assert_ok(renyi_model_zeroshot(&zero, clip, rows, names, CLASSES, 100.0, err));
    memset(rows, 0, sizeof rows); /* they were copied */
    renyi_model_get_info(zero, &info);
    assert_int_equal(info.n_classes, CLASSES);
    assert_int_equal(info.embed_dim, E);
    assert_string_equal(info.family, "clip");
    assert_string_equal(renyi_model_label(zero, 2), "dog");
    assert_null(renyi_model_label(zero, 1));
    assert_null(renyi_model_label(zero, 3));
    assert_int_equal(renyi_model_tensor_count(zero), renyi_model_tensor_count(clip));
    clip_run(zero, NULL, RENYI_OUTPUT_AUTO, 2, logits);
    clip_run(zero, NULL, RENYI_OUTPUT_EMBEDDING, 2, f); /* of the tower, as it is */
    float same[2 * E];
    clip_run(clip, NULL, RENYI_OUTPUT_AUTO, 2, same);
    assert_memory_equal(f, same, sizeof f);
    make_rows(rows);
    renyi_normalise_rows(f, 2, E);
    for (int i = 0; i < 2; i++)
        for (int c = 0; c < CLASSES; c++) {
            double cosine = 0.0;
            for (int k = 0; k < E; k++) cosine += (double)f[i * E + k] * (double)rows[c * E + k];
            assert_true(fabs(100.0 * cosine - (double)logits[i * CLASSES + c]) < 1e-3);
        }
    /* made from a zero-shot model: borrows the same tower and does not need the first model */
    assert_ok(renyi_model_zeroshot(&again, zero, rows, NULL, 2, 1.0, err));
    renyi_model_free(zero);
    assert_null(renyi_model_label(again, 0));
    clip_run(again, "evit keep=0.7 layers=0", RENYI_OUTPUT_AUTO, 2, logits);
    renyi_model_free(again);
    renyi_model_free(clip);
}

/* The cost of a policy is what its session computes, rows of the classes included. */
static void test_cost(void **state)
{
    (void)state;
    static const char *const policies[] = {
        "none", "evit keep=0.7 layers=0",
        "cascade(evit keep=0.7 layers=0 -> none if margin < 0.5)"};
    float rows[CLASSES * E];
    renyi_model *clip = open_clip(NULL), *zero = NULL;
    make_rows(rows);
    assert_ok(renyi_model_zeroshot(&zero, clip, rows, NULL, CLASSES, 100.0, err));
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        const renyi_session_options o = {
            .struct_size = sizeof o, .max_batch = 1, .n_threads = 1, .policy = policies[i]};
        renyi_session *s = NULL;
        renyi_cost cost, tower;
        assert_ok(renyi_session_new(&s, zero, &o, err));
        assert_ok(renyi_policy_cost(zero, NULL, policies[i], &cost, NULL, 0, err));
        assert_true(fabs(renyi_session_macs(s) - cost.total.macs_executed) < 0.5);
        renyi_session_free(s);
        if (i == 2) continue; /* a cascade needs classes */
        assert_ok(renyi_policy_cost(clip, NULL, policies[i], &tower, NULL, 0, err));
        assert_true(cost.total.macs_executed - tower.total.macs_executed == CLASSES * E);
        assert_true(cost.total.macs_paper == tower.total.macs_paper);
    }
    renyi_model_free(zero);
    renyi_model_free(clip);
}

static void refuse(const renyi_model *clip, const float *rows, uint32_t n, double scale,
                   const char *word)
{
    renyi_error e = {0};
    renyi_model *m = (renyi_model *)&e;
    assert_int_equal(renyi_model_zeroshot(&m, clip, rows, NULL, n, scale, &e), RENYI_ERR_ARG);
    assert_null(m);
    assert_says(&e, word);
}

static void test_refused(void **state)
{
    (void)state;
    float rows[CLASSES * E];
    renyi_model *clip = open_clip(NULL);
    make_rows(rows);
    refuse(clip, NULL, CLASSES, 100.0, "NULL");
    refuse(NULL, rows, CLASSES, 100.0, "NULL");
    refuse(clip, rows, 0, 100.0, "0 classes");
    refuse(clip, rows, CLASSES, 0.0, "scale 0");
    refuse(clip, rows, CLASSES, (double)NAN, "scale");
    rows[E] = (float)NAN;
    refuse(clip, rows, CLASSES, 100.0, "class 1");
    make_rows(rows);
    for (int k = 0; k < E; k++) rows[2 * E + k] *= 2.0f;
    refuse(clip, rows, CLASSES, 100.0, "class 2 has length 2");
    renyi_model_free(clip);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const char *const names[CLASSES] = {"cat", "dog", "church"};
    float rows[CLASSES * E];
    test_heap heap = {0};
    renyi_model *clip = open_clip(&heap), *zero = NULL;
    const size_t live = heap.live;
    make_rows(rows);
    for (size_t i = 1; !zero; i++) {
        renyi_error e = {0};
        assert_true(i < 100);
        heap.calls = 0;
        heap.fail_at = i;
        const renyi_status st = renyi_model_zeroshot(&zero, clip, rows, names, CLASSES, 100.0, &e);
        assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
        assert_int_equal(st == RENYI_OK, zero != NULL);
        if (st) assert_int_equal(heap.live, live);
    }
    heap.fail_at = 0;
    renyi_model_free(zero);
    assert_int_equal(heap.live, live);
    renyi_model_free(clip);
    assert_int_equal(heap.live, 0);
}

/* ---- rules of the caller's own -------------------------------------------------------------- */

static int score_none(void *user, const renyi_rule_view *v, float *score)
{
    (void)user;
    (void)v;
    (void)score;
    return 0;
}

/* A zero-shot model knows the rules of its tower; its own stay its own. */
static void test_own_rules(void **state)
{
    (void)state;
    test_heap heap = {0};
    float rows[CLASSES * E];
    renyi_model *clip = open_clip(&heap), *zero = NULL, *again = NULL;
    renyi_rule rule = {.struct_size = sizeof rule, .name = "shared", .score = score_none};
    make_rows(rows);
    assert_ok(renyi_model_add_rule(clip, &rule, err));
    assert_ok(renyi_model_zeroshot(&zero, clip, rows, NULL, CLASSES, 100.0, err));
    assert_ok(renyi_policy_check("shared layers=0", zero, NULL, 0, err));
    assert_int_equal(renyi_model_add_rule(zero, &rule, NULL), RENYI_ERR_ARG);
    rule.name = "mine";
    assert_ok(renyi_model_add_rule(zero, &rule, err));
    assert_ok(renyi_model_zeroshot(&again, zero, rows, NULL, CLASSES, 100.0, err));
    assert_ok(renyi_policy_check("mine layers=0", zero, NULL, 0, err));
    assert_int_equal(renyi_policy_check("mine layers=0", clip, NULL, 0, NULL), RENYI_ERR_ARG);
    renyi_model_free(zero); /* `again` needs only the tower */
    assert_int_equal(renyi_policy_check("mine layers=0", again, NULL, 0, NULL), RENYI_ERR_ARG);
    assert_ok(renyi_policy_check("shared layers=0", again, NULL, 0, err));
    renyi_model_keep_tower(again, clip);
    renyi_model_free(again);
    assert_int_equal(heap.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normalise), cmocka_unit_test(test_logits),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_own_rules), cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
