/* test_streams.c - a session of several streams gives the bits of one stream, for every policy,
 * number of images and threads; traces, errors, stops and failed allocations are the same too.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* mkdtemp */
#include "engine/core/streams.h"
#include "fixtures/small_model.h"
#include "fixtures/test_heap.h"
#include "renyi/renyi.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

enum { SIDE = 32, CLASSES = 10, BATCH = 9, PIXELS = SIDE * SIDE * 3 };
static char folder[] = "/tmp/renyi-streams-XXXXXX", path[SMALL_MODEL_PATH];
static uint8_t pixels[BATCH * PIXELS];
static float tensor[BATCH * PIXELS];
static const char *const POLICIES[] = {"none",
                                       "mosaic keep=0.7 layers=0",
                                       "evit keep=0.6 layers=1",
                                       "evit keep=0.5 layers=0 metric=random",
                                       "ats keep=0.6 layers=0",
                                       "cascade(evit keep=0.5 layers=1 metric=random -> mosaic "
                                       "keep=0.7 layers=1 if margin < 0.01)"};

static int make_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (uint8_t)(i * 37 % 251 + i / PIXELS * 11);
        tensor[i] = (float)pixels[i] / 255.0f;
    }
    return small_model_make(folder, path, CLASSES);
}

static int remove_model(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static int is_cascade(const char *policy) { return strncmp(policy, "cascade", 7) == 0; }

static renyi_model *open_model(renyi_dtype dtype)
{
    const renyi_options opt = {.struct_size = sizeof opt, .dtype = dtype};
    renyi_model *m = NULL;
    renyi_error err = {0};
    if (renyi_model_open(&m, path, &opt, &err)) fail_msg("%s", err.message);
    return m;
}

static renyi_session *open_session(const renyi_model *m, const char *policy, uint32_t threads,
                                   uint32_t streams)
{
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch = BATCH,
                                       .n_threads = threads,
                                       .policy = policy,
                                       .trace = !is_cascade(policy),
                                       .n_streams = streams};
    renyi_session *s = NULL;
    renyi_error err = {0};
    if (renyi_session_new(&s, m, &opt, &err)) fail_msg("%s", err.message);
    return s;
}

/* ---- the same bits ------------------------------------------------------------------------- */

static void compare_cuts(const renyi_session *a, const renyi_session *b, uint32_t n)
{
    renyi_error err = {0};
    assert_int_equal(renyi_session_cut_count(a), renyi_session_cut_count(b));
    for (uint32_t image = 0; image < n; image++)
        for (size_t i = 0; i < renyi_session_cut_count(a); i++) {
            renyi_cut x, y;
            assert_int_equal(renyi_session_cut(a, image, i, &x, &err), RENYI_OK);
            assert_int_equal(renyi_session_cut(b, image, i, &y, &err), RENYI_OK);
            assert_int_equal(x.block, y.block);
            assert_int_equal(x.n_in, y.n_in);
            assert_int_equal(x.n_out, y.n_out);
            assert_memory_equal(x.position, y.position, x.n_in * sizeof *x.position);
            assert_memory_equal(x.source, y.source, x.n_out * sizeof *x.source);
        }
    renyi_cut none;
    assert_int_equal(renyi_session_cut(b, n, 0, &none, &err), RENYI_ERR_ARG);
}

static void compare_runs(const renyi_model *m, const char *policy, uint32_t threads,
                         uint32_t streams)
{
    static float one[BATCH * CLASSES], many[BATCH * CLASSES];
    renyi_session *a = open_session(m, policy, 1, 1);
    renyi_session *b = open_session(m, policy, threads, streams);
    renyi_error err = {0};
    assert_true(renyi_session_bytes(b) >= renyi_session_bytes(a) / 2);
    for (uint32_t n = 1; n <= BATCH; n++) {
        memset(many, 0, sizeof many);
        assert_int_equal(renyi_run_pixels(a, pixels, n, one, &err), RENYI_OK);
        assert_int_equal(renyi_run_pixels(b, pixels, n, many, &err), RENYI_OK);
        assert_memory_equal(one, many, n * CLASSES * sizeof *one);
        if (strncmp(policy, "ats", 3) != 0 && !is_cascade(policy))
            assert_true(renyi_session_last_macs(a) == renyi_session_last_macs(b));
        else
            assert_true(fabs(renyi_session_last_macs(b) / renyi_session_last_macs(a) - 1.0) <
                        1e-12);
        for (uint32_t i = 0; i <= n; i++)
            assert_int_equal(renyi_session_passes(a, i), renyi_session_passes(b, i));
        if (strcmp(policy, "none") != 0 && !is_cascade(policy)) compare_cuts(a, b, n);
    }
    assert_int_equal(renyi_run_tensor(a, tensor, BATCH, one, &err), RENYI_OK);
    assert_int_equal(renyi_run_tensor(b, tensor, BATCH, many, &err), RENYI_OK);
    assert_memory_equal(one, many, sizeof one);
    uint32_t twice = 0;
    for (uint32_t i = 0; i < BATCH; i++) twice += renyi_session_passes(b, i) == 2;
    if (is_cascade(policy))
        assert_in_range(twice, 1, BATCH - 1);
    else
        assert_int_equal(twice, 0);
    renyi_session_free(a);
    renyi_session_free(b);
}

static void test_same_bits(void **state)
{
    (void)state;
    static const uint32_t COUNTS[][2] = {{2, 2}, {3, 2}, {4, 4}, {5, 3}, {9, 9}, {12, 11}};
    const renyi_dtype dtypes[] = {RENYI_DTYPE_F32, RENYI_DTYPE_INT8};
    for (size_t d = 0; d < 2; d++) {
        renyi_model *m = open_model(dtypes[d]);
        for (size_t p = 0; p < sizeof POLICIES / sizeof *POLICIES; p++)
            for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++)
                compare_runs(m, POLICIES[p], COUNTS[i][0], COUNTS[i][1]);
        renyi_model_free(m);
    }
}

typedef struct job {
    const renyi_model *model;
    const char *policy;
    const float *expected;
    int is_same;
} job;

static void *run_job(void *arg)
{
    job *j = arg;
    float logits[BATCH * CLASSES];
    renyi_session *s = NULL;
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch = BATCH,
                                       .n_threads = 3,
                                       .policy = j->policy,
                                       .n_streams = 3};
    if (renyi_session_new(&s, j->model, &opt, NULL)) return NULL;
    j->is_same = 1;
    for (int i = 0; i < 20; i++)
        j->is_same &= renyi_run_pixels(s, pixels, BATCH, logits, NULL) == RENYI_OK &&
                      memcmp(logits, j->expected, sizeof logits) == 0;
    renyi_session_free(s);
    return NULL;
}

/* Ten threads, each with a session of three streams, on one model. */
static void test_many_threads(void **state)
{
    (void)state;
    enum { JOBS = 10, KINDS = sizeof POLICIES / sizeof *POLICIES };
    static float expected[KINDS][BATCH * CLASSES];
    job jobs[JOBS] = {0};
    pthread_t threads[JOBS];
    renyi_error err = {0};
    renyi_model *m = open_model(RENYI_DTYPE_F32);
    for (int i = 0; i < KINDS; i++) {
        renyi_session *s = open_session(m, POLICIES[i], 1, 1);
        assert_int_equal(renyi_run_pixels(s, pixels, BATCH, expected[i], &err), RENYI_OK);
        renyi_session_free(s);
    }
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (job){.model = m, .policy = POLICIES[i % KINDS], .expected = expected[i % KINDS]};
        assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (int i = 0; i < JOBS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(jobs[i].is_same);
    }
    renyi_model_free(m);
}

/* ---- errors -------------------------------------------------------------------------------- */

static void test_bad_counts(void **state)
{
    (void)state;
    renyi_model *m = open_model(RENYI_DTYPE_F32);
    renyi_session_options opt = {.struct_size = sizeof opt, .n_threads = 2, .n_streams = 3};
    renyi_session *s = NULL;
    renyi_error err = {0};
    assert_int_equal(renyi_session_new(&s, m, &opt, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "3 streams on 2 threads"));
    opt.n_threads = opt.n_streams = RY_MAX_STREAMS + 1;
    assert_int_equal(renyi_session_new(&s, m, &opt, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "at most 64"));
    renyi_model_free(m);
}

static int stop_at_once(void *user, uint64_t done, uint64_t total)
{
    (void)total;
    ++*(int *)user;
    return done > 0;
}

/* The callback runs on the caller's thread only, so a plain counter is enough. */
static void test_stop(void **state)
{
    (void)state;
    float logits[BATCH * CLASSES];
    int calls = 0;
    renyi_error err = {0};
    renyi_session *s = NULL;
    renyi_model *m = open_model(RENYI_DTYPE_F32);
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch = BATCH,
                                       .n_threads = 3,
                                       .n_streams = 3,
                                       .progress = stop_at_once,
                                       .progress_user = &calls};
    assert_int_equal(renyi_session_new(&s, m, &opt, &err), RENYI_OK);
    assert_int_equal(renyi_run_pixels(s, pixels, BATCH, logits, &err), RENYI_ERR_ABORTED);
    assert_true(calls >= 1);
    assert_int_equal(renyi_run_pixels(s, pixels, BATCH, logits, &err), RENYI_ERR_ABORTED);
    renyi_session_free(s);
    renyi_model_free(m);
}

static void check_allocation_failures(const char *policy)
{
    test_heap c = {0};
    renyi_model *m = NULL;
    renyi_error err = {0};
    const renyi_options open = {.struct_size = sizeof open, .allocator = test_heap_of(&c)};
    assert_int_equal(renyi_model_open(&m, path, &open, &err), RENYI_OK);
    const size_t loaded = c.live;
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch = BATCH,
                                       .n_threads = 3,
                                       .n_streams = 3,
                                       .policy = policy};
    for (size_t n = 1;; n++) {
        renyi_session *s = NULL;
        c.calls = 0;
        c.fail_at = n;
        const renyi_status st = renyi_session_new(&s, m, &opt, &err);
        if (st == RENYI_OK) {
            assert_true(n > 15);
            renyi_session_free(s);
            break;
        }
        assert_int_equal(st, RENYI_ERR_NOMEM);
        assert_null(s);
        assert_int_equal(c.live, loaded);
    }
    renyi_model_free(m);
    assert_int_equal(c.live, 0);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    for (size_t i = 3; i < sizeof POLICIES / sizeof *POLICIES; i++)
        check_allocation_failures(POLICIES[i]);
}

/* ---- the parts themselves ------------------------------------------------------------------ */

static atomic_uint n_ran;

static renyi_status fail_from_two(void *user, uint32_t stream, renyi_error *err)
{
    (void)user;
    atomic_fetch_add(&n_ran, 1);
    if (stream < 2) return RENYI_OK;
    snprintf(err->message, sizeof err->message, "stream %u", stream);
    return RENYI_ERR_IO;
}

static void test_first_error(void **state)
{
    (void)state;
    renyi_error err = {0};
    assert_int_equal(ry_streams_run(5, fail_from_two, NULL, &err), RENYI_ERR_IO);
    assert_string_equal(err.message, "stream 2");
    assert_int_equal(atomic_load(&n_ran), 5);
    assert_int_equal(ry_streams_run(5, fail_from_two, NULL, NULL), RENYI_ERR_IO);
    assert_int_equal(ry_streams_run(2, fail_from_two, NULL, &err), RENYI_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),   cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_bad_counts),  cmocka_unit_test(test_stop),
        cmocka_unit_test(test_first_error), cmocka_unit_test(test_allocation_failures)};
    return cmocka_run_group_tests(tests, make_model, remove_model);
}
