/* test_ranks.c - sums over ranks (threads here) are correct and have the same bits on every rank.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/ranks.h"
#include "fixtures/rank_threads.h"

#include "test.h"

enum { MAX_RANKS = 5, N = 40000 }; /* more than one chunk */

typedef struct member {
    seat seat;
    renyi_ranks ranks;
    float *floats;  /* [N] */
    double *counts; /* [N] */
    size_t n;
    int fails; /* this rank passes an error to ry_ranks_agree */
    renyi_status summed, agreed;
    renyi_error err;
    pthread_t thread;
} member;

static float value(uint32_t rank, size_t i)
{
    return (rank % 2 ? -1.0f : 1.0f) * (float)(i % 977 + 1) / (float)(rank + 3);
}

static void *talk(void *user)
{
    member *m = user;
    const renyi_allocator al = {0};
    ry_ranks k;
    m->summed = ry_ranks_open(&k, &m->ranks, &al, &m->err);
    if (!m->summed) m->summed = ry_ranks_sum(&k, m->floats, m->n, &m->err);
    if (!m->summed) m->summed = ry_ranks_sum_doubles(&k, m->counts, m->n, &m->err);
    if (m->fails) m->err = (renyi_error){RENYI_ERR_IO, -1, "the disk is full"};
    m->agreed = ry_ranks_agree(&k, m->fails ? RENYI_ERR_IO : RENYI_OK, &m->err);
    ry_ranks_close(&k, &al);
    return NULL;
}

static void run_ranks(member *members, uint32_t n_ranks, size_t n, uint32_t failing)
{
    hub h;
    hub_open(&h, n_ranks);
    for (uint32_t r = 0; r < n_ranks; r++) {
        member *m = &members[r];
        *m = (member){.n = n, .fails = r == failing};
        m->ranks = seat_take(&m->seat, &h, r);
        m->floats = malloc(N * sizeof *m->floats);
        m->counts = malloc(N * sizeof *m->counts);
        assert_true(m->floats && m->counts);
        for (size_t i = 0; i < N; i++) {
            m->floats[i] = value(r, i);
            m->counts[i] = (double)(r + i);
        }
    }
    for (uint32_t r = 0; r < n_ranks; r++)
        assert_int_equal(pthread_create(&members[r].thread, NULL, talk, &members[r]), 0);
    for (uint32_t r = 0; r < n_ranks; r++) pthread_join(members[r].thread, NULL);
    hub_close(&h);
}

static void release(member *members, uint32_t n_ranks)
{
    for (uint32_t r = 0; r < n_ranks; r++) {
        free(members[r].floats);
        free(members[r].counts);
    }
}

static void test_sums(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 4096, N - 1};
    member members[MAX_RANKS];
    for (uint32_t n_ranks = 1; n_ranks <= MAX_RANKS; n_ranks += 2)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            const size_t n = sizes[s];
            run_ranks(members, n_ranks, n, UINT32_MAX);
            for (size_t i = 0; i < n; i++) {
                double want = 0, count = 0;
                for (uint32_t r = 0; r < n_ranks; r++)
                    want += (double)value(r, i), count += (double)(r + i);
                assert_float_equal(members[0].floats[i], (float)want, 0);
                assert_float_equal(members[0].counts[i], count, 0);
            }
            for (uint32_t r = 0; r < n_ranks; r++) {
                assert_int_equal(members[r].summed, RENYI_OK);
                assert_memory_equal(members[r].floats, members[0].floats, n * sizeof(float));
                assert_float_equal(members[r].floats[n], value(r, n), 0); /* not touched */
            }
            release(members, n_ranks);
        }
}

/* An error of one rank stops all, and the message names the rank. */
static void test_agree(void **state)
{
    (void)state;
    member members[3];
    run_ranks(members, 3, 10, 1);
    for (uint32_t r = 0; r < 3; r++) {
        assert_int_equal(members[r].agreed, RENYI_ERR_IO);
        assert_string_equal(members[r].err.message,
                            r == 1 ? "the disk is full" : "rank 1: the disk is full");
    }
    release(members, 3);
}

static renyi_status nothing(void *user, const void *mine, size_t size, void *all, renyi_error *err)
{
    (void)user, (void)mine, (void)size, (void)all, (void)err;
    return RENYI_OK;
}
static renyi_status done(void *user, int wait, int *is_done, renyi_error *err)
{
    (void)user, (void)wait, (void)err;
    *is_done = 1;
    return RENYI_OK;
}
static renyi_status broken(void *user, float *values, size_t n, renyi_error *err)
{
    (void)values, (void)n, (void)err;
    ++*(int *)user;
    return RENYI_ERR_IO;
}

/* The caller's own sum function is used; after a failure it is not called again. */
static void test_own_sum(void **state)
{
    (void)state;
    int n_calls = 0;
    const renyi_ranks r = {sizeof r, 0, 2, 0, &n_calls, nothing, done, broken};
    const renyi_allocator al = {0};
    float x = 1;
    ry_ranks k;
    renyi_error err;
    assert_int_equal(ry_ranks_open(&k, &r, &al, &err), RENYI_OK);
    assert_int_equal(ry_ranks_sum(&k, &x, 1, &err), RENYI_ERR_IO);
    assert_int_equal(ry_ranks_sum(&k, &x, 1, &err), RENYI_ERR_IO);
    assert_int_equal(n_calls, 1);
    assert_int_equal(ry_ranks_agree(&k, RENYI_OK, &err), RENYI_ERR_IO);
    ry_ranks_close(&k, &al);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_agree),
                                       cmocka_unit_test(test_own_sum)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
