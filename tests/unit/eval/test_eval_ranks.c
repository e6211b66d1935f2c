/* test_eval_ranks.c - several ranks, here threads, end with the totals of one process, and no rank
 * waits forever when another stops, fails or lacks memory.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/eval_fixture.h"
#include "fixtures/rank_threads.h"
#include "fixtures/test_heap.h"

enum { MAX_RANKS = 4 };
#ifdef RENYI_SANITIZED /* about ten times slower: fewer cases */
enum { MEMORY_STEP = 7, INTERRUPTED_MAX = 2 };
#else
enum { MEMORY_STEP = 1, INTERRUPTED_MAX = 3 };
#endif
static const char *const policies[] = {"none", "evit keep=0.5 layers=0 metric=col n=4"};
static const char *const others[] = {"none", "naive p=20 layers=0"};

/* ---- one run of all ranks ------------------------------------------------------------------ */

typedef struct member {
    seat seat;
    renyi_ranks ranks;
    renyi_eval_options o;
    renyi_eval *e;
    renyi_status st;
    renyi_error err;
    pthread_t thread;
} member;

typedef struct team {
    hub hub;
    uint32_t n;
    member members[MAX_RANKS];
} team;

static void team_open(team *c, uint32_t n)
{
    memset(c, 0, sizeof *c);
    c->n = n;
    hub_open(&c->hub, n);
    for (uint32_t i = 0; i < n; i++) {
        member *m = &c->members[i];
        m->ranks = seat_take(&m->seat, &c->hub, i);
        m->o = (renyi_eval_options){.struct_size = sizeof m->o,
                                    .policies = policies,
                                    .n_policies = 2,
                                    .batch = 2,
                                    .n_threads = 1,
                                    .ranks = &m->ranks,
                                    .user = m};
    }
}

static void *run_member(void *user)
{
    member *m = user;
    m->st = renyi_eval_run(m->e, &m->err);
    return NULL;
}

/* Runs only if all evaluations could be made. Returns 1 if they ran. */
static int team_run(team *c)
{
    int is_made = 1;
    for (uint32_t i = 0; i < c->n; i++) {
        member *m = &c->members[i];
        m->st = renyi_eval_new(&m->e, fixture.model, fixture.data, &m->o, &m->err);
        is_made &= !m->st;
    }
    for (uint32_t i = 0; is_made && i < c->n; i++)
        assert_int_equal(pthread_create(&c->members[i].thread, NULL, run_member, &c->members[i]),
                         0);
    for (uint32_t i = 0; is_made && i < c->n; i++) pthread_join(c->members[i].thread, NULL);
    return is_made;
}

static void team_close(team *c)
{
    for (uint32_t i = 0; i < c->n; i++) renyi_eval_free(c->members[i].e);
    hub_close(&c->hub);
}

static void team_log(team *c, const char *log, int resume)
{
    for (uint32_t i = 0; i < c->n; i++) {
        c->members[i].o.log = log;
        c->members[i].o.resume = resume != 0;
    }
}

static char *reference(void)
{
    team c;
    team_open(&c, 1);
    c.members[0].o.ranks = NULL;
    assert_true(team_run(&c));
    char *text = totals(c.members[0].e);
    team_close(&c);
    return text;
}

static void assert_all(const team *c, const char *want)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->members[i].st) fail_msg("rank %u: %s", i, c->members[i].err.message);
        assert_totals(c->members[i].e, want);
    }
}

static int count_lines(const char *path)
{
    int n = 0;
    char *text = read_all(path);
    for (const char *s = text; *s; s++) n += *s == '\n';
    free(text);
    return n;
}

static int exists(const char *path) { return access(path, F_OK) == 0; }

/* ---- tests --------------------------------------------------------------------------------- */

static void test_same_totals(void **state)
{
    (void)state;
    char *want = reference();
    for (uint32_t n = 1; n <= MAX_RANKS; n++) {
        team c;
        renyi_eval_times t;
        uint64_t images = 0;
        team_open(&c, n);
        team_log(&c, at("all.jsonl"), 0);
        assert_true(team_run(&c));
        assert_all(&c, want);
        for (uint32_t i = 0; i < n; i++) {
            renyi_eval_get_times(c.members[i].e, &t);
            assert_true(t.n_ranks == n && t.images == IMAGES - BROKEN && t.resumed == 0);
            assert_true(images == 0 || images == t.images);
            images = t.images;
        }
        /* everything is in one file; the parts are gone */
        assert_int_equal(count_lines(at("all.jsonl")), 2 * (IMAGES - BROKEN) + BROKEN);
        assert_true(!exists(at("all.jsonl.rank1")) && !exists(at("all.jsonl.rank2")));
        team_close(&c);
        team_open(&c, n);
        team_log(&c, at("all.jsonl"), 0);
        assert_false(team_run(&c)); /* an error without resume */
        team_close(&c);
        remove(at("all.jsonl"));
    }
    free(want);
}

static int stop_at_8(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    assert_int_equal(total, IMAGES);
    return done >= 8;
}

/* One rank is stopped: all stop and keep their answers; any number of ranks can resume. */
static void test_interrupted(void **state)
{
    (void)state;
    char *want = reference();
    for (uint32_t n = 2; n <= INTERRUPTED_MAX; n++)
        for (uint32_t next = 1; next <= 3; next++) {
            team c;
            renyi_eval_times t;
            team_open(&c, n);
            team_log(&c, at("stop.jsonl"), 0);
            c.members[n - 1].o.progress = stop_at_8;
            assert_true(team_run(&c));
            char *some = totals(c.members[0].e);
            for (uint32_t i = 0; i < n; i++) {
                assert_int_equal(c.members[i].st, RENYI_ERR_ABORTED);
                assert_totals(c.members[i].e, some);
            }
            assert_non_null(strstr(c.members[0].err.message, "stopped by the progress callback"));
            free(some);
            renyi_eval_get_times(c.members[0].e, &t);
            const uint64_t done = t.images;
            assert_true(done > 0 && done < IMAGES && !exists(at("stop.jsonl.rank1")));
            team_close(&c);
            team_open(&c, next);
            team_log(&c, at("stop.jsonl"), 1);
            assert_true(team_run(&c));
            assert_all(&c, want);
            renyi_eval_get_times(c.members[0].e, &t);
            assert_int_equal(t.resumed, done);
            team_close(&c);
            remove(at("stop.jsonl"));
        }
    free(want);
}

/* What a killed run leaves: parts, one of them with an incomplete line, and perhaps no FILE. */
static void test_parts_left_behind(void **state)
{
    (void)state;
    char *want = reference();
    team c;
    team_open(&c, 1);
    team_log(&c, at("whole.jsonl"), 0);
    assert_true(team_run(&c));
    team_close(&c);
    char *whole = read_all(at("whole.jsonl"));
    const size_t size = strlen(whole);
    for (uint32_t next = 1; next <= 3; next++)
        for (int has_main = 0; has_main < 2; has_main++) {
            renyi_eval_times t;
            remove(at("left.jsonl"));
            if (has_main) write_all(at("left.jsonl"), whole, size / 3);
            write_all(at("left.jsonl.rank1"), whole + size / 3, 0);
            const char *middle = strchr(whole + size / 3, '\n') + 1;
            write_all(at("left.jsonl.rank2"), middle, size / 3);
            write_all(at("left.jsonl.rank7"), whole, size / 4);
            write_all(at("left.jsonl.rank07"), "not a log\n", 10);
            write_all(at("left.jsonl.rank7.old"), "not a log\n", 10);
            team_open(&c, next);
            team_log(&c, at("left.jsonl"), 0);
            assert_true(!team_run(&c));
            assert_non_null(strstr(c.members[0].err.message, "this file already has results"));
            team_close(&c);
            team_open(&c, next);
            team_log(&c, at("left.jsonl"), 1);
            assert_true(team_run(&c));
            assert_all(&c, want);
            renyi_eval_get_times(c.members[0].e, &t);
            assert_true(t.resumed > IMAGES / 3);
            team_close(&c);
            assert_true(!exists(at("left.jsonl.rank1")) && !exists(at("left.jsonl.rank2")) &&
                        !exists(at("left.jsonl.rank7")));
            assert_true(exists(at("left.jsonl.rank07")) && exists(at("left.jsonl.rank7.old")));
            team_open(&c, 1); /* FILE has everything */
            team_log(&c, at("left.jsonl"), 1);
            assert_true(team_run(&c));
            assert_all(&c, want);
            renyi_eval_get_times(c.members[0].e, &t);
            assert_int_equal(t.resumed, IMAGES - BROKEN);
            team_close(&c);
        }
    free(whole);
    free(want);
}

/* A part with answers of other policies is not removed. */
static void test_parts_of_others(void **state)
{
    (void)state;
    team c;
    team_open(&c, 1);
    team_log(&c, at("two.jsonl"), 0);
    assert_true(team_run(&c));
    team_close(&c);
    assert_int_equal(rename(at("two.jsonl"), at("two.jsonl.rank1")), 0);
    for (uint32_t n = 1; n <= 2; n++) {
        team_open(&c, n);
        team_log(&c, at("two.jsonl"), 1);
        for (uint32_t i = 0; i < n; i++) c.members[i].o.policies = others;
        assert_true(team_run(&c));
        for (uint32_t i = 0; i < n; i++) assert_int_equal(c.members[i].st, RENYI_OK);
        team_close(&c);
        assert_true(exists(at("two.jsonl.rank1")));
    }
    char *want = reference();
    team_open(&c, 2);
    team_log(&c, at("two.jsonl"), 1);
    assert_true(team_run(&c));
    renyi_eval_times t;
    renyi_eval_get_times(c.members[1].e, &t);
    assert_int_equal(t.images, 0);
    assert_all(&c, want);
    team_close(&c);
    free(want);
}

/* Without a shared folder every rank sees only its own files. */
static void test_own_folders(void **state)
{
    (void)state;
    char *want = reference();
    char logs[3][512];
    team c;
    for (int i = 0; i < 3; i++) {
        snprintf(logs[i], sizeof logs[i], "%s/disk%d", root, i);
        mkdir(logs[i], 0777);
        strcat(logs[i], "/log.jsonl");
    }
    for (int round = 0; round < 2; round++) {
        team_open(&c, 3);
        for (uint32_t i = 0; i < 3; i++) {
            c.members[i].o.log = logs[i];
            c.members[i].o.resume = round == 1;
        }
        if (round == 1) { /* the file of rank 0 lacks answers that are on another disk */
            char part[520];
            snprintf(part, sizeof part, "%s.rank9", logs[2]);
            assert_int_equal(rename(logs[0], part), 0);
        }
        assert_true(team_run(&c));
        assert_all(&c, want);
        renyi_eval_times t;
        renyi_eval_get_times(c.members[0].e, &t);
        assert_int_equal(t.images, round ? 0 : IMAGES - BROKEN);
        team_close(&c);
        assert_int_equal(count_lines(logs[0]) >= 2 * (IMAGES - BROKEN), 1);
        assert_true(!exists(logs[1]) && !exists(logs[2]));
    }
    free(want);
}

/* An error of one rank is an error of all; no rank waits forever. */
static void test_faults(void **state)
{
    (void)state;
    team c;
    team_open(&c, 3); /* the part of rank 1 cannot be written */
    team_log(&c, at("fault.jsonl"), 1);
    mkdir(at("fault.jsonl.rank1"), 0777);
    assert_true(team_run(&c));
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(c.members[i].st, RENYI_ERR_IO);
        assert_non_null(strstr(c.members[i].err.message, "fault.jsonl.rank1: "));
        assert_int_equal(strncmp(c.members[i].err.message, "rank 1: ", 8) == 0, i != 1);
    }
    team_close(&c);
    team_open(&c, 2); /* rank 0 cannot write its log in the middle */
    c.members[0].o.log = "/dev/full";
    assert_true(team_run(&c));
    assert_true(c.members[0].st == RENYI_ERR_IO && c.members[1].st == RENYI_ERR_IO);
    team_close(&c);
    team_open(&c, 3); /* not the same work */
    c.members[2].o.policies = others;
    assert_true(team_run(&c));
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(c.members[i].st, RENYI_ERR_ARG);
        assert_non_null(strstr(c.members[i].err.message, "rank 2 has other policies"));
    }
    team_close(&c);
    team_open(&c, 2);
    c.members[1].o.name = "another";
    assert_true(team_run(&c));
    assert_non_null(strstr(c.members[0].err.message, "rank 1 has another model"));
    team_close(&c);
    team_open(&c, 2); /* no ranks at all */
    c.members[0].ranks.rank = 2;
    c.members[1].ranks.finish = NULL;
    assert_false(team_run(&c));
    assert_true(c.members[0].st == RENYI_ERR_ARG && c.members[1].st == RENYI_ERR_ARG);
    team_close(&c);
}

static renyi_status broken(void *user, int wait, int *is_done, renyi_error *err)
{
    member *m = user;
    (void)wait, (void)is_done;
    snprintf(err->message, sizeof err->message, "rank %u: the line is dead", m->seat.rank);
    return RENYI_ERR_IO;
}

static renyi_status nothing(void *user, const void *mine, size_t size, void *all, renyi_error *err)
{
    (void)user, (void)mine, (void)size, (void)all, (void)err;
    return RENYI_OK;
}

static void test_broken_line(void **state)
{
    (void)state;
    team c;
    team_open(&c, 2);
    for (uint32_t i = 0; i < 2; i++)
        c.members[i].ranks =
            (renyi_ranks){sizeof c.members[i].ranks, i, 2, 0, &c.members[i], nothing, broken, NULL};
    assert_true(team_run(&c));
    for (uint32_t i = 0; i < 2; i++) assert_int_equal(c.members[i].st, RENYI_ERR_IO);
    team_close(&c);
}

static void test_no_memory(void **state)
{
    (void)state;
    int good = 0;
    for (int allowed = 0; !good; allowed += MEMORY_STEP) {
        test_heap heap = {.fail_at = (size_t)allowed + 1, .fail_on = 1};
        team c;
        remove(at("memory.jsonl"));
        team_open(&c, 2);
        team_log(&c, at("memory.jsonl"), 1);
        c.members[allowed % 2].o.allocator = test_heap_of(&heap);
        const int ran = team_run(&c);
        const renyi_status st = c.members[allowed % 2].st;
        if (ran) assert_int_equal(c.members[1 - allowed % 2].st, st);
        team_close(&c);
        assert_int_equal(heap.live, 0);
        good = st == RENYI_OK;
        if (!good) assert_int_equal(st, RENYI_ERR_NOMEM);
        remove(at("memory.jsonl.rank1"));
        assert_true(allowed < 300);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_totals),       cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_parts_left_behind), cmocka_unit_test(test_parts_of_others),
        cmocka_unit_test(test_own_folders),       cmocka_unit_test(test_faults),
        cmocka_unit_test(test_broken_line),       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
