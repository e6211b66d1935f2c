/* test_thread_pool.c - a pool runs every task once, on several threads; the first failure counts.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/status.h"
#include "base/thread_pool.h"
#include "fixtures/test_heap.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "test.h"

enum { TASKS = 200, THREADS = 4 };

typedef struct list {
    atomic_int runs[TASKS];
    atomic_int busy[THREADS]; /* a thread number is used by one task at a time */
    atomic_int faults, others;
    size_t fails; /* tasks that are multiples of this fail; 0 = none */
    size_t begun; /* wait until so many tasks have begun */
    atomic_size_t n_begun;
} list;

static renyi_status work(void *user, size_t task, unsigned thread, renyi_error *err)
{
    list *l = user;
    atomic_fetch_add(&l->n_begun, 1);
    if (task >= TASKS || thread >= THREADS || atomic_fetch_add(&l->busy[thread], 1))
        return atomic_fetch_add(&l->faults, 1), RENYI_OK;
    atomic_fetch_add(&l->runs[task], 1);
    if (thread) atomic_fetch_add(&l->others, 1);
    while (atomic_load(&l->n_begun) < l->begun) sched_yield();
    atomic_fetch_sub(&l->busy[thread], 1);
    if (l->fails && task && task % l->fails == 0)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "task %zu", task);
    return RENYI_OK;
}

static ry_thread_pool *new_pool(unsigned n)
{
    ry_thread_pool *c;
    assert_int_equal(ry_thread_pool_new(&c, n, NULL, NULL), RENYI_OK);
    assert_int_equal(ry_thread_pool_threads(c), n ? n : 1);
    return c;
}

static void test_every_task_once(void **state)
{
    (void)state;
    for (unsigned n = 0; n <= THREADS; n++) {
        ry_thread_pool *c = n ? new_pool(n) : NULL;
        for (size_t count = 0; count <= TASKS; count += count < 5 ? 1 : 39) {
            list l = {.fails = 0};
            assert_int_equal(ry_thread_pool_run(c, count, work, &l, NULL), RENYI_OK);
            for (size_t i = 0; i < TASKS; i++) assert_int_equal(l.runs[i], i < count);
            assert_int_equal(l.faults, 0);
        }
        ry_thread_pool_free(c, NULL);
    }
    ry_thread_pool_free(NULL, NULL);
}

/* Each of the first tasks waits until all have begun, so all threads must help. */
static void test_all_threads_help(void **state)
{
    (void)state;
    ry_thread_pool *c = new_pool(THREADS);
    list l = {.begun = THREADS};
    assert_int_equal(ry_thread_pool_run(c, TASKS, work, &l, NULL), RENYI_OK);
    assert_in_range(l.others, THREADS - 1, TASKS);
    assert_int_equal(l.faults, 0);
    ry_thread_pool_free(c, NULL);
}

static void test_first_failure(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= THREADS; n++) {
        ry_thread_pool *c = new_pool(n);
        for (size_t fails = 1; fails < TASKS; fails += 3) {
            list l = {.fails = fails}, good = {.fails = 0};
            renyi_error e;
            char want[32];
            snprintf(want, sizeof want, "task %zu", fails);
            assert_int_equal(ry_thread_pool_run(c, TASKS, work, &l, &e), RENYI_ERR_FORMAT);
            assert_string_equal(e.message, want);
            assert_int_equal(e.code, RENYI_ERR_FORMAT);
            for (size_t i = 0; i <= fails; i++) assert_int_equal(l.runs[i], 1);
            for (size_t i = fails + THREADS; i < TASKS; i++) assert_in_range(l.runs[i], 0, 1);
            assert_int_equal(ry_thread_pool_run(c, TASKS, work, &l, NULL), RENYI_ERR_FORMAT);
            assert_int_equal(ry_thread_pool_run(c, TASKS, work, &good, NULL),
                             RENYI_OK); /* as if new */
        }
        ry_thread_pool_free(c, NULL);
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    test_heap heap = {.fail_at = 1};
    const renyi_allocator al = test_heap_of(&heap);
    ry_thread_pool *c;
    renyi_error e;
    assert_int_equal(ry_thread_pool_new(&c, THREADS, &al, &e), RENYI_ERR_NOMEM);
    assert_null(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_task_once),
        cmocka_unit_test(test_all_threads_help),
        cmocka_unit_test(test_first_failure),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
