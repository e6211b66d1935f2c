/* test_session.c - what renyi.h promises of sessions: errors name bad arguments, every allocation
 * may fail, a run allocates nothing and may be stopped, and sessions of several threads share a
 * model.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* mkdtemp */
#include "fixtures/small_model.h"
#include "fixtures/test_heap.h"
#include "renyi/renyi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

enum { SIDE = 32, CLASSES = 10, BATCH = 3 };
static char folder[] = "/tmp/renyi-session-XXXXXX", path[SMALL_MODEL_PATH];
static uint8_t pixels[BATCH * SIDE * SIDE * 3];

static renyi_model *open_model(test_heap *c, renyi_cpu cpu)
{
    renyi_model *m = NULL;
    renyi_error err = {0};
    renyi_options opt = {.struct_size = sizeof opt, .cpu = cpu};
    if (c) opt.allocator = test_heap_of(c);
    if (renyi_model_open(&m, path, &opt, &err)) fail_msg("%s", err.message);
    return m;
}

static int make_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * 37 % 251);
    return small_model_make(folder, path, CLASSES);
}

static int remove_model(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    for (int cpu = RENYI_CPU_SCALAR; cpu <= (int)renyi_cpu_detect(); cpu++) {
        test_heap c = {0};
        renyi_model *m = open_model(&c, (renyi_cpu)cpu);
        const size_t loaded = c.live;
        const renyi_session_options opt = {
            .struct_size = sizeof opt, .max_batch = BATCH, .n_threads = 2};
        for (size_t n = 1;; n++) {
            renyi_session *s = (renyi_session *)pixels; /* must become NULL on failure */
            renyi_error err = {0};
            c.calls = 0;
            c.fail_at = n;
            const renyi_status st = renyi_session_new(&s, m, &opt, &err);
            if (st == RENYI_OK) {
                assert_true(n > 5);
                renyi_session_free(s);
                break;
            }
            assert_int_equal(st, RENYI_ERR_NOMEM);
            assert_null(s);
            assert_true(strstr(err.message, "memory") != NULL);
            assert_int_equal(c.live, loaded);
        }
        assert_int_equal(c.live, loaded);
        renyi_model_free(m);
        assert_int_equal(c.live, 0);
    }
}

static void test_run_allocates_nothing(void **state)
{
    (void)state;
    test_heap c = {0};
    float logits[BATCH * CLASSES];
    renyi_session *s;
    renyi_error err = {0};
    renyi_model *m = open_model(&c, RENYI_CPU_AUTO);
    const renyi_session_options opt = {
        .struct_size = sizeof opt, .max_batch = BATCH, .n_threads = 2};
    assert_int_equal(renyi_session_new(&s, m, &opt, &err), RENYI_OK);
    assert_true(renyi_session_bytes(s) > 0);
    const size_t calls = c.calls;
    for (uint32_t n = 1; n <= BATCH; n++)
        assert_int_equal(renyi_run_pixels(s, pixels, n, logits, &err), RENYI_OK);
    assert_int_equal(c.calls, calls);
    renyi_session_free(s);
    renyi_model_free(m);
}

static void test_bad_arguments(void **state)
{
    (void)state;
    float logits[BATCH * CLASSES];
    renyi_session *s;
    renyi_error err = {0};
    renyi_model *m = open_model(NULL, RENYI_CPU_AUTO);
    renyi_session_options opt = {.struct_size = sizeof opt, .max_batch = 1u << 30};
    assert_int_equal(renyi_session_new(&s, m, &opt, &err), RENYI_ERR_ARG);
    opt = (renyi_session_options){.struct_size = 1};
    assert_int_equal(renyi_session_new(&s, m, &opt, &err), RENYI_ERR_ARG);
    opt = (renyi_session_options){.struct_size = sizeof opt, .policy = "everything"};
    assert_int_equal(renyi_session_new(&s, m, &opt, &err), RENYI_ERR_ARG);
    assert_true(strstr(err.message, "everything") != NULL);
    assert_int_equal(renyi_session_new(&s, NULL, NULL, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_session_new(&s, m, NULL, NULL), RENYI_OK); /* errors are optional */
    assert_int_equal(renyi_run_pixels(s, pixels, 2, logits, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_run_pixels(s, pixels, 0, logits, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_run_pixels(s, NULL, 1, logits, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_run_tensor(s, NULL, 1, logits, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_run(s, NULL, 1, logits, NULL), RENYI_ERR_ARG);
    renyi_session_free(s);
    renyi_session_free(NULL);
    renyi_model_free(m);
    renyi_model_free(NULL);
}

static int stop_after(void *user, uint64_t done, uint64_t total)
{
    assert_int_equal(total, 2);
    return done >= *(uint64_t *)user;
}

static void test_progress_stops(void **state)
{
    (void)state;
    float logits[CLASSES], again[CLASSES];
    renyi_session *s;
    renyi_error err = {0};
    uint64_t stop = 1;
    renyi_model *m = open_model(NULL, RENYI_CPU_AUTO);
    const renyi_session_options opt = {
        .struct_size = sizeof opt, .n_threads = 2, .progress = stop_after, .progress_user = &stop};
    assert_int_equal(renyi_session_new(&s, m, &opt, &err), RENYI_OK);
    assert_int_equal(renyi_run_pixels(s, pixels, 1, logits, &err), RENYI_ERR_ABORTED);
    stop = 3; /* a stopped session can be used again */
    assert_int_equal(renyi_run_pixels(s, pixels, 1, logits, &err), RENYI_OK);
    assert_int_equal(renyi_run_pixels(s, pixels, 1, again, &err), RENYI_OK);
    assert_memory_equal(logits, again, sizeof logits);
    renyi_session_free(s);
    renyi_model_free(m);
}

/* Images, pixels and tensors give the same logits. */
static void test_three_doors(void **state)
{
    (void)state;
    float a[CLASSES], b[CLASSES], c[CLASSES];
    static float chw[3 * SIDE * SIDE];
    renyi_session *s;
    renyi_error err = {0};
    renyi_model *m = open_model(NULL, RENYI_CPU_AUTO);
    renyi_model_info info;
    renyi_model_get_info(m, &info);
    assert_int_equal(renyi_session_new(&s, m, NULL, &err), RENYI_OK);
    static uint8_t rgb[40 * 50 * 3], fitted[SIDE * SIDE * 3];
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * i % 241);
    const renyi_image image = {rgb, 50, 40, 0};
    assert_int_equal(renyi_run(s, &image, 1, a, &err), RENYI_OK);
    assert_int_equal(renyi_image_fit(fitted, &image, &info.preprocess, NULL, &err), RENYI_OK);
    assert_int_equal(renyi_run_pixels(s, fitted, 1, b, &err), RENYI_OK);
    for (size_t p = 0; p < SIDE * SIDE; p++)
        for (size_t k = 0; k < 3; k++) {
            const float v = (float)fitted[p * 3 + k] / 255.0f;
            chw[k * SIDE * SIDE + p] =
                (v - (float)info.preprocess.mean[k]) / (float)info.preprocess.std[k];
        }
    assert_int_equal(renyi_run_tensor(s, chw, 1, c, &err), RENYI_OK);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_equal(b, c, sizeof b);
    renyi_session_free(s);
    renyi_model_free(m);
}

typedef struct job {
    const renyi_model *model;
    float logits[CLASSES];
} job;

static void *run_job(void *arg)
{
    job *j = arg;
    renyi_session *s;
    const renyi_session_options opt = {.struct_size = sizeof opt, .n_threads = 1};
    if (renyi_session_new(&s, j->model, &opt, NULL)) return arg;
    for (int i = 0; i < 20; i++)
        if (renyi_run_pixels(s, pixels, 1, j->logits, NULL)) return arg;
    renyi_session_free(s);
    return NULL;
}

static void test_threads_share_a_model(void **state)
{
    (void)state;
    enum { JOBS = 4 };
    static job jobs[JOBS];
    pthread_t threads[JOBS];
    renyi_model *m = open_model(NULL, RENYI_CPU_AUTO);
    for (int i = 0; i < JOBS; i++) {
        jobs[i].model = m;
        assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (int i = 0; i < JOBS; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
        assert_memory_equal(jobs[0].logits, jobs[i].logits, sizeof jobs[0].logits);
    }
    renyi_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocation_failures), cmocka_unit_test(test_run_allocates_nothing),
        cmocka_unit_test(test_bad_arguments),       cmocka_unit_test(test_progress_stops),
        cmocka_unit_test(test_three_doors),         cmocka_unit_test(test_threads_share_a_model)};
    return cmocka_run_group_tests(tests, make_model, remove_model);
}
